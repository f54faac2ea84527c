// SPDX-License-Identifier: Apache-2.0
#include "demand_process.hpp"

#include <algorithm>
#include <cmath>

#include "random.hpp"

namespace growpage::replay {

double DemandProcess::delta(std::uint64_t request, std::int64_t page) const noexcept {
  // The moving-average form of AR(1), cut where φ^j is below 1e-4 and scaled back to variance 1:
  // no state, so pages can be asked for in any order.
  const std::uint64_t key = mix(seed, request);
  double sum = 0;
  double variance = 0;
  double weight = 1;
  for (std::uint64_t j = 0; std::abs(weight) > 1e-4; ++j) {
    sum += weight * normal(mix(key, static_cast<std::uint64_t>(page) - j));
    variance += weight * weight;
    weight *= correlation;
  }
  return mean + deviation * sum / std::sqrt(variance);
}

Demand DemandProcess::demand(std::uint64_t request, std::int64_t page,
                             std::int64_t terms) const noexcept {
  const double long_ratio = std::clamp(0.25 + 0.05 * normal(mix(~seed, request)), 0.1, 0.9);
  const double count = static_cast<double>(terms);
  return {(long_ratio + delta(request, page)) * count, long_ratio * count, terms};
}

}  // namespace growpage::replay
