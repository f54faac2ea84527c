// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace growpage::detail {

/// SplitMix64's finaliser: a well-mixed 64-bit hash of a counter (Steele, Lea, Flood 2014).
[[nodiscard]] constexpr std::uint64_t splitmix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// 53 random bits as a double in [0, 1).
[[nodiscard]] constexpr double unit_interval(std::uint64_t bits) noexcept {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace growpage::detail
