// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "growpage/cache/paged_kv_cache.hpp"
#include "growpage/detail/require.hpp"

namespace growpage {

template <KvBackend Backend>
PagedKVCache<Backend>::PagedKVCache(PageManager&& manager, const PagedKVCacheOptions& options,
                                    Backend backend)
    : PageManager(std::move(manager)),
      options_(options),
      backend_(std::make_unique<Backend>(std::move(backend))) {}

template <KvBackend Backend>
Result<PagedKVCache<Backend>> PagedKVCache<Backend>::create(const PagedKVCacheOptions& options,
                                                            Backend backend) {
  PagedKVCacheOptions full = options;
  full.pages.page_size = full.shape.page_size;
  if (Status s = full.validate(); !s.ok()) return s;
  full.summary = full.summary.for_page_size(full.shape.page_size);
  Result<PageManager> manager = PageManager::create(full.pages);
  if (!manager.ok()) return manager.status();
  PagedKVCache cache(std::move(manager).value(), full, std::move(backend));
  if (Status s = cache.allocate_memory(); !s.ok()) return s;
  return cache;
}

template <KvBackend Backend>
Status PagedKVCache<Backend>::allocate_memory() {
  using Memory = detail::BackendMemory<Backend>;
  using HostMemory = detail::BackendMemory<Backend, detail::MemorySpace::host>;
  const CacheShape& shape = options_.shape;
  const std::int64_t pages = options_.pages.pages;
  KvView& kv = options_.kv;
  if (kv.k.null()) {
    const std::int64_t rows = pages * shape.layers * shape.kv_heads * shape.page_size;
    const auto element = static_cast<std::int64_t>(dtype_bytes(options_.dtype));
    k_memory_ = Memory(*backend_, rows * shape.head_dim * element);
    v_memory_ = Memory(*backend_, rows * shape.v_dim() * element);
    const auto layout = options_.layout == PageLayout::hnd ? &KvLayout::hnd : &KvLayout::nhd;
    kv.k = {k_memory_.data(), nullptr, layout(shape, pages, shape.head_dim), options_.dtype};
    kv.v = {v_memory_.data(), nullptr, layout(shape, pages, shape.v_dim()), options_.dtype};
  }

  const SummaryBytes bytes = summary_bytes(shape, options_.summary);
  summary_memory_ =
      Memory(*backend_, bytes.steps + bytes.summaries + bytes.query_rms + bytes.window);
  char* at = summary_memory_.data();
  summaries_.steps = reinterpret_cast<std::int64_t*>(at);  // the widest type first: alignment
  summaries_.summaries = at + bytes.steps;
  summaries_.query_rms = reinterpret_cast<float*>(at + bytes.steps + bytes.summaries);
  summaries_.window =
      bytes.window > 0
          ? reinterpret_cast<float*>(at + bytes.steps + bytes.summaries + bytes.query_rms)
          : nullptr;
  summaries_.storage = options_.summary.storage;
  summaries_.layers = shape.layers;
  summaries_.slots = options_.summary.slots;
  summaries_.query_heads = shape.query_heads;
  summaries_.head_dim = shape.head_dim;
  summaries_.window_size = options_.summary.window;

  score_stride_ = std::int64_t{options_.pages.max_pages_per_sequence} * shape.page_size;
  const std::int64_t heads = std::int64_t{shape.layers} * shape.kv_heads;
  score_memory_ = Memory(*backend_, options_.score_buffers * heads * score_stride_ * 4);
  if (options_.retention.global_decay > 0) {
    history_memory_ = Memory(*backend_, options_.summary.slots * heads * score_stride_ * 4);
  }
  keep_bits_ = Memory(*backend_, heads * ((score_stride_ + 63) / 64) * 8);
  workspace_ =
      Memory(*backend_, backend_->workspace_bytes(shape, static_cast<std::int32_t>(score_stride_)));
  score_buffers_.resize(static_cast<std::size_t>(options_.score_buffers));
  history_.resize(static_cast<std::size_t>(options_.summary.slots));
  marks_.resize(static_cast<std::size_t>(options_.pages.max_pages_per_sequence));
  page_kept_.resize(static_cast<std::size_t>(options_.pages.max_pages_per_sequence));

  summary_row_bytes_ = 0;
  for_each_summary_row(SequenceId{}, SummarySlot{0},
                       [&](char*, std::int64_t row_bytes) { summary_row_bytes_ += row_bytes; });
  if (options_.pages.host_pages > 0) {
    host_pages_ = HostMemory(*backend_, options_.pages.host_pages * page_bytes(shape, kv));
    host_summaries_ = HostMemory(*backend_, options_.pages.max_sequences * summary_row_bytes_);
    swapped_history_.resize(static_cast<std::size_t>(options_.pages.max_sequences));
  }
  const bool ok = k_memory_.ok() && v_memory_.ok() && summary_memory_.ok() && score_memory_.ok() &&
                  history_memory_.ok() && keep_bits_.ok() && workspace_.ok() && host_pages_.ok() &&
                  host_summaries_.ok();
  if (!ok) {
    return Status::error(StatusCode::out_of_memory, "PagedKVCacheOptions::pages",
                         std::to_string(pages), "fewer: the backend has no memory left");
  }
  return {};
}

template <KvBackend Backend>
float* PagedKVCache<Backend>::scores(std::size_t buffer) noexcept {
  const std::int64_t heads = std::int64_t{options_.shape.layers} * options_.shape.kv_heads;
  return reinterpret_cast<float*>(score_memory_.data()) +
         static_cast<std::int64_t>(buffer) * heads * score_stride_;
}

template <KvBackend Backend>
float* PagedKVCache<Backend>::history(SummarySlot slot) noexcept {
  const std::int64_t heads = std::int64_t{options_.shape.layers} * options_.shape.kv_heads;
  return reinterpret_cast<float*>(history_memory_.data()) + slot.value * heads * score_stride_;
}

/// Every piece of state a summary slot holds, as (device pointer, bytes): what swap must carry.
template <KvBackend Backend>
template <class F>
void PagedKVCache<Backend>::for_each_summary_row(SequenceId, SummarySlot slot, F&& f) {
  const CacheShape& shape = options_.shape;
  const std::int64_t query = std::int64_t{shape.query_heads} * shape.head_dim;
  const std::int64_t element = summaries_.storage == SummaryOptions::Storage::f32 ? 4 : 2;
  for (std::int32_t l = 0; l < shape.layers; ++l) {
    const std::int64_t row = summaries_.row(l, slot.value);
    f(static_cast<char*>(summaries_.summaries) + row * 2 * query * element, 2 * query * element);
    f(reinterpret_cast<char*>(summaries_.query_rms + row * shape.query_heads),
      std::int64_t{shape.query_heads} * 4);
    f(reinterpret_cast<char*>(summaries_.steps + row), std::int64_t{8});
    if (summaries_.window != nullptr) {
      const std::int64_t window = summaries_.window_size * query;
      f(reinterpret_cast<char*>(summaries_.window + row * window), window * 4);
    }
  }
  if (history_memory_.data() != nullptr) {
    f(reinterpret_cast<char*>(history(slot)),
      std::int64_t{shape.layers} * shape.kv_heads * score_stride_ * 4);
  }
}

template <KvBackend Backend>
Status PagedKVCache<Backend>::update_summaries(std::span<const SummaryEntry> entries,
                                               const QueryView& queries, std::int32_t first_layer,
                                               std::int32_t layers, StreamView stream) {
  const CacheShape& shape = options_.shape;
  Status s;
  if (entries.empty()) return s;
  if (!detail::require_range(s, "first_layer", first_layer, 0, shape.layers - 1)) return s;
  if (!detail::require_range(s, "layers", layers, 1, shape.layers - first_layer)) return s;
  if (!detail::require_not_null(s, "QueryView::data", queries.data)) return s;
  for (const SummaryEntry& entry : entries) {
    if (!detail::require_range(s, "SummaryEntry::slot", entry.slot, 0, summaries_.slots - 1)) {
      return s;
    }
  }
  SummaryUpdate update;
  update.state = summaries_;
  update.options = options_.summary;
  update.entries = entries.data();
  update.requests = static_cast<std::int32_t>(entries.size());
  update.first_layer = first_layer;
  update.layers = layers;
  update.q = queries.data;
  update.q_dtype = queries.dtype;
  update.q_head_stride = queries.head_stride != 0 ? queries.head_stride : shape.head_dim;
  update.q_request_stride = queries.request_stride != 0 ? queries.request_stride
                                                        : update.q_head_stride * shape.query_heads;
  update.q_layer_stride =
      queries.layer_stride != 0 ? queries.layer_stride : update.q_request_stride * update.requests;
  backend_->summary_update(update, stream);
  return backend_->take_status();
}

template <KvBackend Backend>
Status PagedKVCache<Backend>::check_boundary(SequenceId id, SummarySlot slot, std::int64_t position,
                                             SequenceView& view) const {
  Result<SequenceView> found = PageManager::view(id);
  if (!found.ok()) return found.status();
  view = *found;
  if (view.swapped) return StatusCode::busy;
  Status s;
  if (!detail::require_range(s, "SummarySlot", slot.value, 0, summaries_.slots - 1)) return s;
  if (!detail::require_range(s, "position", position, 0, view.length - 1)) return s;
  if (options_.rope.cos_table != nullptr && position >= options_.rope.max_position) {
    return Status::invalid(
        "position", position,
        "below RopeParams::max_position (" + std::to_string(options_.rope.max_position) + ")");
  }
  return {};
}

template <KvBackend Backend>
std::size_t PagedKVCache<Backend>::take_score_buffer(SequenceId id, std::int32_t slots) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < score_buffers_.size(); ++i) {
    if (score_buffers_[i].owner == id) {
      best = i;
      break;
    }
    if (score_buffers_[i].used < score_buffers_[best].used) best = i;
  }
  score_buffers_[best] = {id, slots, ++score_clock_};
  return best;
}

