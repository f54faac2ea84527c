// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/status.hpp"

namespace growpage {

/// The dimensions of a model's KV cache.
struct CacheShape {
  std::int32_t layers = 0;       ///< L ≥ 1
  std::int32_t query_heads = 0;  ///< Hq, a multiple of kv_heads
  std::int32_t kv_heads = 0;     ///< Hkv ≥ 1
  std::int32_t head_dim = 0;     ///< d of K (and of V unless value_dim says otherwise)
  std::int32_t value_dim = 0;    ///< d of V; 0 means head_dim
  std::int32_t page_size = 256;  ///< b, tokens a page holds: a power of two ≥ 16

  /// G = Hq / Hkv. Query head h reads KV head h / G (not h % Hkv).
  [[nodiscard]] constexpr std::int32_t group() const noexcept { return query_heads / kv_heads; }
  [[nodiscard]] constexpr std::int32_t v_dim() const noexcept {
    return value_dim > 0 ? value_dim : head_dim;
  }

  /// ok, or invalid_argument naming the first field that is out of range.
  [[nodiscard]] Status validate() const;
};

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/cache_shape.ipp"
#endif
