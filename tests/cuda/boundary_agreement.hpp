// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cuda/boundary_scene.hpp"

/// Agreement of the device with the scalar CPU backend.
namespace growpage::test {

struct Tolerance {
  double score = 2e-5;    ///< relative
  double p = 5e-6;        ///< D_p may fall on either side of a sum this close to p, relative
  double entropy = 2e-5;  ///< of each term
};

/// r̄ from a sum of the device, in units of the CPU's sums.
inline double from_units(std::uint64_t units) { return static_cast<double>(units) * 0x1p-40; }

/// Compares every request of a batch; a score beyond a request's slots must not have been touched.
inline void check_boundary(BoundaryScene& scene, const BoundaryCall& call,
                           const Tolerance& tolerance = {}) {
  const BoundaryOutcome got = scene.device(call);
  for (std::int32_t r = 0; r < scene.requests(); ++r) {
    const float p = call.demand.p;
    const BoundaryScene::Oracle want = scene.oracle(call, r, p);
    const std::int32_t slots = scene.spec.slots[static_cast<std::size_t>(r)];
    CAPTURE(r, slots);
    if (call.sums) {
      Demand low = want.demand;
      Demand high = want.demand;
      double slack = tolerance.entropy * static_cast<double>(want.demand.count);
      if (call.demand.metric == DemandMetric::top_p) {
        slack = 1e-9;  // of the fixed-point sums
        if (p < 1.0F) {
          const auto shift = static_cast<float>(tolerance.p);
          low = scene.oracle(call, r, p * (1.0F - shift)).demand;
          high = scene.oracle(call, r, std::min(p * (1.0F + shift), 0.9999999F)).demand;
        }
      }
      const double got_short = from_units(got.sums[static_cast<std::size_t>(2 * r)]);
      const double got_long = from_units(got.sums[static_cast<std::size_t>(2 * r + 1)]);
      CAPTURE(want.demand.short_sum, want.demand.long_sum, want.demand.count);
      CHECK(got_short >= low.short_sum - slack);
      CHECK(got_short <= high.short_sum + slack);
      CHECK(got_long >= low.long_sum - slack);
      CHECK(got_long <= high.long_sum + slack);
    }
    double worst = 0;
    bool intact = true;
    for (std::int32_t row = 0; row < scene.rows(); ++row) {
      for (std::int32_t s = 0; s < scene.score_stride(); ++s) {
        const auto at = static_cast<std::size_t>(row * scene.score_stride() + s);
        const float x = got.scores[static_cast<std::size_t>(r * scene.request_stride()) + at];
        if (!call.scores || s >= slots) {
          intact = intact && (x == BoundaryScene::untouched || x == BoundaryScene::not_old);
          continue;
        }
        const double w = static_cast<double>(want.scores[at]);
        const double allowed = 1e-9 + tolerance.score * std::max(std::abs(w), 1e-3);
        const double distance = std::abs(static_cast<double>(x) - w) / allowed;
        worst = std::isnan(distance) ? INFINITY : std::max(worst, distance);
      }
    }
    CHECK(worst <= 1.0);
    CHECK(intact);
  }
}

}  // namespace growpage::test
