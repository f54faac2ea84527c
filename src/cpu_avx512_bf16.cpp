// SPDX-License-Identifier: Apache-2.0
// Products of bf16 keys and queries with AVX512-BF16's vdpbf16ps, which Highway 1.0 does not emit.
#include <cstdint>

#include "growpage/detail/cpu_kernels.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstring>

#define GROWPAGE_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace growpage::detail {
namespace {

/// Keys multiplied at once: sixteen accumulators cover the latency of vdpbf16ps.
constexpr std::int32_t tile_tokens = 16;

/// Packed: [block of 8 queries][pair of dims][8] pairs of bf16, the even dim in the low half; an
/// odd last dim is paired with 0.
void pack(const float* q, std::int64_t q_stride, std::int32_t queries, std::int32_t dim,
          void* packed) {
  auto* out = static_cast<std::uint32_t*>(packed);
  for (std::int32_t block = 0; block < queries; block += query_block) {
    for (std::int32_t i = 0; i < dim; i += 2) {
      for (std::int32_t j = block; j < block + query_block; ++j) {
        const float low = j < queries ? q[j * q_stride + i] : 0.0F;
        const float high = j < queries && i + 1 < dim ? q[j * q_stride + i + 1] : 0.0F;
        *out++ = BFloat16::from_float(low).bits | std::uint32_t{BFloat16::from_float(high).bits}
                                                      << 16;
      }
    }
  }
}

/// Adds to one token's sums the product of a pair of its dims with the pair of every query. The
/// instruction is written out since clang 16 crashes on the intrinsic with a broadcast operand.
GROWPAGE_AVX512_BF16 inline __m256 add_pair(__m256 sum, const char* key, __m256i query) {
  std::int32_t pair;
  std::memcpy(&pair, key, sizeof pair);
  const __m256i keys = _mm256_set1_epi32(pair);
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(keys), "v"(query));
  return sum;
}

/// 8×8 transpose: in [token][query] → out[query · stride + token].
GROWPAGE_AVX512_BF16 inline void store_transposed(const __m256* in, float* out, std::int64_t stride,
                                                  std::int32_t queries) {
  __m256 pairs[8];
  __m256 quads[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(in[i], in[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(in[i], in[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
  for (int j = 0; j < 4; ++j) {
    if (j < queries) {
      _mm256_storeu_ps(out + j * stride, _mm256_permute2f128_ps(quads[j], quads[j + 4], 0x20));
    }
    if (j + 4 < queries) {
      _mm256_storeu_ps(out + (j + 4) * stride,
                       _mm256_permute2f128_ps(quads[j], quads[j + 4], 0x31));
    }
  }
}

/// The products of a block of 8 queries with 16 rows, `stride` bytes apart. `ahead` [16 rows] is
/// fetched meanwhile.
GROWPAGE_AVX512_BF16 inline void multiply_tile(const char* rows, std::int64_t stride,
                                               std::int32_t dim, const std::uint32_t* q,
                                               const char* ahead, __m256* sums) {
  const char* a = rows;
  const char* b = rows + 4 * stride;
  const char* c = rows + 8 * stride;
  const char* d = rows + 12 * stride;
  const std::int64_t s3 = 3 * stride;
  __m256 s[tile_tokens];
  for (__m256& sum : s) sum = _mm256_setzero_ps();
  const std::int32_t pairs = dim / 2;
  std::int64_t line = 0;
  for (std::int32_t i = 0; i < pairs; ++i) {
    // 16 rows have as many cache lines as a row has pairs: one line a step, in the order of memory,
    // which the hardware prefetchers follow.
    _mm_prefetch(ahead + line, _MM_HINT_T0);
    line += 64;
    if (line >= static_cast<std::int64_t>(dim) * 2) {
      line = 0;
      ahead += stride;
    }
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q));
    s[0] = add_pair(s[0], a, x);
    s[1] = add_pair(s[1], a + stride, x);
    s[2] = add_pair(s[2], a + 2 * stride, x);
    s[3] = add_pair(s[3], a + s3, x);
    s[4] = add_pair(s[4], b, x);
    s[5] = add_pair(s[5], b + stride, x);
    s[6] = add_pair(s[6], b + 2 * stride, x);
    s[7] = add_pair(s[7], b + s3, x);
    s[8] = add_pair(s[8], c, x);
    s[9] = add_pair(s[9], c + stride, x);
    s[10] = add_pair(s[10], c + 2 * stride, x);
    s[11] = add_pair(s[11], c + s3, x);
    s[12] = add_pair(s[12], d, x);
    s[13] = add_pair(s[13], d + stride, x);
    s[14] = add_pair(s[14], d + 2 * stride, x);
    s[15] = add_pair(s[15], d + s3, x);
    a += 4, b += 4, c += 4, d += 4;
    q += query_block;
  }
  if (dim % 2 != 0) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q));
    for (std::int32_t t = 0; t < tile_tokens; ++t) {
      char pair[4] = {};
      std::memcpy(pair, rows + t * stride + std::int64_t{dim - 1} * 2, 2);
      s[t] = add_pair(s[t], pair, x);
    }
  }
  for (std::int32_t t = 0; t < tile_tokens; ++t) sums[t] = s[t];
}

