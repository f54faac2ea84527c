// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "growpage/cache/batch_tables.hpp"
#include "growpage/detail/require.hpp"

namespace growpage {

namespace detail {

/// The sequence's view when kernels may read its table now.
inline Status readable(const PageManager& manager, SequenceId id, SequenceView& view) {
  Result<SequenceView> found = manager.view(id);
  if (!found.ok()) return found.status();
  view = *found;
  return view.busy || view.swapped ? StatusCode::busy : StatusCode::ok;
}

inline Status require_size(std::string_view argument, std::size_t size, std::int64_t needed) {
  if (static_cast<std::int64_t>(size) >= needed) return {};
  return Status::invalid(argument, static_cast<std::int64_t>(size),
                         "at least " + std::to_string(needed));
}

inline std::int64_t used_pages(const PageManager& manager, const SequenceView& view) noexcept {
  const std::int32_t page_size = manager.options().page_size;
  return (std::int64_t{view.slots} + page_size - 1) / page_size;
}

}  // namespace detail

GROWPAGE_INLINE Result<std::int64_t> padded_stride(const PageManager& manager,
                                                   std::span<const SequenceId> ids) {
  std::size_t longest = 0;
  SequenceView view;
  for (const SequenceId id : ids) {
    if (Status s = detail::readable(manager, id, view); !s.ok()) return s;
    longest = std::max(longest, view.pages.size());
  }
  return static_cast<std::int64_t>(longest);
}

GROWPAGE_INLINE Status fill_padded_tables(const PageManager& manager,
                                          std::span<const SequenceId> ids,
                                          const PaddedTables& out) {
  const Result<std::int64_t> longest = padded_stride(manager, ids);
  if (!longest.ok()) return longest.status();
  Status s;
  const auto batch = static_cast<std::int64_t>(ids.size());
  if (!detail::require_range(s, "PaddedTables::stride", out.stride, *longest, 0x7fffffff)) return s;
  s = detail::require_size("PaddedTables::block_table.size()", out.block_table.size(),
                           batch * out.stride);
  if (!s.ok()) return s;
  if (!out.cache_seqlens.empty()) {
    s = detail::require_size("PaddedTables::cache_seqlens.size()", out.cache_seqlens.size(), batch);
    if (!s.ok()) return s;
  }
  std::int32_t* row = out.block_table.data();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    SequenceView view;
    (void)detail::readable(manager, ids[i], view);
    std::int32_t* end = row + out.stride;
    for (const PageId page : view.pages) *row++ = page.value;
    std::fill(row, end, out.pad);
    row = end;
    if (!out.cache_seqlens.empty()) out.cache_seqlens[i] = view.slots;
  }
  return {};
}

GROWPAGE_INLINE Result<std::int64_t> compressed_size(const PageManager& manager,
                                                     std::span<const SequenceId> ids) {
  std::int64_t total = 0;
  SequenceView view;
  for (const SequenceId id : ids) {
    if (Status s = detail::readable(manager, id, view); !s.ok()) return s;
    total += detail::used_pages(manager, view);
  }
  Status s;
  if (!detail::require_range(s, "pages of the batch", total, 0, 0x7fffffff)) return s;
  return total;
}

GROWPAGE_INLINE Status fill_compressed_tables(const PageManager& manager,
                                              std::span<const SequenceId> ids,
                                              const CompressedTables& out) {
  const Result<std::int64_t> total = compressed_size(manager, ids);
  if (!total.ok()) return total.status();
  const auto batch = static_cast<std::int64_t>(ids.size());
  Status s = detail::require_size("CompressedTables::indptr.size()", out.indptr.size(), batch + 1);
  if (!s.ok()) return s;
  s = detail::require_size("CompressedTables::indices.size()", out.indices.size(), *total);
  if (!s.ok()) return s;
  s = detail::require_size("CompressedTables::last_page_len.size()", out.last_page_len.size(),
                           batch);
  if (!s.ok()) return s;
  std::int32_t* index = out.indices.data();
  out.indptr[0] = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    SequenceView view;
    (void)detail::readable(manager, ids[i], view);
    const auto used = static_cast<std::int32_t>(detail::used_pages(manager, view));
    for (std::int32_t k = 0; k < used; ++k)
      *index++ = view.pages[static_cast<std::size_t>(k)].value;
    out.indptr[i + 1] = out.indptr[i] + used;
    out.last_page_len[i] = used == 0 ? 0 : view.slots - (used - 1) * manager.options().page_size;
  }
  return {};
}

GROWPAGE_INLINE Status fill_token_tables(const PageManager& manager,
                                         std::span<const SequenceId> ids,
                                         std::span<const std::int32_t> counts,
                                         const TokenTables& out) {
  Status s =
      detail::require_size("counts.size()", counts.size(), static_cast<std::int64_t>(ids.size()));
  if (!s.ok()) return s;
  std::int64_t total = 0;
  SequenceView view;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (s = detail::readable(manager, ids[i], view); !s.ok()) return s;
    if (!detail::require_range(s, "counts", counts[i], 0, view.slots)) return s;
    total += counts[i];
  }
  if (!out.slot_mapping.empty()) {
    s = detail::require_size("TokenTables::slot_mapping.size()", out.slot_mapping.size(), total);
    if (!s.ok()) return s;
  }
  if (!out.positions.empty()) {
    s = detail::require_size("TokenTables::positions.size()", out.positions.size(), total);
    if (!s.ok()) return s;
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    (void)detail::readable(manager, ids[i], view);
    for (std::int32_t back = counts[i]; back > 0; --back, ++at) {
      if (!out.slot_mapping.empty()) {
        out.slot_mapping[at] = manager.physical_slot(ids[i], view.slots - back);
      }
      if (!out.positions.empty()) out.positions[at] = view.length - back;
    }
  }
  return {};
}

}  // namespace growpage