/// Scores measured for `id` that still rank its slots: those that came since are all recent, thus
/// kept.
template <KvBackend Backend>
float* PagedKVCache<Backend>::find_scores(SequenceId id, std::int32_t slots) {
  for (std::size_t i = 0; i < score_buffers_.size(); ++i) {
    const ScoreBuffer& buffer = score_buffers_[i];
    if (buffer.owner != id) continue;
    const std::int32_t newer = slots - buffer.slots;
    return newer >= 0 && newer <= options_.retention.recent ? scores(i) : nullptr;
  }
  return nullptr;
}

template <KvBackend Backend>
BoundaryPass PagedKVCache<Backend>::boundary_pass(const SequenceView& view, SequenceId id,
                                                  SummarySlot slot, std::int64_t position) {
  const CacheShape& shape = options_.shape;
  BoundaryPass pass;
  pass.shape = shape;
  pass.kv = options_.kv;
  pass.summaries = summaries_;
  pass.rope = options_.rope;
  pass.demand = options_.demand;
  pass.retention = options_.retention;
  pass.softmax_scale = options_.softmax_scale;
  pass.input.pages = view.pages.data();
  pass.input.slots = view.slots;
  pass.input.candidates = (view.slots - 1) / shape.page_size * shape.page_size;
  pass.input.summary_slot = slot.value;
  pass.input.position = position;
  pass.score_stride = score_stride_;
  if (history_memory_.data() != nullptr) {
    const ScoreHistory& past = history_[static_cast<std::size_t>(slot.value)];
    if (past.owner == id && past.compactions == view.compactions) {
      pass.old_scores = history(slot);
      pass.old_slots = past.slots;
    }
  }
  k_bytes_read_ += std::int64_t{shape.layers} * shape.kv_heads * view.slots * shape.head_dim *
                   static_cast<std::int64_t>(dtype_bytes(options_.kv.k.dtype));
  return pass;
}

