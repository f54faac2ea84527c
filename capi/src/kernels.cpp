// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <span>

#include "convert.hpp"
#include "error.hpp"
#include "growpage/retention/compaction_plan.hpp"
#include "kernel_call.hpp"
#include "layouts.hpp"
#include "structs.hpp"
#include "tensor.hpp"

using namespace growpage;
using namespace growpage::capi;
using growpage::detail::require_not_null;
using growpage::detail::require_range;

namespace {

/// Runs `f(call)` on a checked kernel.
template <class F>
growpage_status launch(const growpage_kernel* kernel, KernelParts parts, F&& f) noexcept {
  return run(nullptr, [&]() -> Status {
    KernelCall call;
    if (Status s = call.read(kernel, parts); !s.ok()) return s;
    return f(call);
  });
}

Status check_keep_set(const KernelCall& call, const std::uint8_t* marks, const std::uint64_t* bits,
                      std::int64_t words) {
  Status s;
  if (require_not_null(s, "marks", marks) && require_not_null(s, "bits", bits)) {
    require_range(s, "words", words, (std::int64_t{call.slots} + 63) / 64, std::int64_t{1} << 32);
  }
  return s;
}

Status check_scores(const KernelCall& call, const float* scores, std::int64_t stride) {
  Status s;
  if (require_not_null(s, "scores", scores)) {
    require_range(s, "stride", stride, call.slots, std::int64_t{1} << 40);
  }
  return s;
}

/// Used slots of a page.
std::int32_t page_slots(const KernelCall& call, std::int32_t page) noexcept {
  return std::min(call.shape.page_size, call.slots - page * call.shape.page_size);
}

/// What must be kept has to fit into `keep`, and that into the private pages.
Status check_budget(const KernelCall& call, const RetentionOptions& retention,
                    const std::uint8_t* marks, std::int32_t protected_slots, std::int32_t keep) {
  std::int64_t room = 0;
  std::int64_t required = 0;
  const std::int32_t front = std::max(retention.sinks, protected_slots);
  const std::int32_t recent_from = std::max(call.slots - retention.recent, 0);
  for (std::int32_t p = 0; p < call.page_count; ++p) {
    if ((marks[p] & page_private) == 0) continue;
    const std::int32_t first = p * call.shape.page_size;
    const std::int32_t end = first + page_slots(call, p);
    room += end - first;
    required += std::clamp(front, first, end) - first;
    required += end - std::clamp(std::max(recent_from, front), first, end);
  }
  Status s;
  require_range(s, "keep", keep, required, room);
  return s;
}

/// The plan's victims must be private, and the other private pages must have room for their rows.
Status check_move(const KernelCall& call, const std::uint8_t* marks,
                  const growpage_compaction_plan& plan, const std::uint64_t* bits,
                  std::int64_t words) {
  Status s;
  const std::int32_t b = call.shape.page_size;
  if (!require_range(s, "growpage_kernel.slots", call.slots, call.page_count * std::int64_t{b},
                     call.page_count * std::int64_t{b}) ||
      !require_range(s, "growpage_compaction_plan.victims", plan.victims, 1,
                     CompactionPlan::max_victims)) {
    return s;
  }
  std::int64_t private_pages = 0;
  for (std::int32_t p = 0; p < call.page_count; ++p) private_pages += marks[p] & page_private;
  for (std::int32_t i = 0; i < plan.victims; ++i) {
    if (!require_range(s, "growpage_compaction_plan.victim", plan.victim[i],
                       i == 0 ? 0 : plan.victim[i - 1] + std::int64_t{1}, call.page_count - 1)) {
      return s;
    }
    if ((marks[plan.victim[i]] & page_private) == 0) {
      return Status::invalid("growpage_compaction_plan.victim", std::int64_t{plan.victim[i]},
                             "a private page");
    }
  }
  const std::int64_t room = (private_pages - plan.victims) * b;
  const std::int64_t heads = std::int64_t{call.shape.layers} * call.shape.kv_heads;
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::uint64_t* row = bits + head * words;
    std::int64_t kept = 0;
    for (std::int32_t p = 0; p < call.page_count; ++p) {
      if ((marks[p] & page_private) == 0) continue;
      // A page of 16 or 32 slots is part of a word; larger ones are whole words.
      const std::int64_t first = std::int64_t{p} * b;
      if (b < 64) {
        const std::uint64_t mask = (std::uint64_t{1} << b) - 1;
        kept += std::popcount((row[first / 64] >> (first % 64)) & mask);
      } else {
        for (std::int64_t w = first / 64; w < (first + b) / 64; ++w) kept += std::popcount(row[w]);
      }
    }
    if (!require_range(s, "rows kept in private pages", kept, 0, room)) return s;
  }
  return s;
}

