// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include "growpage/core/cache_shape.hpp"
#include "growpage/detail/require.hpp"

namespace growpage {

GROWPAGE_INLINE Status CacheShape::validate() const {
  Status s;
  if (!detail::require_range(s, "CacheShape::layers", layers, 1, 4096)) return s;
  if (!detail::require_range(s, "CacheShape::kv_heads", kv_heads, 1, 65536)) return s;
  if (!detail::require_range(s, "CacheShape::query_heads", query_heads, 1, 65536)) return s;
  if (query_heads % kv_heads != 0) {
    return Status::invalid("CacheShape::query_heads", std::int64_t{query_heads},
                           "a multiple of kv_heads (" + std::to_string(kv_heads) + ")");
  }
  if (!detail::require_range(s, "CacheShape::head_dim", head_dim, 1, 4096)) return s;
  if (!detail::require_range(s, "CacheShape::value_dim", value_dim, 0, 4096)) return s;
  if (page_size < 16 || page_size > (1 << 20) ||
      !std::has_single_bit(static_cast<std::uint32_t>(page_size))) {
    return Status::invalid("CacheShape::page_size", std::int64_t{page_size},
                           "a power of two from 16 to 1048576");
  }
  return {};
}

}  // namespace growpage
