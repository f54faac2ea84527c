// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "options.hpp"
#include "paper.hpp"
#include "result.hpp"
#include "timeline.hpp"
#include "trace.hpp"

namespace growpage::replay {

/// One or two sentences: what was replayed, on which signal, into which pool, on which clock.
[[nodiscard]] std::string describe(const ReplayOptions& options, const Trace& workload);

/// The paper's rows a run with these options stands beside: the same workload, whole, with the
/// process signal at the paper's scale. Empty otherwise.
[[nodiscard]] std::span<const PaperRow> comparable_rows(const ReplayOptions& options);

/// The paper's columns, a line per policy, each followed by the paper's own row where there is one.
[[nodiscard]] std::string table(std::span<const RunResult> results,
                                std::span<const PaperRow> paper);

/// Everything of the runs as JSON, for scripts and bench/plot.py.
[[nodiscard]] std::string to_json(const ReplayOptions& options, const Trace& workload,
                                  std::span<const RunResult> results,
                                  std::span<const PaperRow> paper);

/// Timelines, one per result and in their order, as JSON for bench/plot.py.
[[nodiscard]] std::string timelines_json(const ReplayOptions& options,
                                         std::span<const RunResult> results,
                                         std::span<const Timeline> timelines);

}  // namespace growpage::replay
