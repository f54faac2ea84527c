// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>
#include <string>

#include "growpage/detail/require.hpp"
#include "growpage/retention/compaction_plan.hpp"

namespace growpage {

GROWPAGE_INLINE CompactionRoom compaction_room(std::span<const std::uint8_t> marks,
                                               std::int32_t page_size, std::int32_t protected_slots,
                                               const RetentionOptions& retention,
                                               SharedPages shared) noexcept {
  const auto pages = static_cast<std::int32_t>(marks.size());
  const std::int32_t recent_from = pages * page_size - retention.recent;
  CompactionRoom room;
  for (std::int32_t p = 0; p < pages; ++p) {
    const std::uint8_t mark = marks[static_cast<std::size_t>(p)];
    if ((mark & page_private) == 0 && shared == SharedPages::keep) continue;
    ++room.rewritable;
    const bool newest = p == pages - 1;
    if (retention.strategy == CompactionStrategy::in_order ||
        (!newest && (mark & page_protected) == 0)) {
      ++room.candidates;
    }
    const std::int32_t first = p * page_size;
    const std::int32_t last = first + page_size;
    room.required += std::max(0, std::min(last, protected_slots) - first);
    room.required += std::max(0, last - std::max({first, recent_from, protected_slots}));
  }
  return room;
}

GROWPAGE_INLINE Result<CompactionPlan> plan_compaction(std::span<const std::uint8_t> marks,
                                                       std::span<const std::int32_t> page_kept,
                                                       std::int32_t victims,
                                                       CompactionStrategy strategy) {
  if (victims < 1 || victims > CompactionPlan::max_victims) {
    return Status::invalid("victims", std::int64_t{victims}, "1 or 2");
  }
  if (page_kept.size() != marks.size()) {
    return Status::invalid("page_kept.size()", static_cast<std::int64_t>(page_kept.size()),
                           "marks.size() (" + std::to_string(marks.size()) + ")");
  }
  const auto pages = static_cast<std::int32_t>(marks.size());
  CompactionPlan plan;
  plan.strategy = strategy;
  for (; plan.victims < victims; ++plan.victims) {
    std::int32_t best = -1;
    std::int32_t least = std::numeric_limits<std::int32_t>::max();
    // fill_holes never takes the newest page; in_order always empties the last private ones.
    const std::int32_t last = strategy == CompactionStrategy::fill_holes ? pages - 2 : pages - 1;
    for (std::int32_t p = last; p >= 0; --p) {
      if ((marks[p] & page_private) == 0 || (plan.victims == 1 && p == plan.victim[0])) continue;
      if (strategy == CompactionStrategy::in_order) {
        best = p;
        break;
      }
      if ((marks[p] & page_protected) != 0) continue;
      if (best >= 0 && page_kept[p] >= least) continue;
      best = p;
      least = page_kept[p];
    }
    if (best < 0) return StatusCode::at_capacity;
    plan.victim[plan.victims] = best;
  }
  if (plan.victims == 2) std::sort(plan.victim, plan.victim + 2);
  return plan;
}

}  // namespace growpage
