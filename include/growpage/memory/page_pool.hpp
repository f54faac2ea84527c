// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "growpage/core/ids.hpp"
#include "growpage/core/status.hpp"
#include "growpage/detail/lazy_array.hpp"
#include "growpage/observe/counters.hpp"

namespace growpage {

/// What became of a page when a reference or pin on it went away.
enum class PageFate : std::int32_t {
  referenced = 0,  ///< others still hold it
  freed = 1,       ///< back in the free list
  cached = 2,      ///< unreferenced but published: the caller puts it into its eviction order
  in_flight = 3,   ///< unreferenced, but a fence or pin guards it
};

/// The physical pages: a free list, a reference count per page (= number of block tables that hold
/// it), pins, and fences. Bookkeeping only; it never sees the KV memory. Every call is O(1) (a
/// fence's completion is O(pages it guards)), allocates nothing after construction and holds no
/// lock.
///
/// A pin keeps an unreferenced page from being handed out. A fence is a set of pins that goes away
/// at once, when the device work that reads or writes those pages has completed. A page is in
/// exactly one state: free, cached (published, no reference, no pin), referenced, or in flight (no
/// reference, but pinned).
class PagePool {
 public:
  /// Bounds the guard list of the largest pools (8 bytes of lazily backed memory a guard).
  static constexpr std::int64_t max_guards = std::int64_t{1} << 27;

  /// `pages` from 1 to 2^31 − 1; costs 8 bytes of lazily backed memory a page. `max_fences` may be
  /// open at once, guarding up to min(2 × `pages`, max_guards) pages in all.
  [[nodiscard]] static Result<PagePool> create(std::int64_t pages, std::int32_t max_fences = 256);

  /// A free page with one reference, or an invalid id when there is none. Last freed, first taken.
  [[nodiscard]] PageId allocate() noexcept;
  /// Takes a cached page out of the cache with one reference. Precondition: cached, already
  /// withdrawn from the prefix index (unpublished).
  void reclaim(PageId page) noexcept;
  /// One more reference. Precondition: referenced, cached, or in flight.
  void retain(PageId page) noexcept;
  /// One reference fewer. Precondition: referenced.
  PageFate release(PageId page) noexcept;

  /// Precondition: not free. A cached page leaves the cache: take it out of the eviction order.
  void pin(PageId page) noexcept;
  /// Precondition: pinned.
  PageFate unpin(PageId page) noexcept;

  /// Published pages become cached instead of free. Unpublishing a cached page frees it: returns
  /// its new fate (`referenced` when references remain). Precondition: not free.
  PageFate set_published(PageId page, bool published) noexcept;

  /// out_of_fences when all are open.
  [[nodiscard]] Result<FenceId> open_fence() noexcept;
  /// The fence pins `page` from now on (twice guarded = two pins). out_of_fences when the guard
  /// list is full; stale_id. Precondition: not free.
  Status guard(FenceId fence, PageId page) noexcept;
  [[nodiscard]] bool is_open(FenceId fence) const noexcept;
  /// Drops the fence's pins, last guarded first; calls `on_fate(page, fate)` for each page it
  /// guarded. stale_id when it is not open (completed twice).
  template <class F>
  Status complete_fence(FenceId fence, F&& on_fate) noexcept;

  [[nodiscard]] std::int64_t size() const noexcept { return counts_.total; }
  [[nodiscard]] const PageCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] bool contains(PageId page) const noexcept {
    return page.valid() && page.offset() < counts_.total;
  }
  [[nodiscard]] std::uint32_t refcount(PageId page) const noexcept;
  [[nodiscard]] std::uint32_t pins(PageId page) const noexcept;
  [[nodiscard]] bool published(PageId page) const noexcept;
  [[nodiscard]] bool is_free(PageId page) const noexcept;
  [[nodiscard]] std::int32_t open_fences() const noexcept { return open_fences_; }
  [[nodiscard]] std::int32_t max_fences() const noexcept {
    return static_cast<std::int32_t>(fences_.size());
  }
  /// Pages guarded now, a page counted once per fence, and how many more the guard list takes.
  [[nodiscard]] std::int64_t guards() const noexcept { return guards_used_; }
  [[nodiscard]] std::int64_t guard_room() const noexcept {
    return static_cast<std::int64_t>(guards_.size()) - guards_used_;
  }

 private:
  // 8 bytes a page. Free pages below the high-water mark link to the next free page (id + 1, 0 =
  // end).
  struct Entry {
    std::uint32_t refs_or_next;
    std::uint32_t pins : 30;
    std::uint32_t is_published : 1;
    std::uint32_t on_free_list : 1;
  };
  struct Fence {
    std::uint32_t generation = 1;
    std::uint32_t first = 0;  // guard node + 1 (0 = none); while closed: the next closed fence + 1
    bool open = false;
  };
  struct Guard {
    std::int32_t page;
    std::uint32_t next;  // guard node + 1; 0 = end
  };

  PagePool() = default;
  [[nodiscard]] Entry& entry(PageId page) noexcept {
    return entries_[static_cast<std::size_t>(page.value)];
  }
  [[nodiscard]] const Entry& entry(PageId page) const noexcept {
    return entries_[static_cast<std::size_t>(page.value)];
  }
  PageFate settle(PageId page, Entry& entry) noexcept;

  detail::LazyArray<Entry> entries_;
  detail::LazyArray<Guard> guards_;
  std::vector<Fence> fences_;
  PageCounts counts_;
  std::int64_t next_fresh_ = 0;  // pages at or past this were never used
  std::int64_t next_guard_ = 0;  // guard nodes at or past this were never used
  std::int64_t guards_used_ = 0;
  std::uint32_t free_head_ = 0;   // page + 1
  std::uint32_t free_guard_ = 0;  // guard node + 1
  std::uint32_t free_fence_ = 0;  // fence + 1
  std::int32_t open_fences_ = 0;
};

}  // namespace growpage

#include "growpage/detail/page_pool.hpp"
#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/memory.ipp"
#endif
