// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace simt {

/// xorshift64. Not from <random>: its distributions differ between standard libraries, and a seed
/// has to mean the same schedule everywhere.
class Random {
 public:
  constexpr explicit Random(std::uint64_t seed) {
    // Neighbouring seeds must not give neighbouring states, and no seed the state 0.
    std::uint64_t mixed = (seed + 1) * 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
    state_ = (mixed ^ (mixed >> 31)) | 1U;
  }

  /// 0 … bound − 1.
  unsigned below(unsigned bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<unsigned>(((state_ >> 32) * bound) >> 32);
  }

 private:
  std::uint64_t state_ = 1;
};

/// The one source of all schedules.
Random& random_numbers();

}  // namespace simt
