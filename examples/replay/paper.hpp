// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <span>
#include <string_view>

namespace growpage::replay {

/// A row of the tables of "GrowPage" (arXiv 2609.03494): Qwen3-8B on one A100-80GB, page 256,
/// utilisation 0.9. NaN = not published. Percentages, milliseconds and counts as printed there.
struct PaperRow {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  std::string_view policy;
  double kv_tokens = unknown;
  double tokens_per_s = unknown;
  double tpot_ms = unknown;
  double resident = unknown;
  double grow = unknown;
  double grow_percent = unknown;
  double compact = unknown;
  double shrink = unknown;
  double fallback = unknown;
  double preempt = unknown;
};

/// Capacity-control ablation on AMC23 (1280 requests); "full" is nano-vLLM.
inline constexpr double not_printed = PaperRow::unknown;
inline constexpr PaperRow paper_amc23[] = {
    {"full", not_printed, 995, 872},
    {"fixed", 4096, 1874, 136, not_printed, 0, 0, 22285, not_printed, 0, 19},
    {"zipage", 4096, 1805, 138},
    {"growpage", 3164, 2261, 122, not_printed, 9500, 30.9, 21203, not_printed, 597, 1361},
    {"random", 3728, 2008, 137, not_printed, 9345, 30.4, 21399, not_printed, 944, 1894},
    {"inverse", 6167, 1340, 175, not_printed, 19881, 66.7, 9931, not_printed, 286, 2997},
    {"shrink", 2099, 2546, 107, not_printed, 17909, 45.5, 12540, 8927, 103, 4668},
};

/// Mixed workload (AMC23 + AIME24 + GSM8K, 3559 requests). Its zipage row is the 4096-token budget.
inline constexpr PaperRow paper_mixed[] = {
    {"zipage", 4096, 1690, not_printed, 100},
    {"growpage", 3442, 2213, not_printed, 121},
};

/// Null when the paper has no such row.
[[nodiscard]] constexpr const PaperRow* find_row(std::span<const PaperRow> rows,
                                                 std::string_view policy) noexcept {
  for (const PaperRow& row : rows) {
    if (row.policy == policy) return &row;
  }
  return nullptr;
}

}  // namespace growpage::replay