GROWPAGE_AVX512_BF16 void dot(const KRows& k, const void* packed, std::int32_t queries, float* out,
                              std::int64_t out_stride, float* tile) {
  const std::int64_t row_bytes = std::int64_t{k.dim} * 2;
  const std::int64_t block = (std::int64_t{k.dim} + 1) / 2 * query_block;
  for (std::int32_t first = 0; first < k.tokens; first += tile_tokens) {
    const std::int32_t tokens = k.tokens - first < tile_tokens ? k.tokens - first : tile_tokens;
    const char* rows = static_cast<const char*>(k.rows) + first * k.token_stride * 2;
    std::int64_t stride = k.token_stride * 2;
    if (tokens < tile_tokens) {
      // Rows past the last one are not to be read: the tile is completed in scratch.
      char* copy = reinterpret_cast<char*>(tile);
      std::memset(copy, 0, static_cast<std::size_t>(row_bytes) * tile_tokens);
      for (std::int32_t t = 0; t < tokens; ++t) {
        std::memcpy(copy + t * row_bytes, rows + t * stride, static_cast<std::size_t>(row_bytes));
      }
      rows = copy;
      stride = row_bytes;
    }
    const char* ahead = first + 2 * tile_tokens <= k.tokens ? rows + tile_tokens * stride
                        : k.next != nullptr                 ? static_cast<const char*>(k.next)
                                                            : rows;
    for (std::int32_t j = 0; j < queries; j += query_block) {
      __m256 sums[tile_tokens];
      multiply_tile(rows, stride, k.dim,
                    static_cast<const std::uint32_t*>(packed) + j / query_block * block, ahead,
                    sums);
      float* to = out + j * out_stride + first;
      if (tokens == tile_tokens) {
        store_transposed(sums, to, out_stride, queries - j);
        store_transposed(sums + 8, to + 8, out_stride, queries - j);
        continue;
      }
      float part[query_block * tile_tokens];
      store_transposed(sums, part, tile_tokens, query_block);
      store_transposed(sums + 8, part + 8, tile_tokens, query_block);
      for (std::int32_t i = 0; i < query_block && j + i < queries; ++i) {
        std::memcpy(to + i * out_stride, part + static_cast<std::int64_t>(i) * tile_tokens,
                    static_cast<std::size_t>(tokens) * sizeof(float));
      }
    }
  }
}

}  // namespace

bool use_avx512_bf16(CpuKernels& kernels) noexcept {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl")) {
    return false;
  }
  kernels.pack[bf16_queries] = pack;
  kernels.dot[bf16_queries] = dot;
  return true;
}

}  // namespace growpage::detail

#else

namespace growpage::detail {

bool use_avx512_bf16(CpuKernels& /*kernels*/) noexcept { return false; }

}  // namespace growpage::detail

#endif
