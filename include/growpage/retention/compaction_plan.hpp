// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "growpage/core/status.hpp"
#include "growpage/retention/retention.hpp"

namespace growpage {

/// Marks of a page in its request's block table, the input to planning.
enum PageMark : std::uint8_t {
  page_private = 1,  ///< no other sequence reads it: may be rewritten
  page_protected =
      2,  ///< holds slots that are always kept (sinks, protected prompt): never a victim
};

/// What a compaction will do to the block table: pure host data, made by `plan_compaction`.
struct CompactionPlan {
  static constexpr std::int32_t max_victims = 2;

  CompactionStrategy strategy = CompactionStrategy::fill_holes;
  /// Pages freed of rows: 1 = Compress & Hold, 2 = Shrink. Rows evicted per (layer, head) =
  /// victims · b.
  std::int32_t victims = 0;
  /// Logical indices (positions in the block table, before the compaction) of the pages that end up
  /// empty, ascending. in_order: the last private pages.
  std::int32_t victim[max_victims] = {-1, -1};
};

/// Whether pages of a request can be emptied: what eviction has to work with. Pure host data.
struct CompactionRoom {
  std::int32_t rewritable = 0;  ///< pages that give rows up
  std::int32_t candidates = 0;  ///< of these, pages that may be victims
  std::int32_t required = 0;    ///< rows of them that must stay: recent, sinks, protected prompt

  /// Rows kept in the rewritable pages when `victims` of them are emptied.
  [[nodiscard]] constexpr std::int32_t keep(std::int32_t victims,
                                            std::int32_t page_size) const noexcept {
    return (rewritable - victims) * page_size;
  }
  [[nodiscard]] constexpr bool fits(std::int32_t victims, std::int32_t page_size) const noexcept {
    return rewritable > victims && candidates >= victims && keep(victims, page_size) >= required;
  }
};

/// The room of a request whose pages are full, `marks` `[pages]` as PageManager::page_marks gives
/// them. With SharedPages::copy shared pages count as rewritable: they would be replaced by copies.
[[nodiscard]] CompactionRoom compaction_room(std::span<const std::uint8_t> marks,
                                             std::int32_t page_size, std::int32_t protected_slots,
                                             const RetentionOptions& retention,
                                             SharedPages shared) noexcept;

/// Chooses the victim pages (algorithm, section 5). fill_holes: the private, unprotected pages,
/// never the newest (last), with the fewest retained rows; ties → the later page. in_order: the
/// last private pages. Pure; deterministic.
///   marks      [pages]  PageMark bits per logical page
///   page_kept  [pages]  retained rows summed over layers and heads (KeepSet::page_kept)
///   victims    1 or 2
/// at_capacity when fewer than `victims` pages qualify: the request cannot be compacted this way.
[[nodiscard]] Result<CompactionPlan> plan_compaction(std::span<const std::uint8_t> marks,
                                                     std::span<const std::int32_t> page_kept,
                                                     std::int32_t victims,
                                                     CompactionStrategy strategy);

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/compaction_plan.ipp"
#endif
