// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "growpage/core/ids.hpp"
#include "growpage/core/status.hpp"
#include "growpage/detail/lazy_array.hpp"

namespace growpage {

/// The block tables of all sequences: one row of page ids each, `[sequence, max_pages]`, in the
/// form engines hand to attention kernels. Rows are backed by memory as they fill. Row `r`, column
/// `j` holds the physical page of the sequence's slots [j·b, (j+1)·b).
class BlockTables {
 public:
  /// 4 bytes of lazily backed memory an entry. out_of_memory when the address space is not to be
  /// had.
  [[nodiscard]] static Result<BlockTables> create(std::int32_t sequences, std::int32_t max_pages);

  [[nodiscard]] PageId* row(std::uint32_t sequence) noexcept {
    return pages_.data() + std::size_t{sequence} * static_cast<std::size_t>(max_pages_);
  }
  [[nodiscard]] const PageId* row(std::uint32_t sequence) const noexcept {
    return pages_.data() + std::size_t{sequence} * static_cast<std::size_t>(max_pages_);
  }
  [[nodiscard]] std::int32_t max_pages() const noexcept { return max_pages_; }

 private:
  BlockTables() = default;
  detail::LazyArray<PageId> pages_;
  std::int32_t max_pages_ = 0;
};

/// A batch's block tables as a device kernel reads them: trivially copyable, owns nothing.
struct BlockTableView {
  const std::int32_t* pages = nullptr;    ///< [request, stride] physical page ids
  const std::int32_t* lengths = nullptr;  ///< [request] used slots
  std::int64_t stride = 0;
  std::int32_t requests = 0;
  std::int32_t page_size = 0;

  /// page · b + offset of a request's slot: what `slot_mapping` holds.
  [[nodiscard]] constexpr std::int64_t slot(std::int32_t request, std::int32_t s) const noexcept {
    return std::int64_t{pages[request * stride + s / page_size]} * page_size + s % page_size;
  }
};

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/memory.ipp"
#endif