template <KvBackend Backend>
Status PagedKVCache<Backend>::measure_demand(SequenceId id, SummarySlot slot, std::int64_t position,
                                             Demand& demand, StreamView stream) {
  SequenceView view;
  if (Status s = check_boundary(id, slot, position, view); !s.ok()) return s;
  if (view.busy) return StatusCode::busy;
  if (view.slots <= options_.shape.page_size) return {};  // no candidate, nothing to evict
  BoundaryPass pass = boundary_pass(view, id, slot, position);
  // A decayed history advances once per compaction, so it is not scored here.
  if (history_memory_.data() == nullptr) pass.scores = scores(take_score_buffer(id, view.slots));
  pass.result = &demand;
  backend_->boundary_pass(pass, workspace_.data(), stream);
  return backend_->take_status();
}

template <KvBackend Backend>
Status PagedKVCache<Backend>::compact(const CompactionTicket& ticket, SummarySlot slot,
                                      std::int64_t position, std::int32_t protected_slots,
                                      StreamView stream) {
  const CacheShape& shape = options_.shape;
  SequenceView view;
  if (Status s = check_boundary(ticket.sequence, slot, position, view); !s.ok()) return s;
  if (!is_compacting(ticket)) return StatusCode::protocol_error;
  const auto pages = static_cast<std::int32_t>(view.pages.size());
  const std::span<std::uint8_t> marks(marks_.data(), view.pages.size());
  if (Status s = page_marks(ticket.sequence, protected_slots, marks); !s.ok()) return s;

  // What is shared now stays shared: begin_compaction has replaced what was to be copied.
  const CompactionRoom room = compaction_room(marks, shape.page_size, protected_slots,
                                              options_.retention, SharedPages::keep);
  const std::int32_t keep = room.keep(ticket.victims, shape.page_size);
  if (!room.fits(ticket.victims, shape.page_size)) {
    (void)cancel_compaction(ticket);
    return StatusCode::at_capacity;
  }

  const bool decays = history_memory_.data() != nullptr;
  float* ranked = decays ? nullptr : find_scores(ticket.sequence, view.slots);
  if (ranked == nullptr) {
    BoundaryPass pass = boundary_pass(view, ticket.sequence, slot, position);
    ranked = decays ? history(slot) : scores(take_score_buffer(ticket.sequence, view.slots));
    pass.scores = ranked;
    backend_->boundary_pass(pass, workspace_.data(), stream);
    if (decays) history_[static_cast<std::size_t>(slot.value)] = {};
  }

  Selection selection;
  selection.shape = shape;
  selection.retention = options_.retention;
  selection.scores = ranked;
  selection.score_stride = score_stride_;
  selection.marks = marks.data();
  selection.protected_slots = protected_slots;
  selection.keep = keep;
  KeepSet& kept = selection.out;
  kept.bits = reinterpret_cast<std::uint64_t*>(keep_bits_.data());
  kept.page_kept = page_kept_.data();
  kept.layers = shape.layers;
  kept.kv_heads = shape.kv_heads;
  kept.slots = view.slots;
  kept.pages = pages;
  kept.words = (score_stride_ + 63) / 64;
  backend_->select(selection, workspace_.data(), stream);
  if (Status s = backend_->take_status(); !s.ok()) {
    (void)cancel_compaction(ticket);
    return s;
  }

  const std::span<const std::int32_t> page_kept(page_kept_.data(), view.pages.size());
  const Result<CompactionPlan> plan =
      plan_compaction(marks, page_kept, ticket.victims, ticket.strategy);
  if (!plan.ok()) {
    (void)cancel_compaction(ticket);
    return plan.status();
  }

  CompactionMove move;
  move.shape = shape;
  move.kv = options_.kv;
  move.pages = view.pages.data();
  move.marks = marks.data();
  move.plan = *plan;
  move.keep = kept;
  if (decays) {
    move.scores = ranked;
    move.score_stride = score_stride_;
  }
  backend_->compact(move, workspace_.data(), stream);  // reads the block table as it was
  if (Status s = backend_->take_status(); !s.ok()) {
    (void)cancel_compaction(ticket);
    return s;
  }
  if (decays) {
    history_[static_cast<std::size_t>(slot.value)] = {
        ticket.sequence, view.compactions + 1, view.slots - ticket.victims * shape.page_size};
  }
  for (ScoreBuffer& buffer : score_buffers_) {
    if (buffer.owner == ticket.sequence) buffer = {};
  }
  return apply_compaction(ticket, *plan, page_kept,
                          shape.layers * shape.kv_heads * shape.page_size);
}

