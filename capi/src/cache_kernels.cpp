// SPDX-License-Identifier: Apache-2.0
#include <span>

#include "cache.hpp"
#include "convert.hpp"
#include "layouts.hpp"
#include "structs.hpp"
#include "tensor.hpp"

using namespace growpage;
using namespace growpage::capi;
using growpage::detail::require_not_null;
using growpage::detail::require_range;

namespace {

/// Runs `f(cache)` on a cache with kernels.
template <class F>
growpage_status launch(growpage_cache* cache, F&& f) noexcept {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    if (Status s = c.require_kernels(); !s.ok()) return s;
    return f(c);
  });
}

/// Kernels trust page ids; those that came from outside are checked here.
Status check_transfers(const Cache& c, uint64_t sequence, int32_t summary_slot,
                       const growpage_page_transfer* transfers, size_t count) {
  Status s;
  if (!c.manager->alive(SequenceId::from_bits(sequence))) return StatusCode::stale_id;
  const PageManagerOptions& options = c.manager->options();
  if (options.host_pages == 0) {
    return Status::error(StatusCode::unsupported, "growpage_cache_options.host_pages", "0",
                         "above 0 to swap");
  }
  if (!require_array(s, "transfers", transfers, count) ||
      !require_range(s, "summary_slot", summary_slot, -1, c.kv->summaries().slots - 1)) {
    return s;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!require_range(s, "transfers.device", transfers[i].device, 0, options.pages - 1) ||
        !require_range(s, "transfers.host", transfers[i].host, 0, options.host_pages - 1)) {
      return s;
    }
  }
  return {};
}

}  // namespace

extern "C" {

double growpage_demand_delta(const growpage_demand* demand) {
  if (demand == nullptr) return 0.0;
  return Demand{demand->short_sum, demand->long_sum, demand->count}.delta();
}

growpage_status growpage_cache_update_summaries(growpage_cache* cache,
                                                const growpage_summary_entry* entries, size_t count,
                                                const growpage_tensor* queries, int32_t first_layer,
                                                int32_t layers, void* stream) {
  return launch(cache, [&](Cache& c) -> Status {
    const CacheShape& shape = c.kv->shape();
    Status s;
    if (!require_array(s, "entries", entries, count) ||
        !require_range(s, "count", static_cast<std::int64_t>(count), 0, 1 << 20)) {
      return s;
    }
    if (count == 0) return {};
    if (!require_range(s, "first_layer", first_layer, 0, shape.layers - 1) ||
        !require_range(s, "layers", layers, 1, shape.layers - first_layer)) {
      return s;
    }
    const std::int64_t extents[] = {layers, static_cast<std::int64_t>(count), shape.query_heads,
                                    shape.head_dim};
    Tensor q;
    if (s = read_tensor("queries", queries, extents, false, q); !s.ok()) return s;
    return c.kv->update_summaries({twin<const SummaryEntry>(entries), count},
                                  {q.data, q.dtype, q.strides[0], q.strides[1], q.strides[2]},
                                  first_layer, layers, {stream});
  });
}

growpage_status growpage_cache_measure_demand(growpage_cache* cache, uint64_t sequence,
                                              int32_t summary_slot, int64_t position,
                                              growpage_demand* demand, void* stream) {
  return launch(cache, [&](Cache& c) -> Status {
    Status s;
    if (!require_not_null(s, "demand", demand)) return s;
    return c.kv->measure_demand(SequenceId::from_bits(sequence), {summary_slot}, position,
                                *twin<Demand>(demand), {stream});
  });
}

growpage_status growpage_cache_run_copies(growpage_cache* cache, const growpage_page_copy* copies,
                                          size_t count, void* stream) {
  return launch(cache, [&](Cache& c) -> Status {
    Status s;
    if (!require_array(s, "copies", copies, count)) return s;
    const std::int64_t last = c.manager->options().pages - 1;
    for (std::size_t i = 0; i < count; ++i) {
      if (!require_range(s, "copies.source", copies[i].source, 0, last) ||
          !require_range(s, "copies.target", copies[i].target, 0, last)) {
        return s;
      }
      if (copies[i].source == copies[i].target) {
        return Status::invalid("copies.target", std::int64_t{copies[i].target},
                               "another page than the source");
      }
    }
    return c.kv->run_copies({twin<const PageCopy>(copies), count}, {stream});
  });
}

growpage_status growpage_cache_run_swap_out(growpage_cache* cache, uint64_t sequence,
                                            int32_t summary_slot,
                                            const growpage_page_transfer* transfers, size_t count,
                                            void* stream) {
  return launch(cache, [&](Cache& c) -> Status {
    if (Status s = check_transfers(c, sequence, summary_slot, transfers, count); !s.ok()) return s;
    return c.kv->run_swap_out(SequenceId::from_bits(sequence), {summary_slot},
                              {twin<const PageTransfer>(transfers), count}, {stream});
  });
}

growpage_status growpage_cache_run_swap_in(growpage_cache* cache, uint64_t sequence,
                                           int32_t summary_slot,
                                           const growpage_page_transfer* transfers, size_t count,
                                           void* stream) {
  return launch(cache, [&](Cache& c) -> Status {
    if (Status s = check_transfers(c, sequence, summary_slot, transfers, count); !s.ok()) return s;
    return c.kv->run_swap_in(SequenceId::from_bits(sequence), {summary_slot},
                             {twin<const PageTransfer>(transfers), count}, {stream});
  });
}

growpage_status growpage_cache_append_kv(growpage_cache* cache, int32_t layer,
                                         const int64_t* slot_mapping, size_t tokens, const void* k,
                                         const void* v, void* stream) {
  return launch(cache, [&](Cache& c) -> Status {
    Status s;
    if (!require_array(s, "slot_mapping", slot_mapping, tokens)) return s;
    return c.kv->append_kv(layer, {slot_mapping, tokens}, k, v, {stream});
  });
}

growpage_status growpage_cache_attention(growpage_cache* cache, int32_t layer, size_t batch,
                                         const int32_t* block_table, int64_t stride,
                                         const int32_t* kv_lengths, const float* q, float* out,
                                         void* stream) {
  return launch(cache, [&](Cache& c) -> Status {
    Status s;
    if (!require_range(s, "batch", static_cast<std::int64_t>(batch), 0, 1 << 20) ||
        !require_range(s, "stride", stride, 0, 0x7fffffff) ||
        !require_array(s, "kv_lengths", kv_lengths, batch)) {
      return s;
    }
    const auto size = batch * static_cast<std::size_t>(stride);
    if (!require_array(s, "block_table", block_table, size)) return s;
    const std::int64_t b = c.kv->shape().page_size;
    const std::size_t readable = c.kv->backend().host_accessible() ? batch : 0;
    for (std::size_t i = 0; i < readable; ++i) {
      if (!require_range(s, "kv_lengths", kv_lengths[i], 0, stride * b)) return s;
      const std::int64_t used = (kv_lengths[i] + b - 1) / b;
      for (std::int64_t p = 0; p < used; ++p) {
        if (!require_range(s, "block_table", block_table[static_cast<std::int64_t>(i) * stride + p],
                           0, c.manager->options().pages - 1)) {
          return s;
        }
      }
    }
    return c.kv->attention(layer, {block_table, size}, stride, {kv_lengths, batch}, q, out,
                           {stream});
  });
}
}
