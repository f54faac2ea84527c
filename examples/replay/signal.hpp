// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <span>
#include <vector>

#include "growpage/core/ids.hpp"
#include "growpage/core/status.hpp"
#include "growpage/schedule/step_plan.hpp"

namespace growpage::replay {

/// The text of a request so far.
using TextOf = std::function<std::span<const TokenId>(RequestId)>;

/// What stands in for the engine in a replay: it carries a plan out, measures Δ, and says how long
/// the step took.
template <class S>
concept Signal = requires(S& signal, const StepPlan& plan, const TextOf& text,
                          std::vector<FenceId>& fences, std::vector<MeasuredDemand>& demand) {
  typename S::Cache;
  { S::name } -> std::convertible_to<const char*>;
  { signal.before_forward(plan, fences) } -> std::same_as<Status>;
  { signal.forward(plan, text) } -> std::same_as<Status>;
  { signal.after_forward(plan, demand) } -> std::same_as<Status>;
  { signal.step_seconds() } -> std::same_as<double>;
};

}  // namespace growpage::replay
