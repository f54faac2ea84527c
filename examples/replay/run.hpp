// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "growpage/observe/decision_log.hpp"
#include "options.hpp"
#include "result.hpp"
#include "timeline.hpp"
#include "workload.hpp"

namespace growpage::replay {

/// What a run tells while it runs. All optional.
struct RunHooks {
  Timeline* timeline = nullptr;  ///< borrowed
  std::function<void(const DecisionRecord&)> on_decision;
  std::function<void(std::int64_t tokens)> on_progress;
};

/// The workload the options name: a trace, or the generated one.
[[nodiscard]] Trace make_workload(const ReplayOptions& options);

/// Replays `workload` under the policy called `policy`. Whatever goes wrong, bad options included,
/// is in RunResult::failure. Precondition: fill_defaults(options).
[[nodiscard]] RunResult run_policy(const ReplayOptions& options,
                                   std::span<const TraceRequest> workload, std::string_view policy,
                                   const RunHooks& hooks);

}  // namespace growpage::replay
