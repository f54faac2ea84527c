// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "growpage/core/kv_layout.hpp"
#include "layout.cuh"
#include "simt.cuh"

namespace growpage::cuda {

/// The rows of one (layer, KV head) of K or of V, as bytes to be moved; strides in bytes.
struct HeadRows {
  char* base;
  std::int64_t page_stride;
  std::int64_t head_stride;  ///< to the rows of the next KV head
  std::int64_t token_stride;
  std::int32_t bytes;  ///< of a row; 0 = none, V moves with K

  [[nodiscard]] __device__ char* row(std::int32_t page, std::int32_t token) const {
    return base + page * page_stride + token * token_stride;
  }
};

[[nodiscard]] __device__ inline HeadRows head_rows(const KvTensor& t, std::int32_t dim,
                                                   std::int32_t layer, std::int32_t head) {
  const std::int64_t element = element_bytes(t.dtype);
  return {row_address(t, layer_address(t, layer), 0, head, 0), t.layout.page_stride * element,
          t.layout.head_stride * element, t.layout.token_stride * element,
          static_cast<std::int32_t>(dim * element)};
}

/// `v_dim` and `v_in_k` are host functions: they are asked before a launch. value_dim becomes
/// v_dim(), and a V that is a view of K's rows becomes null, since it moves with K.
inline void resolve(CacheShape& shape, KvView& kv) {
  shape.value_dim = shape.v_dim();
  if (kv.v_in_k()) kv.v = KvTensor{};
}
/// 16-byte units of the wider of a K and a V row.
[[nodiscard]] inline std::int64_t row_units(const CacheShape& shape, const KvView& kv) {
  const auto units = [](const KvTensor& t, std::int32_t dim) {
    return (static_cast<std::int64_t>(dtype_bytes(t.dtype)) * dim + 15) / 16;
  };
  return std::max(units(kv.k, shape.head_dim), units(kv.v, shape.v_dim()));
}
/// The rows of V, or none.
[[nodiscard]] __device__ inline HeadRows v_rows(const CacheShape& shape, const KvView& kv,
                                                std::int32_t layer, std::int32_t head) {
  if (kv.v.base == nullptr && kv.v.layer_base == nullptr) return HeadRows{};
  return head_rows(kv.v, shape.value_dim, layer, head);
}

/// Calls move(T{}) with the widest T of 16, 4 or 2 bytes in which all rows, and whatever else
/// `addresses` has the bits of, can be accessed. The same for every thread of a CTA.
template <class Move>
__device__ inline void with_row_unit(const HeadRows& rows, std::uint64_t addresses, Move move) {
  const std::uint64_t bits =
      reinterpret_cast<std::uintptr_t>(rows.base) | static_cast<std::uint64_t>(rows.page_stride) |
      static_cast<std::uint64_t>(rows.head_stride) | static_cast<std::uint64_t>(rows.token_stride) |
      static_cast<std::uint64_t>(rows.bytes) | addresses;
  if (bits % 16 == 0) {
    move(uint4{});
  } else if (bits % 4 == 0) {
    move(std::uint32_t{});
  } else {
    move(std::uint16_t{});
  }
}

}  // namespace growpage::cuda
