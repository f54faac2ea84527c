// SPDX-License-Identifier: Apache-2.0
#include "process_signal.hpp"

#include "growpage/retention/compaction_plan.hpp"

namespace growpage::replay {

static_assert(Signal<ProcessSignal>);

ProcessSignal::ProcessSignal(PageManager& cache, const CacheShape& shape,
                             const DemandProcess& process, const StepCosts& costs)
    : cache_(&cache), shape_(shape), process_(process), costs_(costs) {
  const auto pages = static_cast<std::size_t>(cache.options().max_pages_per_sequence);
  marks_.resize(pages);
  page_kept_.resize(pages);
}

Status ProcessSignal::compact(const CompactionItem& item) {
  const Result<SequenceView> view = cache_->view(item.ticket.sequence);
  if (!view.ok()) return {};  // aborted since it was planned
  work_.compaction_slots += view->slots;
  const std::size_t pages = view->pages.size();
  const std::span marks(marks_.data(), pages);
  if (Status s = cache_->page_marks(item.ticket.sequence, item.protected_slots, marks); !s.ok()) {
    return s;
  }
  const Result<CompactionPlan> plan = plan_compaction(marks, std::span(page_kept_).first(pages),
                                                      item.ticket.victims, item.ticket.strategy);
  if (!plan.ok()) return plan.status();
  return cache_->apply_compaction(item.ticket, *plan, {}, 0);
}

Status ProcessSignal::before_forward(const StepPlan& plan, std::vector<FenceId>& fences) {
  work_ = {};
  work_.transferred_pages =
      static_cast<std::int64_t>(plan.transfers_out.size() + plan.transfers_in.size());
  for (const SwapItem& item : plan.swap_outs) fences.push_back(item.fence);
  for (const SwapItem& item : plan.swap_ins) fences.push_back(item.fence);
  for (const CompactionItem& item : plan.compactions) {
    fences.push_back(item.ticket.fence);
    if (Status s = compact(item); !s.ok()) return s;
  }
  return {};
}

Status ProcessSignal::forward(const StepPlan& plan, const TextOf&) {
  work_.tokens = plan.batched_tokens;
  for (const DecodeItem& item : plan.decodes) work_.kv_slots += item.kv_length;
  for (const PrefillChunk& chunk : plan.prefills) {
    // Causal: the i-th token of the chunk sees the slots before it and itself.
    const auto tokens = static_cast<double>(chunk.tokens);
    work_.prefill_pairs += tokens * chunk.first_slot + tokens * (tokens + 1) / 2;
  }
  return {};
}

Status ProcessSignal::after_forward(const StepPlan& plan, std::vector<MeasuredDemand>& demand) {
  const std::int64_t terms = std::int64_t{shape_.layers} * shape_.kv_heads;
  for (const DemandItem& item : plan.demand) {
    const Result<SequenceView> view = cache_->view(item.sequence);
    if (!view.ok()) continue;
    work_.demand_slots += view->slots;
    const std::int64_t page = item.position / shape_.page_size;
    demand.push_back({item.request, process_.demand(item.tag, page, terms)});
  }
  return {};
}

double ProcessSignal::step_seconds() const noexcept {
  return replay::step_seconds(costs_, shape_, work_);
}

}  // namespace growpage::replay
