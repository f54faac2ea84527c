// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "growpage/retention/compaction_plan.hpp"
#include "support/random_cache.hpp"

namespace growpage::test {

/// A compaction of a one-layer, one-head cache whose retained rows are drawn at random: written
/// from algorithm.md, section 5, not from the library's kernels.
struct RandomCompaction {
  CompactionPlan plan;
  std::vector<std::int32_t> page_kept;  ///< [page]
  std::vector<std::pair<std::int32_t, std::int32_t>>
      moves;                        ///< (from, to) logical slots, old order
  std::vector<std::uint8_t> marks;  ///< [page]
};

inline Result<RandomCompaction> random_compaction(const std::vector<std::uint8_t>& marks,
                                                  std::int32_t page_size,
                                                  std::int32_t protected_slots, std::int32_t recent,
                                                  std::int32_t victims, CompactionStrategy strategy,
                                                  Random& random) {
  const auto pages = static_cast<std::int32_t>(marks.size());
  const std::int32_t slots = pages * page_size;
  const auto is_private = [&](std::int32_t slot) {
    return (marks[static_cast<std::size_t>(slot / page_size)] & page_private) != 0;
  };
  std::vector<std::int32_t> open;  // private slots that may go
  std::int32_t required = 0;
  std::int32_t private_slots = 0;
  for (std::int32_t s = 0; s < slots; ++s) {
    if (!is_private(s)) continue;
    ++private_slots;
    if (s < protected_slots || s >= slots - recent) {
      ++required;
    } else {
      open.push_back(s);
    }
  }
  const std::int32_t evict = victims * page_size;
  if (private_slots - evict < required) return StatusCode::at_capacity;
  random.shuffle(open);
  std::vector<bool> kept(static_cast<std::size_t>(slots), true);
  for (std::int32_t i = 0; i < evict; ++i)
    kept[static_cast<std::size_t>(open[static_cast<std::size_t>(i)])] = false;

  RandomCompaction out;
  out.marks = marks;
  out.page_kept.assign(static_cast<std::size_t>(pages), 0);
  for (std::int32_t s = 0; s < slots; ++s) {
    out.page_kept[static_cast<std::size_t>(s / page_size)] +=
        kept[static_cast<std::size_t>(s)] ? 1 : 0;
  }
  Result<CompactionPlan> plan = plan_compaction(marks, out.page_kept, victims, strategy);
  if (!plan.ok()) return plan.status();
  out.plan = *plan;

  const auto is_victim = [&](std::int32_t slot) {
    const std::int32_t page = slot / page_size;
    return page == plan->victim[0] || page == plan->victim[1];
  };
  std::vector<std::int32_t> sources, targets;
  for (std::int32_t s = 0; s < slots; ++s) {
    if (!is_private(s)) continue;
    const bool stays = kept[static_cast<std::size_t>(s)];
    if (strategy == CompactionStrategy::in_order) {
      if (stays) sources.push_back(s);
      targets.push_back(s);
    } else if (is_victim(s)) {
      if (stays) sources.push_back(s);
    } else if (!stays) {
      targets.push_back(s);
    }
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] != targets[i]) out.moves.emplace_back(sources[i], targets[i]);
  }
  return out;
}

/// `rows` `[slot]` after the compaction: moved, the victims' places closed up.
inline void compact_rows(std::vector<std::uint64_t>& rows, const RandomCompaction& compaction,
                         std::int32_t page_size) {
  for (const auto& [from, to] : compaction.moves) {
    rows[static_cast<std::size_t>(to)] = rows[static_cast<std::size_t>(from)];
  }
  for (std::int32_t v = compaction.plan.victims; v-- > 0;) {
    const auto first = rows.begin() + compaction.plan.victim[v] * page_size;
    rows.erase(first, first + page_size);
  }
}

}  // namespace growpage::test
