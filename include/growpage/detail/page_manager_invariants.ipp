// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "growpage/cache/page_manager.hpp"

namespace growpage {

namespace detail {

inline Status broken(std::string_view rule, std::string_view where, std::int64_t value) {
  return Status::error(StatusCode::protocol_error, rule,
                       fmt::format("broken at {} {}", where, value), "always true");
}

}  // namespace detail

GROWPAGE_INLINE Status PageManager::check_invariants() const {
  std::vector<std::uint32_t> tables(static_cast<std::size_t>(pool_.size()), 0);
  std::vector<std::uint32_t> host_tables(
      static_cast<std::size_t>(host_pool_ ? host_pool_->size() : 0), 0);
  std::int64_t alive = 0;
  for (std::uint32_t i = 0; i < sequences_.size(); ++i) {
    const Sequence& s = sequences_[i];
    if (!s.alive) continue;
    ++alive;
    const SequenceId id{i, s.generation};
    if (Status status = check_sequence(id, s); !status.ok()) return status;
    for (std::int32_t k = 0; k < s.pages; ++k) {
      const PageId page = row(id)[k];
      const bool exists =
          s.swapped ? host_pool_ && host_pool_->contains(page) : pool_.contains(page);
      if (!exists) return detail::broken("tables hold pages of the pool", "sequence", i);
      ++(s.swapped ? host_tables : tables)[static_cast<std::size_t>(page.value)];
    }
  }
  if (alive != live_) return detail::broken("live sequences are counted", "count", live_);
  if (Status status = check_pool(pool_, tables); !status.ok()) return status;
  if (host_pool_) {
    if (Status status = check_pool(*host_pool_, host_tables); !status.ok()) return status;
  }
  return index_ ? check_index() : Status{};
}

GROWPAGE_INLINE Status PageManager::check_sequence(SequenceId id, const Sequence& s) const {
  const std::int64_t i = id.index;
  if (s.pages < 0 || s.pages > options_.max_pages_per_sequence) {
    return detail::broken("pages fit the table", "sequence", i);
  }
  if (s.slots < 0 || s.slots > std::int64_t{s.pages} << page_shift_) {
    return detail::broken("slots <= pages * page_size", "sequence", i);
  }
  if (s.computed < 0 || s.computed > s.slots) {
    return detail::broken("computed <= slots", "sequence", i);
  }
  if (s.compactions == 0 ? s.length != s.slots : s.length <= s.slots) {
    return detail::broken("length = slots until a compaction, more after it", "sequence", i);
  }
  if (s.length < s.floor_length || s.pages < s.floor_pages) {
    return detail::broken("never behind the last compaction", "sequence", i);
  }
  if (s.busy() && !pool_.is_open(s.fence)) {
    return detail::broken("busy only under an open fence", "sequence", i);
  }
  if (!s.publishes) return {};
  if (s.compactions != 0 || s.known > s.slots ||
      std::int64_t{s.published} << page_shift_ > std::min(s.computed, s.known)) {
    return detail::broken("only computed pages of known tokens are published", "sequence", i);
  }
  PrefixLink parent = s.chain.root;
  for (std::int32_t k = 0; k < s.published; ++k) {
    if (k == s.chain.modality_page) parent = with_modality(parent, s.chain.modality);
    const PageId page = row(id)[k];
    if (!index_->published(page) || index_->parent_id(page) != parent.id) {
      return detail::broken("published pages are chained in the prefix index", "sequence", i);
    }
    parent = index_->link(page);
  }
  return {};
}

/// `tables`: how many block tables hold each page.
GROWPAGE_INLINE Status PageManager::check_pool(const PagePool& pool,
                                               const std::vector<std::uint32_t>& tables) const {
  PageCounts seen;
  std::int64_t pins = 0;
  for (std::int32_t i = 0; i < pool.size(); ++i) {
    const PageId page{i};
    const std::uint32_t refs = tables[static_cast<std::size_t>(i)];
    if (pool.refcount(page) != refs) {
      return detail::broken("refcount = number of tables holding the page", "page", i);
    }
    pins += pool.pins(page);
    const bool free = pool.is_free(page);
    if (free && (refs != 0 || pool.pins(page) != 0 || pool.published(page))) {
      return detail::broken("a free page is in no table, not guarded, not published", "page", i);
    }
    if (free) {
      ++seen.free;
    } else if (refs != 0) {
      ++seen.referenced;
    } else if (pool.pins(page) != 0) {
      ++seen.in_flight;
    } else {
      ++seen.cached;
    }
  }
  const PageCounts& counts = pool.counts();
  if (seen.free != counts.free || seen.cached != counts.cached ||
      seen.referenced != counts.referenced || seen.in_flight != counts.in_flight) {
    return detail::broken("pages are counted by state", "free pages", counts.free);
  }
  if (pins != pool.guards()) return detail::broken("pins = guards of fences", "pins", pins);
  return {};
}

GROWPAGE_INLINE Status PageManager::check_index() const {
  std::int64_t published = 0;
  for (std::int32_t i = 0; i < pool_.size(); ++i) {
    const PageId page{i};
    if (index_->published(page) != pool_.published(page)) {
      return detail::broken("pool and prefix index agree on what is published", "page", i);
    }
    published += index_->published(page) ? 1 : 0;
    const bool cached = pool_.published(page) && pool_.refcount(page) == 0 && pool_.pins(page) == 0;
    if (index_->in_lru(page) != cached) {
      return detail::broken("exactly the cached pages are in the LRU", "page", i);
    }
  }
  if (published != index_->size()) {
    return detail::broken("published pages are counted", "count", published);
  }
  std::int64_t listed = 0;
  for (PageId page = index_->lru_oldest(); page.valid() && listed <= pool_.size();
       page = index_->lru_newer(page)) {
    ++listed;
  }
  if (listed != index_->lru_size() || listed != pool_.counts().cached) {
    return detail::broken("the LRU lists every cached page once", "count", listed);
  }
  return {};
}

}  // namespace growpage
