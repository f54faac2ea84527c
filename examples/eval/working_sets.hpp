// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiment.hpp"

namespace growpage::eval {

/// Follows `texts` and grows at every boundary that has candidates, nothing is evicted; with
/// `demand` Δ is measured there.
[[nodiscard]] Setup growing(const EvalOptions& options, bool demand);

/// [position] the step's true working set as a ratio of its candidates; NaN where there were none.
using WorkingSets = std::vector<float>;

/// Of each text, nothing evicted: what the library's demand kernel finds for each step's own query,
/// which a short summary of β = 0 is.
[[nodiscard]] Result<std::vector<WorkingSets>> true_working_sets(const Experiment& experiment,
                                                                 std::span<const Text> texts);

/// Mean over the page that begins at position `first`. NaN when a step of it is missing.
[[nodiscard]] double page_mean(const WorkingSets& sets, std::int64_t first, std::int64_t page_size);

/// Over the steps before position `end`, smoothed as summaries smooth queries: the first one's as
/// it is, then β · old + (1 − β) · new. NaN when there are none.
[[nodiscard]] double smoothed(const WorkingSets& sets, std::int64_t end, double beta);

}  // namespace growpage::eval
