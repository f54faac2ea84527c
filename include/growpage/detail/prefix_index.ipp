// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "growpage/detail/prefetch.hpp"
#include "growpage/detail/require.hpp"
#include "growpage/prefix/prefix_index.hpp"

namespace growpage {

GROWPAGE_INLINE Result<PrefixIndex> PrefixIndex::create(std::int64_t pages,
                                                        std::int32_t page_size) {
  Status s;
  if (!detail::require_range(s, "pages", pages, 1, 0x7fffffff)) return s;
  if (!detail::require_range(s, "page_size", page_size, 1, 1 << 20)) return s;
  const auto size = static_cast<std::size_t>(pages);
  const std::size_t buckets = std::bit_ceil(2 * size);
  PrefixIndex index;
  index.nodes_ = detail::LazyArray<Node>(size);
  index.tokens_ = detail::LazyArray<TokenId>(size * static_cast<std::size_t>(page_size));
  index.buckets_ = detail::LazyArray<std::int32_t>(buckets);
  index.bucket_mask_ = buckets - 1;
  index.page_size_ = page_size;
  if (!index.nodes_.ok() || !index.tokens_.ok() || !index.buckets_.ok()) {
    return Status::error(StatusCode::out_of_memory, "pages", std::to_string(pages),
                         "fewer: the memory of the prefix index was not to be had");
  }
  index.nodes_.prefer_huge_pages();
  index.tokens_.prefer_huge_pages();
  index.buckets_.prefer_huge_pages();
  return index;
}

GROWPAGE_INLINE PrefixIndex::Found PrefixIndex::find(
    const Hash128& hash, std::uint64_t parent_id, std::span<const TokenId> tokens) const noexcept {
  Found found;
  for (std::int32_t link = buckets_[bucket(hash)]; link != 0; link = node(link).next) {
    const Node& n = node(link);
    if (n.hash != hash) {
      if (found.link != 0) break;  // past the neighbours with this hash
      continue;
    }
    const TokenId* own = tokens_.data() + static_cast<std::size_t>(link - 1) * tokens.size();
    if (n.parent_id == parent_id && std::memcmp(own, tokens.data(), tokens.size_bytes()) == 0) {
      return {link, true};
    }
    found.link = link;
  }
  return found;
}

GROWPAGE_INLINE PrefixIndex::Match PrefixIndex::lookup(
    const PrefixLink& parent, std::span<const TokenId> tokens) const noexcept {
  if (tokens.size() != static_cast<std::size_t>(page_size_)) return {};
  const Hash128 hash = hash_page(parent.hash, tokens);
  const Found found = find(hash, parent.id, tokens);
  if (!found.exact) return {};
  return {PageId{found.link - 1}, {hash, node(found.link).id}};
}

GROWPAGE_INLINE std::size_t PrefixIndex::lookup_run(const PrefixLink& parent,
                                                    std::span<const TokenId> tokens,
                                                    std::span<Match> out) const noexcept {
  const auto size = static_cast<std::size_t>(page_size_);
  std::size_t pages = std::min({tokens.size() / size, out.size(), max_run});
  // The hashes do not depend on what is found, so the loads of earlier pages run while later ones
  // are hashed: a bucket `lag` pages behind, then the node and the tokens it names.
  constexpr std::size_t lag = 16;
  Hash128 hashes[max_run];
  Hash128 above = parent.hash;
  for (std::size_t k = 0; k < pages + lag; ++k) {
    if (k < pages) {
      above = hashes[k] = hash_page(above, tokens.subspan(k * size, size));
      detail::prefetch(&buckets_[bucket(above)]);
    }
    if (k < lag) continue;
    const std::int32_t head = buckets_[bucket(hashes[k - lag])];
    if (head == 0) {
      pages = k - lag;
      break;
    }
    detail::prefetch(&node(head));
    const TokenId* own = &tokens_[static_cast<std::size_t>(head - 1) * size];
    for (std::size_t i = 0; i < size; i += 64 / sizeof(TokenId)) detail::prefetch(own + i);
  }
  std::uint64_t parent_id = parent.id;
  for (std::size_t k = 0; k < pages; ++k) {
    const Found found = find(hashes[k], parent_id, tokens.subspan(k * size, size));
    if (!found.exact) return k;
    parent_id = node(found.link).id;
    out[k] = {PageId{found.link - 1}, {hashes[k], parent_id}};
  }
  return pages;
}

GROWPAGE_INLINE PrefixIndex::Published PrefixIndex::publish(
    PageId page, const PrefixLink& parent, std::span<const TokenId> tokens) noexcept {
  const Hash128 hash = hash_page(parent.hash, tokens);
  const Found found = find(hash, parent.id, tokens);
  const std::int32_t link = page.value + 1;
  Node& n = node(link);
  n.hash = hash;
  n.id = found.exact ? node(found.link).id : next_id_++;
  n.parent_id = parent.id;
  n.lru_older = not_in_lru;
  std::memcpy(tokens_.data() + static_cast<std::size_t>(page.value) * tokens.size(), tokens.data(),
              tokens.size_bytes());
  // Behind the page found, or at the bucket's head.
  n.prev = found.link;
  std::int32_t& before = found.link != 0 ? node(found.link).next : buckets_[bucket(hash)];
  n.next = before;
  before = link;
  if (n.next != 0) node(n.next).prev = link;
  ++size_;
  return {{hash, n.id}, found.link == 0};
}

GROWPAGE_INLINE PrefixIndex::Withdrawn PrefixIndex::withdraw(PageId page) noexcept {
  lru_remove(page);
  Node& n = node(page.value + 1);
  const bool twin_before = n.prev != 0 && node(n.prev).hash == n.hash;
  const bool twin_after = n.next != 0 && node(n.next).hash == n.hash;
  (n.prev != 0 ? node(n.prev).next : buckets_[bucket(n.hash)]) = n.next;
  if (n.next != 0) node(n.next).prev = n.prev;
  n.id = 0;
  --size_;
  return {n.hash, !twin_before && !twin_after};
}

GROWPAGE_INLINE bool PrefixIndex::published(PageId page) const noexcept {
  return node(page.value + 1).id != 0;
}

GROWPAGE_INLINE PrefixLink PrefixIndex::link(PageId page) const noexcept {
  const Node& n = node(page.value + 1);
  return {n.hash, n.id};
}

GROWPAGE_INLINE std::uint64_t PrefixIndex::parent_id(PageId page) const noexcept {
  return node(page.value + 1).parent_id;
}

GROWPAGE_INLINE std::span<const TokenId> PrefixIndex::tokens(PageId page) const noexcept {
  const auto size = static_cast<std::size_t>(page_size_);
  return {tokens_.data() + static_cast<std::size_t>(page.value) * size, size};
}

GROWPAGE_INLINE void PrefixIndex::lru_push(PageId page) noexcept {
  const std::int32_t link = page.value + 1;
  Node& n = node(link);
  n.lru_older = lru_tail_;
  n.lru_newer = 0;
  (lru_tail_ != 0 ? node(lru_tail_).lru_newer : lru_head_) = link;
  lru_tail_ = link;
  ++lru_size_;
}

GROWPAGE_INLINE void PrefixIndex::lru_remove(PageId page) noexcept {
  if (!in_lru(page)) return;
  Node& n = node(page.value + 1);
  (n.lru_older != 0 ? node(n.lru_older).lru_newer : lru_head_) = n.lru_newer;
  (n.lru_newer != 0 ? node(n.lru_newer).lru_older : lru_tail_) = n.lru_older;
  n.lru_older = not_in_lru;
  --lru_size_;
}

GROWPAGE_INLINE PageId PrefixIndex::lru_oldest() const noexcept { return {lru_head_ - 1}; }

GROWPAGE_INLINE PageId PrefixIndex::lru_newer(PageId page) const noexcept {
  return {node(page.value + 1).lru_newer - 1};
}

GROWPAGE_INLINE bool PrefixIndex::in_lru(PageId page) const noexcept {
  const Node& n = node(page.value + 1);
  return n.id != 0 && n.lru_older != not_in_lru;
}

}  // namespace growpage
