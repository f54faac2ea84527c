// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "growpage/core/ids.hpp"
#include "growpage/core/status.hpp"
#include "growpage/detail/lazy_array.hpp"
#include "growpage/prefix/page_hash.hpp"

namespace growpage {

/// Which pages hold which prefix, and the order in which unreferenced ones are given up. Nodes are
/// indexed by physical page, so publish, withdraw, lookup and every LRU move are O(1) expected and
/// allocate nothing. Knows nothing of reference counts: its owner (PageManager) keeps it in step
/// with the pool.
class PrefixIndex {
 public:
  /// Tokens of published pages are kept for comparison: page_size · 4 bytes a page, lazily backed.
  [[nodiscard]] static Result<PrefixIndex> create(std::int64_t pages, std::int32_t page_size);

  /// A published page that holds `tokens` `[page_size]` below `parent`, and its link; invalid when
  /// there is none. Compares tokens and parent identity, not only the digest.
  struct Match {
    PageId page;
    PrefixLink link;
  };
  [[nodiscard]] Match lookup(const PrefixLink& parent,
                             std::span<const TokenId> tokens) const noexcept;

  /// The pages of the longest run of `tokens` `[pages, page_size]` below `parent`, into `out`
  /// `[pages]`, at most `max_run` pages; returns how many there are. The same as page after page,
  /// but the waits for memory overlap.
  static constexpr std::size_t max_run = 32;
  [[nodiscard]] std::size_t lookup_run(const PrefixLink& parent, std::span<const TokenId> tokens,
                                       std::span<Match> out) const noexcept;

  /// What a publish did; `first` when no other page had this hash (a "stored" event is due).
  struct Published {
    PrefixLink link;
    bool first = false;
  };
  /// `page` now holds `tokens` `[page_size]` below `parent`. Precondition: not published. A second
  /// page with the same content shares the first one's identity; both can be matched.
  Published publish(PageId page, const PrefixLink& parent,
                    std::span<const TokenId> tokens) noexcept;

  struct Withdrawn {
    Hash128 hash;
    bool last = false;  ///< no other page has this hash now (a "removed" event is due)
  };
  /// Forgets the page. Precondition: published. Takes it out of the LRU when it is there.
  Withdrawn withdraw(PageId page) noexcept;

  [[nodiscard]] bool published(PageId page) const noexcept;
  // Of a published page (precondition): its link, its parent's identity, its tokens `[page_size]`,
  // which stay valid until it is withdrawn.
  [[nodiscard]] PrefixLink link(PageId page) const noexcept;
  [[nodiscard]] std::uint64_t parent_id(PageId page) const noexcept;
  [[nodiscard]] std::span<const TokenId> tokens(PageId page) const noexcept;

  /// LRU of unreferenced published pages, oldest first.
  void lru_push(PageId page) noexcept;    ///< newest end; precondition: published, not in the LRU
  void lru_remove(PageId page) noexcept;  ///< no-op when not in the LRU
  [[nodiscard]] PageId lru_oldest() const noexcept;            ///< invalid when empty
  [[nodiscard]] PageId lru_newer(PageId page) const noexcept;  ///< the next one; invalid at the end
  [[nodiscard]] bool in_lru(PageId page) const noexcept;
  [[nodiscard]] std::int64_t lru_size() const noexcept { return lru_size_; }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }

 private:
  // Pages with one hash are neighbours in their bucket's chain, so that withdraw sees from its
  // neighbours whether it was the last. Links are page + 1; 0 = none. A cache line each.
  struct alignas(64) Node {
    Hash128 hash;
    std::uint64_t id;  // 0 = not published
    std::uint64_t parent_id;
    std::int32_t next, prev;            // in the chain; prev 0 = the bucket's head
    std::int32_t lru_older, lru_newer;  // lru_older: not_in_lru when it is in no LRU, 0 = oldest
  };
  static constexpr std::int32_t not_in_lru = -1;

  PrefixIndex() = default;
  [[nodiscard]] std::size_t bucket(const Hash128& hash) const noexcept {
    return static_cast<std::size_t>(hash.low) & bucket_mask_;
  }
  [[nodiscard]] Node& node(std::int32_t link) noexcept {
    return nodes_[static_cast<std::size_t>(link - 1)];
  }
  [[nodiscard]] const Node& node(std::int32_t link) const noexcept {
    return nodes_[static_cast<std::size_t>(link - 1)];
  }
  // A page with these tokens below this parent (`exact`), else any page with the hash, else 0.
  struct Found {
    std::int32_t link = 0;
    bool exact = false;
  };
  [[nodiscard]] Found find(const Hash128& hash, std::uint64_t parent_id,
                           std::span<const TokenId> tokens) const noexcept;

  detail::LazyArray<Node> nodes_;            // [page]
  detail::LazyArray<TokenId> tokens_;        // [page, page_size]
  detail::LazyArray<std::int32_t> buckets_;  // page + 1 of the chain's head
  std::size_t bucket_mask_ = 0;
  std::int32_t page_size_ = 0;
  std::int32_t lru_head_ = 0, lru_tail_ = 0;  // page + 1
  std::int64_t lru_size_ = 0;
  std::int64_t size_ = 0;
  std::uint64_t next_id_ = 1;
};

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/prefix_index.ipp"
#endif
