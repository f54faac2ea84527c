// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options.hpp"

namespace growpage::replay {

/// Exit codes of the program.
inline constexpr int exit_good = 0;
inline constexpr int exit_failed = 1;     ///< a run lost something, or could not go on
inline constexpr int exit_bad_input = 2;  ///< flags, or a trace that cannot be read

/// Replays what the options say under each policy, prints the table and writes the files asked for.
/// Returns the exit code.
int run_session(const ReplayOptions& options);

/// `--demo`: a short session on each signal with the seven policies, and what they show.
int run_demo(const ReplayOptions& options);

}  // namespace growpage::replay
