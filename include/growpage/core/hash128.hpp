// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace growpage {

/// A 128-bit digest.
struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend constexpr auto operator<=>(const Hash128&, const Hash128&) = default;
};

}  // namespace growpage
