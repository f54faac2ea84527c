// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "growpage/cache/page_manager.hpp"
#include "growpage/detail/require.hpp"

namespace growpage {

namespace detail {

/// Elements from one sequence's tokens to the next one's: a cache line more than a power of two, so
/// that the newest tokens of all sequences do not compete for the same few sets of the cache.
inline std::int64_t token_row(const PageManagerOptions& options) noexcept {
  return std::int64_t{options.max_pages_per_sequence} * options.page_size + 16;
}

}  // namespace detail

GROWPAGE_INLINE Status PageManagerOptions::validate() const {
  Status s;
  if (!detail::require_range(s, "PageManagerOptions::pages", pages, 1, 0x7fffffff)) return s;
  if (page_size < 16 || page_size > (1 << 20) ||
      !std::has_single_bit(static_cast<std::uint32_t>(page_size))) {
    return Status::invalid("PageManagerOptions::page_size", std::int64_t{page_size},
                           "a power of two from 16 to 1048576");
  }
  // Slots of one sequence are 32-bit.
  if (!detail::require_range(s, "PageManagerOptions::max_sequences", max_sequences, 1, 1 << 24) ||
      !detail::require_range(s, "PageManagerOptions::max_pages_per_sequence",
                             max_pages_per_sequence, 1, 0x7fffffff / page_size) ||
      !detail::require_range(s, "PageManagerOptions::host_pages", host_pages, 0, 0x7fffffff) ||
      !detail::require_range(s, "PageManagerOptions::max_fences", max_fences, 1, 1 << 24) ||
      !detail::require_range(s, "PageManagerOptions::event_capacity", event_capacity, 0, 1 << 30)) {
    return s;
  }
  return {};
}

GROWPAGE_INLINE PageManager::PageManager(const PageManagerOptions& options, PagePool pool,
                                         BlockTables tables)
    : options_(options),
      pool_(std::move(pool)),
      tables_(std::move(tables)),
      sequences_(static_cast<std::size_t>(options.max_sequences)),
      operations_(static_cast<std::size_t>(options.max_fences)),
      events_(std::make_unique<KvEventRing>(static_cast<std::size_t>(options.event_capacity))),
      page_shift_(std::countr_zero(static_cast<std::uint32_t>(options.page_size))) {
  for (std::uint32_t i = static_cast<std::uint32_t>(options.max_sequences); i-- > 0;) {
    sequences_[i].next_free = free_record_;
    free_record_ = i + 1;
  }
}

GROWPAGE_INLINE Result<PageManager> PageManager::create(const PageManagerOptions& options) {
  if (Status s = options.validate(); !s.ok()) return s;
  Result<PagePool> pool = PagePool::create(options.pages, options.max_fences);
  if (!pool.ok()) return pool.status();
  Result<BlockTables> tables =
      BlockTables::create(options.max_sequences, options.max_pages_per_sequence);
  if (!tables.ok()) return tables.status();
  PageManager manager(options, std::move(pool).value(), std::move(tables).value());
  if (options.host_pages > 0) {
    Result<PagePool> host = PagePool::create(options.host_pages, options.max_fences);
    if (!host.ok()) return host.status();
    manager.host_pool_ = std::move(host).value();
  }
  if (options.prefix_caching) {
    Result<PrefixIndex> index = PrefixIndex::create(options.pages, options.page_size);
    if (!index.ok()) return index.status();
    manager.index_ = std::move(index).value();
    manager.tokens_ =
        detail::LazyArray<TokenId>(static_cast<std::size_t>(options.max_sequences) *
                                   static_cast<std::size_t>(detail::token_row(options)));
    if (!manager.tokens_.ok()) {
      return Status::error(StatusCode::out_of_memory, "PageManagerOptions::max_sequences",
                           std::to_string(options.max_sequences),
                           "fewer, or fewer pages per sequence: the memory for their tokens was "
                           "not to be had");
    }
  }
  return manager;
}

// -- Records and pages ----------------------------------------------------------------------------

GROWPAGE_INLINE SequenceId PageManager::take_record() noexcept {
  if (free_record_ == 0) return {};
  const std::uint32_t index = free_record_ - 1;
  Sequence& s = sequences_[index];
  free_record_ = s.next_free;
  const std::uint32_t generation = s.generation;
  s = Sequence{};
  s.generation = generation;
  s.alive = true;
  s.publishes = index_.has_value();
  ++live_;
  return {index, generation};
}

GROWPAGE_INLINE void PageManager::return_record(SequenceId id) noexcept {
  Sequence& s = sequences_[id.index];
  s.alive = false;
  if (++s.generation == 0) s.generation = 1;
  s.next_free = free_record_;
  free_record_ = id.index + 1;
  --live_;
}

GROWPAGE_INLINE TokenId* PageManager::tokens(SequenceId id, std::int64_t slot) noexcept {
  return tokens_.data() + std::int64_t{id.index} * detail::token_row(options_) + slot;
}

GROWPAGE_INLINE PageId PageManager::allocate() noexcept {
  PageId page = pool_.allocate();
  if (page.valid() || !index_) return page;
  page = index_->lru_oldest();
  if (!page.valid()) return page;
  withdraw(page);  // before its reuse: a stale hash must not lead to new content
  pool_.reclaim(page);
  ++evicted_pages_;
  return page;
}

GROWPAGE_INLINE void PageManager::drop_reference(PageId page) noexcept {
  if (pool_.release(page) == PageFate::cached) index_->lru_push(page);
}

GROWPAGE_INLINE void PageManager::withdraw(PageId page) noexcept {
  const PrefixIndex::Withdrawn gone = index_->withdraw(page);
  if (gone.last && options_.event_capacity > 0) {
    events_->push({KvEvent::Kind::removed, page, gone.hash, {}, options_.page_size});
  }
}

GROWPAGE_INLINE void PageManager::unpublish(PageId page) noexcept {
  if (!pool_.published(page)) return;
  withdraw(page);
  pool_.set_published(page, false);
}

/// Last page first, so that the cache gives children up before their parents.
GROWPAGE_INLINE void PageManager::drop_tail(SequenceId id, Sequence& s,
                                            std::int32_t pages) noexcept {
  while (s.pages > pages) drop_reference(row(id)[--s.pages]);
}

// -- Prefix chain ---------------------------------------------------------------------------------

GROWPAGE_INLINE PageManager::Chain PageManager::chain(const ExtraKey& key) const noexcept {
  Chain chain;
  chain.root = prefix_root(key);
  if (!key.modality.empty()) {
    chain.modality = modality_digest(key.modality);
    chain.modality_page = key.modality_from >> page_shift_;
  }
  return chain;
}

GROWPAGE_INLINE std::int32_t PageManager::match(std::span<const TokenId> tokens, const Chain& chain,
                                                PageId* pages) const noexcept {
  if (!index_ || tokens.empty()) return 0;
  const auto limit = static_cast<std::int32_t>(
      std::min<std::size_t>((tokens.size() - 1) >> page_shift_,
                            static_cast<std::size_t>(options_.max_pages_per_sequence)));
  PrefixLink link = chain.root;
  PrefixIndex::Match found[PrefixIndex::max_run];
  // Short runs first: little is hashed for nothing when the prompt is new.
  std::int32_t run = 1;
  for (std::int32_t k = 0; k < limit;) {
    if (k == chain.modality_page) link = with_modality(link, chain.modality);
    std::int32_t count = std::min(run, limit - k);
    if (k < chain.modality_page && chain.modality_page - k < count) {
      count = static_cast<std::int32_t>(chain.modality_page - k);
    }
    const auto first = static_cast<std::size_t>(k) << page_shift_;
    const std::size_t hits = index_->lookup_run(
        link, tokens.subspan(first, static_cast<std::size_t>(count) << page_shift_), found);
    for (std::size_t i = 0; i < hits; ++i, ++k) {
      // One reader and a pin: its only reader may be moving rows in it (compaction).
      if (pool_.refcount(found[i].page) == 1 && pool_.pins(found[i].page) != 0) return k;
      if (pages != nullptr) pages[k] = found[i].page;
      link = found[i].link;
    }
    if (hits < static_cast<std::size_t>(count)) return k;
    run = std::min(2 * run, static_cast<std::int32_t>(PrefixIndex::max_run));
  }
  return limit;
}

GROWPAGE_INLINE void PageManager::publish_pages(SequenceId id, Sequence& s) noexcept {
  const std::int32_t ready = std::min(s.computed, s.known) >> page_shift_;
  if (!s.publishes || s.published >= ready) return;
  const PageId* pages = row(id);
  PrefixLink parent = s.published == 0 ? s.chain.root : index_->link(pages[s.published - 1]);
  for (; s.published < ready; ++s.published) {
    const PageId page = pages[s.published];
    if (s.published == s.chain.modality_page) parent = with_modality(parent, s.chain.modality);
    // A fork has published it already, below the same parent or below one that is gone.
    if (pool_.published(page)) {
      if (index_->parent_id(page) == parent.id) {
        parent = index_->link(page);
        continue;
      }
      withdraw(page);
    }
    const std::int64_t first = std::int64_t{s.published} << page_shift_;
    const PrefixIndex::Published done = index_->publish(
        page, parent, {tokens(id, first), static_cast<std::size_t>(options_.page_size)});
    pool_.set_published(page, true);
    if (done.first && options_.event_capacity > 0) {
      events_->push({KvEvent::Kind::stored, page, done.link.hash, parent.hash, options_.page_size});
    }
    parent = done.link;
  }
}

/// Counts only the first `published` pages as published; takes the tokens of the others back from
/// the index.
GROWPAGE_INLINE void PageManager::step_back(SequenceId id, Sequence& s,
                                            std::int32_t published) noexcept {
  if (!s.publishes) return;
  for (; s.published > published; --s.published) {
    const std::int32_t last = s.published - 1;
    const std::span<const TokenId> own = index_->tokens(row(id)[last]);
    std::memcpy(tokens(id, std::int64_t{last} << page_shift_), own.data(), own.size_bytes());
  }
}

}  // namespace growpage

#include "growpage/detail/page_manager_compaction.ipp"
#include "growpage/detail/page_manager_invariants.ipp"
#include "growpage/detail/page_manager_sequences.ipp"
#include "growpage/detail/page_manager_swap.ipp"
