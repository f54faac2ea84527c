// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eval_options.hpp"
#include "growpage/policy/any_policy.hpp"

namespace growpage::eval {

/// What two runs of the same texts differ by.
struct Setup {
  std::string name;
  AnyPolicy policy{FullPolicy{}};
  SummaryOptions summary;
  DemandOptions demand;
  /// Texts of one problem share their prompt's pages. Off, so that every text is run alike.
  bool prefix_caching = false;
};

/// The policy called `name` as the options want it. `budget` is for fixed and zipage, in pages.
[[nodiscard]] Setup make_setup(const EvalOptions& options, const std::string& name,
                               std::int32_t budget = 0);

}  // namespace growpage::eval
