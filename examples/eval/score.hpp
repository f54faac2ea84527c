// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "experiment.hpp"

namespace growpage::eval {

/// How well a setup does on all problems, and what it cost.
struct Score {
  Setup setup;
  std::int32_t budget = 0;      ///< pages, of fixed and zipage
  std::vector<double> quality;  ///< [problem] share of its texts that passed, or −NLL per token
  RunResult run;
};

/// Runs a setup over all problems: `copies` generations of each, or its solution once when there
/// are no answers.
Status run_score(const Experiment& experiment, std::int32_t copies, Score& score);

/// Bootstrap over problems of the mean quality, and of how much more it is than another's.
[[nodiscard]] Interval quality_of(const Experiment& experiment, const Score& score);
[[nodiscard]] Interval quality_difference(const Experiment& experiment, std::span<const double> a,
                                          std::span<const double> b);

/// Quality, KV tokens, tokens/s and counts as one object.
[[nodiscard]] Json to_json(const Experiment& experiment, const Score& score);

}  // namespace growpage::eval
