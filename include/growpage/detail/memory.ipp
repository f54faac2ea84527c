// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <string>
#include <utility>

#include "growpage/detail/require.hpp"
#include "growpage/memory/block_table.hpp"
#include "growpage/memory/page_pool.hpp"

namespace growpage {

namespace detail {

/// What a create() answers when the operating system does not grant its address space.
inline Status no_memory(std::string_view argument, std::int64_t value) {
  return Status::error(StatusCode::out_of_memory, argument, std::to_string(value),
                       "fewer: the memory for their bookkeeping was not to be had");
}

}  // namespace detail

GROWPAGE_INLINE Result<PagePool> PagePool::create(std::int64_t pages, std::int32_t max_fences) {
  Status s;
  if (!detail::require_range(s, "pages", pages, 1, 0x7fffffff)) return s;
  if (!detail::require_range(s, "max_fences", max_fences, 1, 1 << 24)) return s;
  PagePool pool;
  pool.entries_ = detail::LazyArray<Entry>(static_cast<std::size_t>(pages));
  pool.guards_ =
      detail::LazyArray<Guard>(static_cast<std::size_t>(std::min(2 * pages, max_guards)));
  if (!pool.entries_.ok() || !pool.guards_.ok()) return detail::no_memory("pages", pages);
  pool.fences_.resize(static_cast<std::size_t>(max_fences));
  for (std::uint32_t i = static_cast<std::uint32_t>(max_fences); i-- > 0;) {
    pool.fences_[i].first = pool.free_fence_;
    pool.free_fence_ = i + 1;
  }
  pool.counts_.total = pages;
  pool.counts_.free = pages;
  return pool;
}

GROWPAGE_INLINE Result<BlockTables> BlockTables::create(std::int32_t sequences,
                                                        std::int32_t max_pages) {
  Status s;
  if (!detail::require_range(s, "sequences", sequences, 1, 1 << 24)) return s;
  if (!detail::require_range(s, "max_pages", max_pages, 1, 0x7fffffff)) return s;
  BlockTables tables;
  tables.max_pages_ = max_pages;
  tables.pages_ = detail::LazyArray<PageId>(static_cast<std::size_t>(sequences) *
                                            static_cast<std::size_t>(max_pages));
  if (!tables.pages_.ok()) return detail::no_memory("max_pages", max_pages);
  return tables;
}

}  // namespace growpage
