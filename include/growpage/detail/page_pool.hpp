// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/memory/page_pool.hpp"

namespace growpage {

inline PageId PagePool::allocate() noexcept {
  PageId page;
  if (free_head_ != 0) {
    page.value = static_cast<std::int32_t>(free_head_ - 1);
    free_head_ = entry(page).refs_or_next;
  } else if (next_fresh_ < counts_.total) {
    page.value = static_cast<std::int32_t>(next_fresh_++);
  } else {
    return page;
  }
  entry(page) = {.refs_or_next = 1, .pins = 0, .is_published = 0, .on_free_list = 0};
  --counts_.free;
  ++counts_.referenced;
  return page;
}

/// Where a page goes that has no reference any more; the caller has taken it out of its old count.
inline PageFate PagePool::settle(PageId page, Entry& e) noexcept {
  if (e.pins != 0) {
    ++counts_.in_flight;
    return PageFate::in_flight;
  }
  if (e.is_published != 0) {
    ++counts_.cached;
    return PageFate::cached;
  }
  e.refs_or_next = free_head_;
  e.on_free_list = 1;
  free_head_ = static_cast<std::uint32_t>(page.value) + 1;
  ++counts_.free;
  return PageFate::freed;
}

inline void PagePool::reclaim(PageId page) noexcept {
  entry(page) = {.refs_or_next = 1, .pins = 0, .is_published = 0, .on_free_list = 0};
  --counts_.cached;
  ++counts_.referenced;
}

inline void PagePool::retain(PageId page) noexcept {
  Entry& e = entry(page);
  if (e.refs_or_next++ != 0) return;
  --(e.pins != 0 ? counts_.in_flight : counts_.cached);
  ++counts_.referenced;
}

inline PageFate PagePool::release(PageId page) noexcept {
  Entry& e = entry(page);
  if (--e.refs_or_next != 0) return PageFate::referenced;
  --counts_.referenced;
  return settle(page, e);
}

inline void PagePool::pin(PageId page) noexcept {
  Entry& e = entry(page);
  if (e.pins++ != 0 || e.refs_or_next != 0) return;
  --counts_.cached;
  ++counts_.in_flight;
}

inline PageFate PagePool::unpin(PageId page) noexcept {
  Entry& e = entry(page);
  --e.pins;
  if (e.refs_or_next != 0) return PageFate::referenced;
  --counts_.in_flight;
  return settle(page, e);
}

inline PageFate PagePool::set_published(PageId page, bool published) noexcept {
  Entry& e = entry(page);
  const bool was_published = e.is_published != 0;
  e.is_published = published ? 1 : 0;
  if (e.refs_or_next != 0) return PageFate::referenced;
  if (e.pins != 0) return PageFate::in_flight;
  if (was_published) --counts_.cached;
  return settle(page, e);
}

inline bool PagePool::is_open(FenceId fence) const noexcept {
  return fence.index < fences_.size() && fences_[fence.index].open &&
         fences_[fence.index].generation == fence.generation;
}

inline Result<FenceId> PagePool::open_fence() noexcept {
  if (free_fence_ == 0) return StatusCode::out_of_fences;
  const std::uint32_t index = free_fence_ - 1;
  Fence& fence = fences_[index];
  free_fence_ = fence.first;
  fence.first = 0;
  fence.open = true;
  ++open_fences_;
  return FenceId{index, fence.generation};
}

inline Status PagePool::guard(FenceId fence, PageId page) noexcept {
  if (!is_open(fence)) return StatusCode::stale_id;
  if (guard_room() == 0) return StatusCode::out_of_fences;
  std::size_t node = 0;
  if (free_guard_ != 0) {
    node = free_guard_ - 1;
    free_guard_ = guards_[node].next;
  } else {
    node = static_cast<std::size_t>(next_guard_++);
  }
  Fence& f = fences_[fence.index];
  guards_[node] = {page.value, f.first};
  f.first = static_cast<std::uint32_t>(node + 1);
  ++guards_used_;
  pin(page);
  return {};
}

template <class F>
Status PagePool::complete_fence(FenceId fence, F&& on_fate) noexcept {
  if (!is_open(fence)) return StatusCode::stale_id;
  Fence& f = fences_[fence.index];
  std::uint32_t node = f.first;
  f.open = false;
  if (++f.generation == 0) f.generation = 1;
  f.first = free_fence_;
  free_fence_ = fence.index + 1;
  --open_fences_;
  while (node != 0) {
    Guard& guard = guards_[node - 1];
    const PageId page{guard.page};
    const std::uint32_t next = guard.next;
    guard.next = free_guard_;
    free_guard_ = node;
    node = next;
    --guards_used_;
    on_fate(page, unpin(page));
  }
  return {};
}

inline bool PagePool::is_free(PageId page) const noexcept {
  return page.offset() >= next_fresh_ || entry(page).on_free_list != 0;
}

inline std::uint32_t PagePool::refcount(PageId page) const noexcept {
  const Entry& e = entry(page);
  return e.on_free_list != 0 ? 0 : e.refs_or_next;
}

inline std::uint32_t PagePool::pins(PageId page) const noexcept { return entry(page).pins; }

inline bool PagePool::published(PageId page) const noexcept {
  return entry(page).is_published != 0;
}

}  // namespace growpage
