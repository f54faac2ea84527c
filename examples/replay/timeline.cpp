// SPDX-License-Identifier: Apache-2.0
#include "timeline.hpp"

#include <algorithm>
#include <numeric>

namespace growpage::replay {

Timeline::Timeline(std::span<const TraceRequest> workload) {
  std::vector<std::uint64_t> tags(workload.size());
  std::iota(tags.begin(), tags.end(), std::uint64_t{0});
  std::ranges::stable_sort(tags, std::greater{},
                           [&](std::uint64_t tag) { return workload[tag].output_tokens; });
  for (const double rank : {0.0, 0.1, 0.25, 0.5}) {
    const auto at = static_cast<std::size_t>(rank * static_cast<double>(tags.size()));
    if (at >= tags.size() || find(tags[at]) != nullptr) continue;
    watched_.emplace_back().tag = tags[at];
  }
}

Timeline::Watched* Timeline::find(std::uint64_t tag) noexcept {
  const auto found = std::ranges::find(watched_, tag, &Watched::tag);
  return found == watched_.end() ? nullptr : &*found;
}

void Timeline::record(double time_s, const StepPlan& plan, std::span<const MeasuredDemand> demand,
                      const PageManager& cache, std::int64_t running, std::int64_t waiting) {
  for (const DecodeItem& item : plan.decodes) {
    Watched* watched = find(item.tag);
    if (watched == nullptr) continue;
    const Result<SequenceView> view = cache.view(item.sequence);
    if (!view.ok()) continue;
    const auto pages = static_cast<std::int32_t>(view->pages.size());
    if (!watched->pages.empty() && watched->pages.back().pages == pages) continue;
    watched->pages.push_back({time_s, item.position, pages});
  }
  for (std::size_t i = 0; i < demand.size(); ++i) {
    const auto item = std::ranges::find(plan.demand, demand[i].request, &DemandItem::request);
    if (item == plan.demand.end()) continue;
    Watched* watched = find(item->tag);
    if (watched == nullptr || demand[i].demand.count == 0) continue;
    watched->demand.push_back({time_s, item->position, demand[i].demand.delta()});
  }
  if (steps_++ % stride_ != 0) return;
  const PageCounts counts = cache.counts();
  residency_.push_back({time_s, running, waiting, counts.referenced + counts.in_flight});
  if (residency_.size() < max_points) return;
  for (std::size_t i = 0; i < max_points / 2; ++i) residency_[i] = residency_[2 * i];
  residency_.resize(max_points / 2);
  stride_ *= 2;
}

}  // namespace growpage::replay
