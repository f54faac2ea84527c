// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "growpage/cache/page_manager.hpp"
#include "growpage/core/status.hpp"

/// The tables attention kernels want for a batch, written into the caller's buffers. All functions:
/// `ids` `[batch]` in batch order, borrowed; stale_id when a sequence is gone, busy when one is
/// under a fence or swapped; invalid_argument, with the size that is needed, when a buffer is too
/// small. Nothing is written unless the answer is ok. Nothing is allocated.
namespace growpage {

/// What FlashAttention-like kernels take: whole table rows, padded.
struct PaddedTables {
  std::span<std::int32_t> block_table;    ///< [batch, stride] page ids; needs batch · stride
  std::int64_t stride = 0;                ///< at least the longest table of the batch, in pages
  std::int32_t pad = 0;                   ///< goes behind each row's pages
  std::span<std::int32_t> cache_seqlens;  ///< [batch] used slots; empty = not wanted
};
Status fill_padded_tables(const PageManager& manager, std::span<const SequenceId> ids,
                          const PaddedTables& out);
/// The smallest stride: pages of the longest table of the batch, 0 for an empty one.
[[nodiscard]] Result<std::int64_t> padded_stride(const PageManager& manager,
                                                 std::span<const SequenceId> ids);

/// What FlashInfer-like kernels take: compressed rows, of pages with used slots only. A sequence
/// without slots has no pages and last_page_len 0 (kernels that want at least one leave it out of
/// the batch).
struct CompressedTables {
  std::span<std::int32_t> indptr;         ///< [batch + 1] where each row begins in `indices`
  std::span<std::int32_t> indices;        ///< [Σ ceil(slots / b)] page ids
  std::span<std::int32_t> last_page_len;  ///< [batch] used slots of the last page, 1 … b
};
Status fill_compressed_tables(const PageManager& manager, std::span<const SequenceId> ids,
                              const CompressedTables& out);
/// Size of `indices`. invalid_argument when it exceeds 2^31 − 1.
[[nodiscard]] Result<std::int64_t> compressed_size(const PageManager& manager,
                                                   std::span<const SequenceId> ids);

/// Where the K/V of the last `counts[i]` appended tokens of each sequence go, and the tokens' true
/// positions (for RoPE; never the slot: they differ after a compaction). Sequence after sequence,
/// oldest token first. invalid_argument when a count is negative or above the sequence's slots.
struct TokenTables {
  std::span<std::int64_t> slot_mapping;  ///< [Σ counts] page · b + offset; empty = not wanted
  std::span<std::int64_t> positions;     ///< [Σ counts]; empty = not wanted
};
Status fill_token_tables(const PageManager& manager, std::span<const SequenceId> ids,
                         std::span<const std::int32_t> counts, const TokenTables& out);

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/batch_tables.ipp"
#endif
