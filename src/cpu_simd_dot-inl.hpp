// SPDX-License-Identifier: Apache-2.0
// Queries times keys.
#if defined(GROWPAGE_CPU_SIMD_DOT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GROWPAGE_CPU_SIMD_DOT_INL
#undef GROWPAGE_CPU_SIMD_DOT_INL
#else
#define GROWPAGE_CPU_SIMD_DOT_INL
#endif

#include <cstdint>

#include "cpu_simd_vectors-inl.hpp"
#include "growpage/detail/cpu_kernels.hpp"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace growpage::detail::HWY_NAMESPACE {
#if GROWPAGE_CPU_HAS_VECTORS

/// Packed: [block of 8 queries][dim][8], so that one vector holds an element of all queries of a
/// block and a key's element is broadcast to it: no sum over lanes is needed.
inline void pack(const float* q, std::int64_t q_stride, std::int32_t queries, std::int32_t dim,
                 void* packed) {
  float* out = static_cast<float*>(packed);
  for (std::int32_t block = 0; block < queries; block += query_block) {
    for (std::int32_t i = 0; i < dim; ++i) {
      for (std::int32_t j = block; j < block + query_block; ++j) {
        *out++ = j < queries ? q[j * q_stride + i] : 0.0F;
      }
    }
  }
}

using Block = hn::CappedTag<float, query_block>;
using VecBlock = hn::Vec<Block>;
inline constexpr std::int32_t block_lanes = static_cast<std::int32_t>(hn::MaxLanes(Block()));
/// Keys multiplied at once: eight accumulators hide the latency of FMA and fit in 16 registers.
inline constexpr std::int32_t tile_tokens = 8;

/// Four vectors [token] of block_lanes queries → rows of four tokens: out[j · stride].
HWY_INLINE void store_four(VecBlock a, VecBlock b, VecBlock c, VecBlock d, float* out,
                           std::int64_t stride, std::int32_t queries) {
  const Block tag;
  const hn::RepartitionToWide<Block> wide;
  const VecBlock ab_low = hn::InterleaveLower(tag, a, b);
  const VecBlock ab_high = hn::InterleaveUpper(tag, a, b);
  const VecBlock cd_low = hn::InterleaveLower(tag, c, d);
  const VecBlock cd_high = hn::InterleaveUpper(tag, c, d);
  const auto low_ab = hn::BitCast(wide, ab_low);
  const auto low_cd = hn::BitCast(wide, cd_low);
  const auto high_ab = hn::BitCast(wide, ab_high);
  const auto high_cd = hn::BitCast(wide, cd_high);
  const VecBlock rows[4] = {hn::BitCast(tag, hn::InterleaveLower(wide, low_ab, low_cd)),
                            hn::BitCast(tag, hn::InterleaveUpper(wide, low_ab, low_cd)),
                            hn::BitCast(tag, hn::InterleaveLower(wide, high_ab, high_cd)),
                            hn::BitCast(tag, hn::InterleaveUpper(wide, high_ab, high_cd))};
  HWY_ALIGN float four[4 * 8];
  for (std::int32_t j = 0; j < 4; ++j) {
    hn::Store(rows[j], tag, four + j * block_lanes);
  }
  const hn::FixedTag<float, 4> quad;
  for (std::int32_t j = 0; j < HWY_MIN(queries, block_lanes); ++j) {
    hn::StoreU(hn::Load(quad, four + (j % 4) * block_lanes + j / 4 * 4), quad, out + j * stride);
  }
}

