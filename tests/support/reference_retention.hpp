// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "growpage/retention/compaction_plan.hpp"

/// Selection and compaction of one (layer, KV head), written from the formulas with sorts and
/// vectors (algorithm, sections 4 and 5). Shares no code with any backend.
namespace growpage::reference {

struct SelectionCase {
  std::int32_t page_size = 0;
  std::vector<float> scores;        ///< [slot]
  std::vector<std::uint8_t> marks;  ///< [page]
  std::int32_t recent = 0;
  std::int32_t protected_slots = 0;
  std::int32_t quota = 0;  ///< k_loc for this page size
  std::int32_t keep = 0;   ///< among the private pages' slots
};

/// Which slots stay. The local quota is taken from slots that are not kept anyway; when the quotas
/// do not fit, every page gets an equal share of what is left, rounded down, and the rest is
/// filled globally.
inline std::vector<bool> selected(const SelectionCase& in) {
  const auto slots = static_cast<std::int32_t>(in.scores.size());
  const auto is_private = [&](std::int32_t page) {
    return (in.marks[static_cast<std::size_t>(page)] & page_private) != 0;
  };
  const auto better = [&](std::int32_t a, std::int32_t b) {
    const float x = in.scores[static_cast<std::size_t>(a)];
    const float y = in.scores[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  };
  std::vector<bool> kept(in.scores.size(), false);
  std::int32_t budget = in.keep;
  std::vector<std::int32_t> eligible;
  for (std::int32_t s = 0; s < slots; ++s) {
    const bool mine = is_private(s / in.page_size);
    if (!mine || s >= slots - in.recent || s < in.protected_slots) {
      kept[static_cast<std::size_t>(s)] = true;
      if (mine) --budget;
    } else {
      eligible.push_back(s);
    }
  }
  std::sort(eligible.begin(), eligible.end(), better);

  std::int32_t private_pages = 0;
  for (std::int32_t p = 0; p < static_cast<std::int32_t>(in.marks.size()); ++p) {
    private_pages += is_private(p) ? 1 : 0;
  }
  const std::int32_t quota = private_pages > 0 ? std::min(in.quota, budget / private_pages) : 0;
  std::vector<std::int32_t> taken(in.marks.size(), 0);
  for (const std::int32_t s : eligible) {
    std::int32_t& count = taken[static_cast<std::size_t>(s / in.page_size)];
    if (count >= quota) continue;
    ++count;
    --budget;
    kept[static_cast<std::size_t>(s)] = true;
  }
  for (const std::int32_t s : eligible) {
    if (budget <= 0) break;
    if (kept[static_cast<std::size_t>(s)]) continue;
    kept[static_cast<std::size_t>(s)] = true;
    --budget;
  }
  return kept;
}

/// A row that moves, in logical slots before the compaction.
struct Move {
  std::int32_t from = 0;
  std::int32_t to = 0;
};

inline std::vector<Move> moves(const std::vector<bool>& kept,
                               const std::vector<std::uint8_t>& marks, std::int32_t page_size,
                               const CompactionPlan& plan) {
  const auto slots = static_cast<std::int32_t>(kept.size());
  const auto is_victim = [&](std::int32_t page) {
    return std::find(plan.victim, plan.victim + plan.victims, page) != plan.victim + plan.victims;
  };
  std::vector<std::int32_t> sources;
  std::vector<std::int32_t> targets;
  for (std::int32_t s = 0; s < slots; ++s) {
    const std::int32_t page = s / page_size;
    const bool stays = kept[static_cast<std::size_t>(s)];
    if ((marks[static_cast<std::size_t>(page)] & page_private) == 0) continue;
    if (plan.strategy == CompactionStrategy::in_order) {
      if (stays) sources.push_back(s);
      targets.push_back(s);
    } else if (is_victim(page)) {
      if (stays) sources.push_back(s);
    } else if (!stays) {
      targets.push_back(s);
    }
  }
  std::vector<Move> out;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] != targets[i]) out.push_back({sources[i], targets[i]});
  }
  return out;
}

/// Logical pages in their order after the compaction: the victims go to the end.
inline std::vector<std::int32_t> page_order(std::int32_t pages, const CompactionPlan& plan) {
  std::vector<std::int32_t> order;
  for (std::int32_t p = 0; p < pages; ++p) {
    if (std::find(plan.victim, plan.victim + plan.victims, p) == plan.victim + plan.victims) {
      order.push_back(p);
    }
  }
  order.insert(order.end(), plan.victim, plan.victim + plan.victims);
  return order;
}

}  // namespace growpage::reference
