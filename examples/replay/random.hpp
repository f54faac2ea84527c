// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace growpage::replay {

// Everything random in a replay is a hash of what it belongs to (seed, request, position): equal
// inputs give equal runs on every machine, in whatever order things are asked for.

/// SplitMix64's finaliser (Steele, Lea, Flood 2014).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  return mix(mix(a) + b);
}

/// [0, 1).
[[nodiscard]] constexpr double uniform(std::uint64_t key) noexcept {
  return static_cast<double>(mix(key) >> 11) * 0x1p-53;
}

/// Standard normal (Box–Muller).
[[nodiscard]] inline double normal(std::uint64_t key) noexcept {
  const double u = 1.0 - uniform(key);  // never 0
  const double v = uniform(key ^ 0x5851f42d4c957f2dULL);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace growpage::replay
