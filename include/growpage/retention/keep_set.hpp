// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace growpage {

/// Which slots survive, per (layer, KV head): a view of bits, trivially copyable, owned by the
/// cache's workspace. Every (layer, head) keeps the same number of slots, not the same slots.
struct KeepSet {
  std::uint64_t* bits = nullptr;      ///< [layer, kv_head, words], bit s%64 of word s/64 = slot s
  std::int32_t* page_kept = nullptr;  ///< [page] rows kept, summed over layers and heads
  std::int32_t layers = 0;
  std::int32_t kv_heads = 0;
  std::int32_t slots = 0;  ///< n
  std::int32_t pages = 0;  ///< P = ceil(n / b)
  std::int64_t words = 0;  ///< per (layer, head): at least ceil(n / 64)

  [[nodiscard]] std::uint64_t* row(std::int32_t layer, std::int32_t head) const noexcept {
    return bits + (std::int64_t{layer} * kv_heads + head) * words;
  }
  [[nodiscard]] bool kept(std::int32_t layer, std::int32_t head, std::int32_t slot) const noexcept {
    return ((row(layer, head)[slot >> 6] >> (slot & 63)) & 1u) != 0;
  }
};

}  // namespace growpage