template <KvBackend Backend>
Status PagedKVCache<Backend>::run_copies(std::span<const PageCopy> copies, StreamView stream) {
  if (copies.empty()) return {};
  backend_->copy_pages(options_.shape, options_.kv, copies, stream);
  return backend_->take_status();
}

template <KvBackend Backend>
Status PagedKVCache<Backend>::run_swap_out(SequenceId id, SummarySlot slot,
                                           std::span<const PageTransfer> transfers,
                                           StreamView stream) {
  backend_->pages_to_host(options_.shape, options_.kv, transfers, host_pages_.data(), stream);
  if (!slot.valid()) return backend_->take_status();
  char* host = host_summaries_.data() + std::int64_t{id.index} * summary_row_bytes_;
  for_each_summary_row(id, slot, [&](char* device, std::int64_t bytes) {
    backend_->copy_to_host(host, device, bytes, stream);
    host += bytes;
  });
  swapped_history_[id.index] = history_[static_cast<std::size_t>(slot.value)];
  return backend_->take_status();
}

template <KvBackend Backend>
Status PagedKVCache<Backend>::run_swap_in(SequenceId id, SummarySlot slot,
                                          std::span<const PageTransfer> transfers,
                                          StreamView stream) {
  backend_->pages_from_host(options_.shape, options_.kv, transfers, host_pages_.data(), stream);
  if (!slot.valid()) return backend_->take_status();
  const char* host = host_summaries_.data() + std::int64_t{id.index} * summary_row_bytes_;
  for_each_summary_row(id, slot, [&](char* device, std::int64_t bytes) {
    backend_->copy_from_host(device, host, bytes, stream);
    host += bytes;
  });
  history_[static_cast<std::size_t>(slot.value)] = swapped_history_[id.index];
  return backend_->take_status();
}

