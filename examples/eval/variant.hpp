// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval_options.hpp"

namespace growpage::eval {

/// growpage with one option changed.
struct Variant {
  const char* group;
  std::string name;
  EvalOptions options;
  bool shared_prompts = false;  ///< the texts of a problem share its prompt's pages
};

/// Those that change Δ: the summaries and what is measured with them. The first one changes
/// nothing.
[[nodiscard]] std::vector<Variant> demand_variants(const EvalOptions& base);
/// Those that change what is done with Δ, or what is kept.
[[nodiscard]] std::vector<Variant> retention_variants(const EvalOptions& base);

}  // namespace growpage::eval