Status boundary_pass(KernelCall& call, const growpage_query* query, std::int32_t old_slots,
                     float* scores, std::int64_t stride, growpage_demand* demand) {
  BoundaryPass pass;
  Status s = call.read_query(query, pass);
  if (!s.ok()) return s;
  if (!require_range(s, "old_slots", old_slots, 0, call.slots)) return s;
  pass.scores = scores;
  pass.score_stride = stride;
  if (old_slots > 0 && pass.retention.global_decay > 0) {
    pass.old_scores = scores;
    pass.old_slots = old_slots;
  }
  if (demand != nullptr && pass.input.candidates > 0) pass.result = twin<Demand>(demand);
  if (pass.result == nullptr && scores == nullptr) return {};  // no candidate: nothing to measure
  call.backend.boundary_pass(pass, call.workspace);
  return {};
}

}  // namespace

extern "C" {

growpage_status growpage_workspace_size(const growpage_kernel* kernel, int32_t max_slots,
                                        size_t* bytes) {
  return launch(kernel, KernelParts::shape, [&](KernelCall& call) -> Status {
    Status s;
    if (!require_range(s, "max_slots", max_slots, 1, 0x7fffffff - 64) ||
        !require_not_null(s, "bytes", bytes)) {
      return s;
    }
    *bytes = static_cast<std::size_t>(call.backend.workspace_bytes(call.shape, max_slots));
    return {};
  });
}

growpage_status growpage_summary_get_sizes(const growpage_kernel* kernel,
                                           const growpage_summary_options* options,
                                           growpage_summary_sizes* sizes) {
  return launch(kernel, KernelParts::shape, [&](KernelCall& call) -> Status {
    SummaryOptions summary;
    Status s = call.read_summary(options, summary);
    if (s.ok()) s = check_output("growpage_summary_sizes", sizes);
    if (!s.ok()) return s;
    const SummaryBytes bytes = summary_bytes(call.shape, summary);
    write_struct(sizes,
                 {sizeof *sizes, static_cast<std::size_t>(bytes.summaries),
                  static_cast<std::size_t>(bytes.query_rms), static_cast<std::size_t>(bytes.window),
                  static_cast<std::size_t>(bytes.steps)});
    return {};
  });
}

growpage_status growpage_update_summaries(const growpage_kernel* kernel,
                                          const growpage_summary_options* options,
                                          const growpage_summary_state* state,
                                          const growpage_summary_entry* entries, size_t count,
                                          const growpage_tensor* queries, int32_t first_layer,
                                          int32_t layers) {
  return launch(kernel, KernelParts::shape, [&](KernelCall& call) -> Status {
    SummaryUpdate update;
    Status s = call.read_summary(options, update.options);
    if (s.ok()) s = call.read_state(state, update.options, update.state);
    if (!s.ok()) return s;
    if (!require_array(s, "entries", entries, count) ||
        !require_range(s, "count", static_cast<std::int64_t>(count), 0, 1 << 20) ||
        !require_range(s, "first_layer", first_layer, 0, call.shape.layers - 1) ||
        !require_range(s, "layers", layers, 1, call.shape.layers - first_layer)) {
      return s;
    }
    if (count == 0) return {};
    for (std::size_t i = 0; i < count; ++i) {
      if (!require_range(s, "growpage_summary_entry.slot", entries[i].slot, 0,
                         update.options.slots - 1)) {
        return s;
      }
    }
    const std::int64_t extents[] = {layers, static_cast<std::int64_t>(count),
                                    call.shape.query_heads, call.shape.head_dim};
    Tensor q;
    if (s = read_tensor("queries", queries, extents, false, q); !s.ok()) return s;
    update.entries = twin<const SummaryEntry>(entries);
    update.requests = static_cast<std::int32_t>(count);
    update.first_layer = first_layer;
    update.layers = layers;
    update.q = q.data;
    update.q_dtype = q.dtype;
    update.q_layer_stride = q.strides[0];
    update.q_request_stride = q.strides[1];
    update.q_head_stride = q.strides[2];
    call.backend.summary_update(update);
    return {};
  });
}

growpage_status growpage_measure_demand(const growpage_kernel* kernel, const growpage_query* query,
                                        growpage_demand* demand) {
  return launch(kernel, KernelParts::workspace, [&](KernelCall& call) -> Status {
    Status s;
    if (!require_not_null(s, "demand", demand)) return s;
    return boundary_pass(call, query, 0, nullptr, 0, demand);
  });
}

growpage_status growpage_score(const growpage_kernel* kernel, const growpage_query* query,
                               int32_t old_slots, float* scores, int64_t stride,
                               growpage_demand* demand) {
  return launch(kernel, KernelParts::workspace, [&](KernelCall& call) -> Status {
    if (Status s = check_scores(call, scores, stride); !s.ok()) return s;
    return boundary_pass(call, query, old_slots, scores, stride, demand);
  });
}

growpage_status growpage_select(const growpage_kernel* kernel,
                                const growpage_retention_options* retention, const float* scores,
                                int64_t stride, const uint8_t* marks, int32_t protected_slots,
                                int32_t keep, uint64_t* bits, int64_t words, int32_t* page_kept) {
  return launch(kernel, KernelParts::workspace, [&](KernelCall& call) -> Status {
    Selection selection;
    Status s = read_retention(retention, selection.retention);
    if (s.ok()) s = selection.retention.validate(call.shape.page_size);
    if (s.ok()) s = check_scores(call, scores, stride);
    if (s.ok()) s = check_keep_set(call, marks, bits, words);
    if (!s.ok()) return s;
    if (!require_not_null(s, "page_kept", page_kept) ||
        !require_range(s, "protected_slots", protected_slots, 0, call.slots)) {
      return s;
    }
    s = check_budget(call, selection.retention, marks, protected_slots, keep);
    if (!s.ok()) return s;
    selection.shape = call.shape;
    selection.scores = scores;
    selection.score_stride = stride;
    selection.marks = marks;
    selection.protected_slots = protected_slots;
    selection.keep = keep;
    selection.out = {
        bits, page_kept, call.shape.layers, call.shape.kv_heads, call.slots, call.page_count,
        words};
    call.backend.select(selection, call.workspace);
    return {};
  });
}

growpage_status growpage_plan_compaction(const uint8_t* marks, const int32_t* page_kept,
                                         size_t pages, int32_t victims, int32_t strategy,
                                         growpage_compaction_plan* plan) {
  return run(nullptr, [&]() -> Status {
    Status s;
    CompactionStrategy how{};
    if (!require_array(s, "marks", marks, pages) ||
        !require_array(s, "page_kept", page_kept, pages) || !require_not_null(s, "plan", plan) ||
        !require_range(s, "pages", static_cast<std::int64_t>(pages), 0, 0x7fffffff) ||
        !read_enum(s, "strategy", strategy, CompactionStrategy::in_order, how)) {
      return s;
    }
    const Result<CompactionPlan> made =
        plan_compaction({marks, pages}, {page_kept, pages}, victims, how);
    if (!made.ok()) return made.status();
    *plan = {static_cast<std::int32_t>(made->strategy),
             made->victims,
             {made->victim[0], made->victim[1]}};
    return {};
  });
}

growpage_status growpage_compact(const growpage_kernel* kernel, const uint8_t* marks,
                                 const growpage_compaction_plan* plan, const uint64_t* bits,
                                 int64_t words, float* scores, int64_t stride) {
  return launch(kernel, KernelParts::request, [&](KernelCall& call) -> Status {
    CompactionMove move;
    Status s = check_keep_set(call, marks, bits, words);
    if (s.ok() && scores != nullptr) s = check_scores(call, scores, stride);
    if (!s.ok()) return s;
    if (!require_not_null(s, "plan", plan) ||
        !read_enum(s, "growpage_compaction_plan.strategy", plan->strategy,
                   CompactionStrategy::in_order, move.plan.strategy)) {
      return s;
    }
    if (s = check_move(call, marks, *plan, bits, words); !s.ok()) return s;
    move.shape = call.shape;
    move.kv = call.kv;
    move.pages = call.pages;
    move.marks = marks;
    move.plan.victims = plan->victims;
    std::copy_n(plan->victim, plan->victims, move.plan.victim);
    // The kernel only reads the set, through the view that select writes through.
    move.keep = {const_cast<std::uint64_t*>(bits),
                 nullptr,
                 call.shape.layers,
                 call.shape.kv_heads,
                 call.slots,
                 call.page_count,
                 words};
    move.scores = scores;
    move.score_stride = stride;
    call.backend.compact(move, call.workspace);
    return {};
  });
}
}
