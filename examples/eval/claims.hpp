// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "json.hpp"

namespace growpage::eval {

/// What a claim's number is held against. All tolerances are here.
struct ClaimBounds {
  double rho = 0;               ///< of Δ and the change of the working set: the interval above it
  double sign_agreement = 0.5;  ///< above
  double advantage = 0;         ///< of the top bin less that of the bottom one: above
  double quality = 0;           ///< growpage's less another policy's: at least
  double equal_kv = 0.05;  ///< a policy that holds this share less still counts as holding as much
};

struct Claim {
  std::string text;
  Interval measured;
  bool held = false;
  bool clear = false;  ///< the interval says so too
};

/// The claims that the parts in `results` bear on.
[[nodiscard]] std::vector<Claim> judge(const Json& results, const ClaimBounds& bounds = {});
/// Whether there is one and all are held.
[[nodiscard]] bool all_held(const std::vector<Claim>& claims);

}  // namespace growpage::eval
