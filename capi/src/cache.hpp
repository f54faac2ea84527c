// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "growpage/backend/any_backend.hpp"
#include "growpage/cache/paged_kv_cache.hpp"
#include "growpage/detail/lazy_array.hpp"
#include "growpage/growpage.h"
#include "handle.hpp"
#include "hooks.hpp"

namespace growpage::capi {

/// Behind a growpage_cache: bookkeeping alone, or with memory and kernels.
struct Cache {
  using Handle = growpage_cache;
  using Kv = PagedKVCache<AnyBackend>;
  static constexpr HandleKind kind = HandleKind::cache;
  static constexpr const char* name = "growpage_cache";

  explicit Cache(const Hooks& h) : hooks(h) {}

  /// Whether the caller made this sequence and may change it. A scheduler makes its sequences
  /// without coming through here, so that they are told apart.
  [[nodiscard]] bool owns(std::uint64_t sequence) const noexcept {
    const std::uint32_t index = SequenceId::from_bits(sequence).index;
    return index < sequences.size() && sequences[index] == sequence;
  }
  /// Whether the sequence may be a scheduler's. Without schedulers the manager's own check of the
  /// id will do: an engine with a scheduler of its own appends to every sequence in every step.
  [[nodiscard]] bool foreign(std::uint64_t sequence) const noexcept {
    return schedulers != 0 && !owns(sequence);
  }
  /// Why it does not: stale_id, or invalid_argument for a scheduler's.
  [[nodiscard]] Status not_own(std::uint64_t sequence) const;
  [[nodiscard]] Status require_own(std::uint64_t sequence) const {
    return owns(sequence) ? Status() : not_own(sequence);
  }
  /// ok for a fence that the caller opened.
  [[nodiscard]] Status require_own_fence(std::uint64_t fence) const;
  void remember(SequenceId sequence) noexcept { sequences[sequence.index] = sequence.bits(); }
  void remember(FenceId fence) noexcept { fences[fence.index] = fence.bits(); }
  /// unsupported without a backend.
  [[nodiscard]] Status require_kernels() const;

  Hooks hooks;
  std::optional<PageManager> bare;
  std::optional<Kv> kv;
  std::int32_t backend = GROWPAGE_BACKEND_NONE;
  PageManager* manager = nullptr;              // of the two, the one that is there
  std::int64_t kv_pages = 0;                   // pages of the KV memory
  std::int32_t schedulers = 0;                 // that use this cache
  detail::LazyArray<std::uint64_t> sequences;  // [sequence slot] the last id given to the caller
  detail::LazyArray<std::uint64_t> fences;     // [fence slot]
  std::vector<PageCopy> copies;                // scratch
  std::vector<PageTransfer> transfers;
};

}  // namespace growpage::capi
