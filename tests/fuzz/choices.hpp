// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace growpage::fuzz {

/// The fuzzer's bytes as choices; zeros when they are used up.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  [[nodiscard]] bool done() const { return at_ == end_; }
  std::uint8_t byte() { return done() ? std::uint8_t{0} : *at_++; }
  std::uint64_t word() {
    std::uint64_t w = 0;
    for (int i = 0; i < 8; ++i) w = w << 8 | byte();
    return w;
  }
  /// Mostly in [low, high]; sometimes just outside, or far.
  std::int64_t value(std::int64_t low, std::int64_t high) {
    const std::uint8_t b = byte();
    if (b < 240) return low + b % (high - low + 1);
    constexpr std::array<std::int64_t, 8> odd = {-1,        0,         1,         INT32_MAX,
                                                 INT32_MIN, INT64_MAX, INT64_MIN, 4096};
    return odd[b & 7];
  }
  /// Always in [low, high].
  std::int64_t within(std::int64_t low, std::int64_t high) {
    return low + byte() % (high - low + 1);
  }
  std::int32_t small(std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(value(low, high));
  }
  bool rarely() { return byte() > 240; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace growpage::fuzz
