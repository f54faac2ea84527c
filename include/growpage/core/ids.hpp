// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace growpage {

using TokenId = std::int32_t;

/// A physical page of the pool, 0 … pool size − 1 (at most 2^31 − 1). Negative means "none". Stored
/// as int32 because that is what engines' block tables hold; widen with `offset()` before
/// multiplying by a stride.
struct PageId {
  std::int32_t value = -1;

  [[nodiscard]] constexpr bool valid() const noexcept { return value >= 0; }
  [[nodiscard]] constexpr std::int64_t offset() const noexcept { return value; }
  friend constexpr auto operator<=>(PageId, PageId) = default;
};

/// An id whose object may be gone: a slot index and the generation that slot had when the id was
/// given out. A stale id is answered with StatusCode::stale_id, never with another's object.
template <class Tag>
struct GenerationId {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;  ///< 0 is never given out: a default id is always stale

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept {
    return (std::uint64_t{generation} << 32) | index;
  }
  [[nodiscard]] static constexpr GenerationId from_bits(std::uint64_t bits) noexcept {
    return {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32)};
  }
  friend constexpr auto operator<=>(GenerationId, GenerationId) = default;
};

using SequenceId = GenerationId<struct SequenceTag>;  ///< a sequence in a cache
using RequestId = GenerationId<struct RequestTag>;    ///< a request in a scheduler
using FenceId = GenerationId<struct FenceTag>;        ///< an open fence of a page pool

/// A row of the query-summary state, held by a request from its first decode step until it finishes
/// or is preempted. Negative means "none".
struct SummarySlot {
  std::int32_t value = -1;

  [[nodiscard]] constexpr bool valid() const noexcept { return value >= 0; }
  friend constexpr auto operator<=>(SummarySlot, SummarySlot) = default;
};

}  // namespace growpage

template <class Tag>
struct std::hash<growpage::GenerationId<Tag>> {
  std::size_t operator()(growpage::GenerationId<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.bits());
  }
};