template <KvBackend Backend>
Status PagedKVCache<Backend>::append_kv(std::int32_t layer,
                                        std::span<const std::int64_t> slot_mapping, const void* k,
                                        const void* v, StreamView stream) {
  Status s;
  if (!detail::require_range(s, "layer", layer, 0, options_.shape.layers - 1)) return s;
  if (slot_mapping.empty()) return s;
  if (!detail::require_not_null(s, "k", k)) return s;
  if (!options_.kv.v_in_k() && !detail::require_not_null(s, "v", v)) return s;
  if (backend_->host_accessible()) {
    const std::int64_t slots = options_.pages.pages * options_.shape.page_size;
    for (const std::int64_t slot : slot_mapping) {
      if (slot >= slots) {
        return Status::invalid("slot_mapping", slot, "below " + std::to_string(slots));
      }
    }
  }
  AppendKv append;
  append.shape = options_.shape;
  append.kv = options_.kv;
  append.layer = layer;
  append.slot_mapping = slot_mapping.data();
  append.tokens = static_cast<std::int64_t>(slot_mapping.size());
  append.k = k;
  append.v = v;
  backend_->append_kv(append, stream);
  return backend_->take_status();
}

template <KvBackend Backend>
Status PagedKVCache<Backend>::attention(std::int32_t layer,
                                        std::span<const std::int32_t> block_table,
                                        std::int64_t block_table_stride,
                                        std::span<const std::int32_t> kv_lengths, const float* q,
                                        float* out, StreamView stream) {
  Status s;
  if (!detail::require_range(s, "layer", layer, 0, options_.shape.layers - 1)) return s;
  const auto requests = static_cast<std::int32_t>(kv_lengths.size());
  if (requests == 0) return s;
  if (!detail::require_range(s, "block_table.size()", static_cast<std::int64_t>(block_table.size()),
                             requests * block_table_stride, INT64_MAX) ||
      !detail::require_not_null(s, "q", q) || !detail::require_not_null(s, "out", out)) {
    return s;
  }
  if (backend_->host_accessible()) {
    for (const std::int32_t length : kv_lengths) {
      if (!detail::require_range(
              s, "kv_lengths", length, 0,
              std::min(score_stride_, block_table_stride * options_.shape.page_size))) {
        return s;
      }
    }
  }
  PagedAttention call;
  call.shape = options_.shape;
  call.kv = options_.kv;
  call.layer = layer;
  call.requests = requests;
  call.block_table = block_table.data();
  call.block_table_stride = block_table_stride;
  call.kv_lengths = kv_lengths.data();
  call.max_slots = static_cast<std::int32_t>(
      std::min(score_stride_, block_table_stride * options_.shape.page_size));
  call.q = q;
  call.out = out;
  call.softmax_scale = options_.softmax_scale;
  backend_->paged_attention(call, workspace_.data(), stream);
  return backend_->take_status();
}

}  // namespace growpage
