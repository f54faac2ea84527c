// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "growpage/cache/page_manager.hpp"
#include "growpage/schedule/step_plan.hpp"
#include "workload.hpp"

namespace growpage::replay {

/// What bench/plot.py draws of one run: pages and Δ of a few requests, and how many requests and
/// pages are resident. Bounded in size however long the run is.
class Timeline {
 public:
  struct PagePoint {
    double time_s;
    std::int64_t length;  ///< tokens of text
    std::int32_t pages;
  };
  struct DemandPoint {
    double time_s;
    std::int64_t length;
    double delta;
  };
  struct Watched {
    std::uint64_t tag = 0;
    std::vector<PagePoint> pages;  ///< whenever the number changes
    std::vector<DemandPoint> demand;
  };
  struct ResidencyPoint {
    double time_s;
    std::int64_t running, waiting, pages;
  };

  /// Watches four requests: those with the longest output, the 90th and the 75th percentile, and
  /// the median.
  explicit Timeline(std::span<const TraceRequest> workload);

  /// One step, ending at `time_s`, before it is completed.
  void record(double time_s, const StepPlan& plan, std::span<const MeasuredDemand> demand,
              const PageManager& cache, std::int64_t running, std::int64_t waiting);

  [[nodiscard]] const std::vector<Watched>& watched() const noexcept { return watched_; }
  [[nodiscard]] const std::vector<ResidencyPoint>& residency() const noexcept { return residency_; }

 private:
  static constexpr std::size_t max_points = 4096;

  [[nodiscard]] Watched* find(std::uint64_t tag) noexcept;

  std::vector<Watched> watched_;
  std::vector<ResidencyPoint> residency_;
  std::int64_t stride_ = 1;  // steps between two points of residency_
  std::int64_t steps_ = 0;
};

}  // namespace growpage::replay
