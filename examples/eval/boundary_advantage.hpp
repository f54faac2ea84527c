// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "experiment.hpp"

namespace growpage::eval {

/// What growing was worth at a boundary: the NLL after compressing less that after growing.
struct BoundaryAdvantage {
  std::size_t problem = 0;
  std::int64_t number = 0;  ///< of the text's boundaries
  std::int64_t first = 0;   ///< output token that is the first to see what was decided
  bool grew = false;
  double delta = 0;
  double next_page = std::numeric_limits<double>::quiet_NaN();  ///< nats a token
  double to_end = std::numeric_limits<double>::quiet_NaN();     ///< nats, all that is left
};

/// By bins of Δ, with intervals over problems.
[[nodiscard]] Json summarise(const Experiment& experiment,
                             const std::vector<BoundaryAdvantage>& boundaries);

}  // namespace growpage::eval
