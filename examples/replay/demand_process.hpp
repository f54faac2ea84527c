// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/demand/demand.hpp"

namespace growpage::replay {

/// Δ without attention: a stationary AR(1) process per request, one value per page of text,
///     Δ_k = mean + deviation · x_k,   x_k = φ·x_{k−1} + √(1 − φ²)·ε_k,   ε_k ~ N(0, 1).
/// A pure function of (seed, request, page of its text): every policy sees the same Δ at the same
/// place, whatever it held there. So it knows nothing of what was evicted, and a policy that
/// follows it keeps no better tokens than a random one.
struct DemandProcess {
  std::uint64_t seed = 1;
  double correlation = 0.6;  ///< φ, an assumption
  /// Solve P(Δ > 0) = 0.309, the paper's grow ratio of growpage on AMC23, and
  /// P(Δ < −0.005 | Δ ≤ 0) = 0.416, the share of shrinks among its shrink policy's compactions.
  double mean = -0.00235;
  double deviation = 0.00472;

  [[nodiscard]] double delta(std::uint64_t request, std::int64_t page) const noexcept;
  /// Δ as sums over `terms` (layer, KV head) pairs around a plausible long-term ratio.
  [[nodiscard]] Demand demand(std::uint64_t request, std::int64_t page,
                              std::int64_t terms) const noexcept;
};

}  // namespace growpage::replay
