// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/cuda/append.hpp"
#include "rows.cuh"
#include "simt.cuh"

namespace growpage::cuda {

inline constexpr int append_threads = 256;

/// A thread per unit of a row; grid: units, K and V. Shape and K/V are as `resolve` makes them.
__global__ void __launch_bounds__(append_threads) append_kernel(AppendKv append) {
  const CacheShape& shape = append.shape;
  const bool is_v = blockIdx.y == 1;
  const auto* const source = static_cast<const char*>(is_v ? append.v : append.k);
  const HeadRows rows = is_v ? v_rows(shape, append.kv, append.layer, 0)
                             : head_rows(append.kv.k, shape.head_dim, append.layer, 0);
  with_row_unit(rows, reinterpret_cast<std::uintptr_t>(source), [&](auto unit) {
    using Unit = decltype(unit);
    const auto row_units =
        static_cast<std::int64_t>(rows.bytes) / static_cast<std::int64_t>(sizeof(Unit));
    const std::int64_t token_units = row_units * shape.kv_heads;
    const auto stride = static_cast<std::int64_t>(gridDim.x) * append_threads;
    for (std::int64_t at = std::int64_t{blockIdx.x} * append_threads + threadIdx.x;
         at < append.tokens * token_units; at += stride) {
      const std::int64_t token = at / token_units;
      const std::int64_t slot = append.slot_mapping[token];
      if (slot < 0) continue;
      const std::int64_t head = (at - token * token_units) / row_units;
      const auto page = static_cast<std::int32_t>(slot / shape.page_size);
      char* const row = rows.row(page, static_cast<std::int32_t>(slot % shape.page_size)) +
                        head * rows.head_stride;
      reinterpret_cast<Unit*>(row)[at % row_units] = reinterpret_cast<const Unit*>(source)[at];
    }
  });
}

}  // namespace growpage::cuda
