// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "growpage/cache/page_manager.hpp"
#include "growpage/detail/require.hpp"

namespace growpage {

GROWPAGE_INLINE Result<FenceId> PageManager::open_fence(SequenceId id, const Sequence& s,
                                                        std::int32_t more) noexcept {
  if (pool_.guard_room() < std::int64_t{s.pages} + more) return StatusCode::out_of_fences;
  Result<FenceId> fence = pool_.open_fence();
  if (!fence.ok()) return fence;
  operations_[fence->index] = {id, {}};
  return fence;
}

GROWPAGE_INLINE Result<CompactionTicket> PageManager::begin_compaction(
    SequenceId id, std::int32_t victims, CompactionStrategy strategy, SharedPages shared,
    std::vector<PageCopy>& copies) {
  Sequence* s = nullptr;
  if (Status status = usable(id, s); !status.ok()) return status;
  Status status;
  if (!detail::require_range(status, "victims", victims, 1, CompactionPlan::max_victims)) {
    return status;
  }
  const std::int32_t capacity = s->pages << page_shift_;
  if (!detail::require_range(status, "slots", s->slots, capacity, capacity) ||
      !detail::require_range(status, "computed slots", s->computed, capacity, capacity)) {
    return status;
  }
  std::int32_t own = 0;
  for (std::int32_t k = 0; k < s->pages; ++k) own += rewritable(*s, row(id)[k]) ? 1 : 0;
  const bool copy = shared == SharedPages::copy;
  if ((copy ? s->pages : own) < victims + 1) return StatusCode::at_capacity;
  const std::int32_t to_replace = copy ? s->pages - own : 0;
  if (to_replace > allocatable()) return StatusCode::out_of_pages;
  const Result<FenceId> fence = open_fence(id, *s, to_replace);
  if (!fence.ok()) return fence.status();

  if (to_replace > 0) replace_shared_pages(id, *s, *fence, copies);
  for (std::int32_t k = 0; k < s->pages; ++k) (void)pool_.guard(*fence, row(id)[k]);
  s->fence = *fence;
  s->rewriting = true;
  return CompactionTicket{id, *fence, victims, strategy};
}

GROWPAGE_INLINE bool PageManager::rewritable(const Sequence& s, PageId page) const noexcept {
  return pool_.refcount(page) == 1 && pool_.pins(page) == (s.rewriting ? 1U : 0U);
}

/// Private copies take the place of pages others read; the fence guards the sources, which the
/// copies still have to read.
GROWPAGE_INLINE void PageManager::replace_shared_pages(SequenceId id, Sequence& s, FenceId fence,
                                                       std::vector<PageCopy>& copies) {
  PageId* pages = row(id);
  std::int32_t first = s.pages;
  for (std::int32_t k = s.pages; k-- > 0;) {
    if (!rewritable(s, pages[k])) first = k;
  }
  step_back(id, s, first);  // while the shared pages are still here to read the tokens from
  for (std::int32_t k = first; k < s.pages; ++k) {
    const PageId source = pages[k];
    if (rewritable(s, source)) continue;
    pages[k] = allocate();
    copies.push_back({source, pages[k]});
    ++copied_pages_;
    (void)pool_.guard(fence, source);
    drop_reference(source);
  }
}

GROWPAGE_INLINE Status PageManager::page_marks(SequenceId id, std::int32_t protected_slots,
                                               std::span<std::uint8_t> marks) const {
  const Sequence* s = find(id);
  if (s == nullptr) return StatusCode::stale_id;
  if (s->swapped) return StatusCode::busy;
  Status status;
  if (!detail::require_range(status, "marks.size()", static_cast<std::int64_t>(marks.size()),
                             s->pages, INT64_MAX)) {
    return status;
  }
  for (std::int32_t k = 0; k < s->pages; ++k) {
    const bool is_private = rewritable(*s, row(id)[k]);
    const bool is_protected = (k << page_shift_) < protected_slots;
    marks[static_cast<std::size_t>(k)] = static_cast<std::uint8_t>(
        (is_private ? page_private : 0) | (is_protected ? page_protected : 0));
  }
  return {};
}

GROWPAGE_INLINE bool PageManager::is_compacting(const CompactionTicket& ticket) const noexcept {
  const Sequence* s = find(ticket.sequence);
  return s != nullptr && s->rewriting && s->fence == ticket.fence;
}

GROWPAGE_INLINE Status PageManager::check_plan(SequenceId id, const Sequence& s,
                                               const CompactionTicket& ticket,
                                               const CompactionPlan& plan,
                                               std::span<const std::int32_t> page_kept) const {
  Status status;
  if (!detail::require_range(status, "CompactionPlan::victims", plan.victims, ticket.victims,
                             ticket.victims)) {
    return status;
  }
  if (!page_kept.empty() &&
      !detail::require_range(status, "page_kept.size()",
                             static_cast<std::int64_t>(page_kept.size()), s.pages, s.pages)) {
    return status;
  }
  for (std::int32_t v = 0; v < plan.victims; ++v) {
    const std::int32_t from = v == 0 ? 0 : plan.victim[v - 1] + 1;  // ascending
    if (!detail::require_range(status, "CompactionPlan::victim", plan.victim[v], from,
                               s.pages - 1)) {
      return status;
    }
    if (!rewritable(s, row(id)[plan.victim[v]])) {
      return Status::invalid("CompactionPlan::victim", std::int64_t{plan.victim[v]},
                             "a private page");
    }
  }
  return {};
}

GROWPAGE_INLINE void PageManager::withdraw_rewritten(SequenceId id, const Sequence& s,
                                                     const CompactionPlan& plan,
                                                     std::span<const std::int32_t> page_kept,
                                                     std::int32_t rows_per_page) noexcept {
  bool shifted = false;  // in_order: everything behind the first hole moves
  for (std::int32_t k = 0; k < s.pages; ++k) {
    const PageId page = row(id)[k];
    if (!rewritable(s, page)) continue;
    const bool changed = page_kept.empty() || shifted ||
                         page_kept[static_cast<std::size_t>(k)] < rows_per_page ||
                         k == plan.victim[0] || k == plan.victim[1];
    if (!changed) continue;
    unpublish(page);
    shifted = plan.strategy == CompactionStrategy::in_order;
  }
}

GROWPAGE_INLINE Status PageManager::apply_compaction(const CompactionTicket& ticket,
                                                     const CompactionPlan& plan,
                                                     std::span<const std::int32_t> page_kept,
                                                     std::int32_t rows_per_page) {
  const SequenceId id = ticket.sequence;
  Sequence* s = find(id);
  if (s == nullptr) return StatusCode::stale_id;
  if (!is_compacting(ticket)) return StatusCode::protocol_error;
  if (Status status = check_plan(id, *s, ticket, plan, page_kept); !status.ok()) return status;

  withdraw_rewritten(id, *s, plan, page_kept, rows_per_page);
  PageId* pages = row(id);
  for (std::int32_t v = plan.victims; v-- > 0;) {  // the first victim ends up last
    std::rotate(pages + plan.victim[v], pages + plan.victim[v] + 1, pages + s->pages);
    if (v > 0) drop_tail(id, *s, s->pages - 1);
  }
  s->slots -= plan.victims << page_shift_;
  s->computed = s->slots;
  s->written = s->slots;
  s->floor_length = s->length;
  s->floor_pages = s->pages;
  ++s->compactions;
  s->rewriting = false;
  s->publishes = false;  // later K/V depends on rows that are gone
  return {};
}

GROWPAGE_INLINE Status PageManager::cancel_compaction(const CompactionTicket& ticket) {
  if (find(ticket.sequence) == nullptr) return StatusCode::stale_id;
  if (!is_compacting(ticket)) return StatusCode::protocol_error;
  return complete_fence(ticket.fence);
}

}  // namespace growpage
