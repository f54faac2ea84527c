// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/cuda/pages.hpp"
#include "rows.cuh"
#include "simt.cuh"
#include "staging.cuh"

namespace growpage::cuda {

inline constexpr int page_threads = 256;

/// Host pages: `PageTransfer`'s packed format.
struct HostPages {
  char* base = nullptr;
  std::int64_t page_bytes = 0;
  std::int64_t v_offset = 0;  ///< of V in a host page
};

/// What a launch does with its list of page pairs.
enum class PageMotion { within_cache, to_host, from_host };

/// Every thread has one place in a page, of one layer of K or V, and goes through all pairs in
/// turn: where a target is a later source, the thread that wrote it reads it, so that the copies
/// are in order without a barrier, and there are as many threads as a page has units. Grid: places,
/// layers, K and V. Shape and K/V are as `resolve` makes them.
template <PageMotion motion, class Pair>
__device__ inline void move_pages(const CacheShape& shape, const KvView& kv, const HostPages& host,
                                  const Pair* pairs, std::int32_t count) {
  const auto layer = static_cast<std::int32_t>(blockIdx.y);
  const bool is_v = blockIdx.z == 1;
  const HeadRows first =
      is_v ? v_rows(shape, kv, layer, 0) : head_rows(kv.k, shape.head_dim, layer, 0);
  const std::int64_t layer_bytes = std::int64_t{shape.kv_heads} * shape.page_size * first.bytes;
  char* packed = nullptr;
  std::uint64_t addresses = 0;
  if constexpr (motion != PageMotion::within_cache) {
    packed = host.base + (is_v ? host.v_offset : 0) + layer * layer_bytes;
    addresses =
        reinterpret_cast<std::uintptr_t>(packed) | static_cast<std::uint64_t>(host.page_bytes);
  }
  with_row_unit(first, addresses, [&](auto unit) {
    using Unit = decltype(unit);
    const auto row_units =
        static_cast<std::int64_t>(first.bytes) / static_cast<std::int64_t>(sizeof(Unit));
    const std::int64_t places = row_units * shape.page_size * shape.kv_heads;
    const auto stride = static_cast<std::int64_t>(gridDim.x) * page_threads;
    for (std::int64_t place = std::int64_t{blockIdx.x} * page_threads + threadIdx.x; place < places;
         place += stride) {
      const std::int64_t row = place / row_units;
      const std::int64_t head = row / shape.page_size;
      char* const in_page = first.base + head * first.head_stride +
                            (row - head * shape.page_size) * first.token_stride +
                            (place - row * row_units) * static_cast<std::int64_t>(sizeof(Unit));
      const auto in_cache = [&](PageId page) {
        return reinterpret_cast<Unit*>(in_page + page.value * first.page_stride);
      };
      const auto in_host = [&](PageId page) {
        return reinterpret_cast<Unit*>(packed + page.value * host.page_bytes) + place;
      };
      for (std::int32_t i = 0; i < count; ++i) {
        const Pair pair = pairs[i];
        if constexpr (motion == PageMotion::within_cache) {
          if (pair.source.value < 0 || pair.target.value < 0) continue;
          *in_cache(pair.target) = *in_cache(pair.source);
        } else {
          if (pair.device.value < 0 || pair.host.value < 0) continue;
          if constexpr (motion == PageMotion::to_host) {
            *in_host(pair.host) = *in_cache(pair.device);
          } else {
            *in_cache(pair.device) = *in_host(pair.host);
          }
        }
      }
    }
  });
}

template <PageMotion motion, class Pair>
__global__ void __launch_bounds__(page_threads)
    pages_kernel(CacheShape shape, KvView kv, HostPages host, const Pair* pairs,
                 std::int32_t count) {
  move_pages<motion>(shape, kv, host, pairs, count);
}

/// The same with the pairs by value.
template <PageMotion motion, class Pair>
__global__ void __launch_bounds__(page_threads)
    pages_listed_kernel(CacheShape shape, KvView kv, HostPages host,
                        const __grid_constant__ ParameterList<Pair> pairs, std::int32_t count) {
  move_pages<motion>(shape, kv, host, pairs.at, count);
}

}  // namespace growpage::cuda
