// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "growpage/cache/paged_kv_cache.hpp"
#include "growpage/schedule/step_plan.hpp"

namespace growpage {

/// Runs what a plan wants done before its forward pass, in the plan's order: swaps, page copies,
/// compactions. Appends the fences of that work to `fences`: report them to complete() once
/// `stream` has passed this point (with the CPU backend: at once). Stops at the first failing item.
template <KvBackend Backend>
Status run_before_forward(PagedKVCache<Backend>& cache, const StepPlan& plan,
                          std::vector<FenceId>& fences, StreamView stream = {}) {
  for (const SwapItem& item : plan.swap_outs) {
    fences.push_back(item.fence);
    const auto pages = std::span(plan.transfers_out).subspan(item.first_transfer, item.transfers);
    Status s = cache.run_swap_out(item.sequence, item.summary, pages, stream);
    if (!s.ok()) return s;
  }
  for (const SwapItem& item : plan.swap_ins) {
    fences.push_back(item.fence);
    const auto pages = std::span(plan.transfers_in).subspan(item.first_transfer, item.transfers);
    Status s = cache.run_swap_in(item.sequence, item.summary, pages, stream);
    if (!s.ok()) return s;
  }
  if (Status s = cache.run_copies(plan.copies, stream); !s.ok()) return s;
  for (const CompactionItem& item : plan.compactions) {
    fences.push_back(item.ticket.fence);
    if (!cache.alive(item.ticket.sequence)) continue;  // aborted since it was planned
    Status s =
        cache.compact(item.ticket, item.summary, item.position, item.protected_slots, stream);
    if (!s.ok()) return s;
  }
  return {};
}

/// Measures the demand a plan asks for, after its forward pass has updated the summaries. Appends
/// one entry per StepPlan::demand to `demand`, for complete(). Synchronises.
template <KvBackend Backend>
Status run_after_forward(PagedKVCache<Backend>& cache, const StepPlan& plan,
                         std::vector<MeasuredDemand>& demand, StreamView stream = {}) {
  for (const DemandItem& item : plan.demand) {
    if (!cache.alive(item.sequence)) continue;
    MeasuredDemand measured{item.request, {}};
    Status s =
        cache.measure_demand(item.sequence, item.summary, item.position, measured.demand, stream);
    if (!s.ok()) return s;
    demand.push_back(measured);
  }
  return {};
}

}  // namespace growpage