/// The products of one block of queries with `tile_tokens` keys.
HWY_INLINE void multiply_tile(const float* const* keys, std::int32_t dim, const float* q,
                              VecBlock* sums) {
  const Block tag;
  const float *k0 = keys[0], *k1 = keys[1], *k2 = keys[2], *k3 = keys[3];
  const float *k4 = keys[4], *k5 = keys[5], *k6 = keys[6], *k7 = keys[7];
  VecBlock s0 = hn::Zero(tag), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  for (std::int32_t i = 0; i < dim; ++i, q += query_block) {
    const VecBlock x = hn::LoadU(tag, q);
    s0 = hn::MulAdd(hn::Set(tag, k0[i]), x, s0);
    s1 = hn::MulAdd(hn::Set(tag, k1[i]), x, s1);
    s2 = hn::MulAdd(hn::Set(tag, k2[i]), x, s2);
    s3 = hn::MulAdd(hn::Set(tag, k3[i]), x, s3);
    s4 = hn::MulAdd(hn::Set(tag, k4[i]), x, s4);
    s5 = hn::MulAdd(hn::Set(tag, k5[i]), x, s5);
    s6 = hn::MulAdd(hn::Set(tag, k6[i]), x, s6);
    s7 = hn::MulAdd(hn::Set(tag, k7[i]), x, s7);
  }
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
  sums[4] = s4, sums[5] = s5, sums[6] = s6, sums[7] = s7;
}

/// Stores the products of the first `tokens` of a tile's keys.
HWY_INLINE void store_tile(const VecBlock* sums, std::int32_t tokens, float* out,
                           std::int64_t stride, std::int32_t queries) {
  for (std::int32_t t = 0; t < tokens; t += 4) {
    if (t + 4 <= tokens) {
      store_four(sums[t], sums[t + 1], sums[t + 2], sums[t + 3], out + t, stride, queries);
      continue;
    }
    HWY_ALIGN float rest_of_tile[4 * 8];
    store_four(sums[t], sums[t + 1], sums[t + 2], sums[t + 3], rest_of_tile, 4, queries);
    for (std::int32_t j = 0; j < HWY_MIN(queries, block_lanes); ++j) {
      for (std::int32_t u = t; u < tokens; ++u) out[j * stride + u] = rest_of_tile[j * 4 + u - t];
    }
  }
}

template <class T>
void dot(const KRows& k, const void* packed, std::int32_t queries, float* out,
         std::int64_t out_stride, float* tile) {
  const T* rows = static_cast<const T*>(k.rows);
  const std::int64_t tile_stride = (std::int64_t{k.dim} + 15) / 16 * 16;
  for (std::int32_t first = 0; first < k.tokens; first += tile_tokens) {
    const std::int32_t tokens = HWY_MIN(tile_tokens, k.tokens - first);
    const T* ahead = first + 2 * tile_tokens <= k.tokens
                         ? rows + (first + tile_tokens) * k.token_stride
                         : static_cast<const T*>(k.next);
    const float* keys[tile_tokens];
    for (std::int32_t t = 0; t < tile_tokens; ++t) {
      // A row that does not exist is replaced by one that does; its products are not stored.
      const T* row = rows + (first + HWY_MIN(t, tokens - 1)) * k.token_stride;
      if (ahead != nullptr) {
        const char* line = reinterpret_cast<const char*>(ahead + t * k.token_stride);
        const std::int64_t bytes = std::int64_t{k.dim} * static_cast<std::int64_t>(sizeof(T));
        for (std::int64_t byte = 0; byte < bytes; byte += 64) hwy::Prefetch(line + byte);
      }
      // Floats too: rows of token-major pages share sets of the first level, and all rows are read
      // faster one after the other than a column at a time.
      widen<T>(row, k.dim, tile + t * tile_stride);
      keys[t] = tile + t * tile_stride;
    }
    for (std::int32_t j = 0; j < queries; j += block_lanes) {
      const float* q = static_cast<const float*>(packed) + (j / query_block * k.dim) * query_block +
                       j % query_block;
      VecBlock sums[tile_tokens];
      multiply_tile(keys, k.dim, q, sums);
      store_tile(sums, tokens, out + j * out_stride + first, out_stride, queries - j);
    }
  }
}

#endif
}  // namespace growpage::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
