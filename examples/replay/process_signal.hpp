// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "demand_process.hpp"
#include "growpage/cache/page_manager.hpp"
#include "growpage/core/cache_shape.hpp"
#include "growpage/schedule/step_plan.hpp"
#include "signal.hpp"
#include "step_clock.hpp"

namespace growpage::replay {

/// `--signal process`: an engine without tensors. Pages move as always, Δ comes from a
/// DemandProcess, the clock from StepCosts.
class ProcessSignal {
 public:
  using Cache = PageManager;
  static constexpr const char* name = "process";

  /// `cache` is borrowed.
  ProcessSignal(PageManager& cache, const CacheShape& shape, const DemandProcess& process,
                const StepCosts& costs);

  /// Carries the compactions out in the block tables; the fences of all work go to `fences`.
  Status before_forward(const StepPlan& plan, std::vector<FenceId>& fences);
  Status forward(const StepPlan& plan, const TextOf& text);
  Status after_forward(const StepPlan& plan, std::vector<MeasuredDemand>& demand);
  /// Simulated time of the step just run.
  [[nodiscard]] double step_seconds() const noexcept;

 private:
  Status compact(const CompactionItem& item);

  PageManager* cache_;
  CacheShape shape_;
  DemandProcess process_;
  StepCosts costs_;
  StepWork work_;
  std::vector<std::uint8_t> marks_;
  std::vector<std::int32_t> page_kept_;  // [page] all equal: nothing ranks the rows
};

}  // namespace growpage::replay
