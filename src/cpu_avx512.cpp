// SPDX-License-Identifier: Apache-2.0
// Products of keys and queries for AVX-512: bf16 pairs with vdpbf16ps, which Highway 1.0 does not
// emit, and floats with FMA. Either takes 32 bits of a key, broadcast by the load, and 8 × 32 bits
// of eight queries, so both are one loop.
#include <cstdint>

#include "growpage/detail/cpu_kernels.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstring>

#define GROWPAGE_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,fma"), always_inline)) inline

namespace growpage::detail {
namespace {

/// Keys multiplied at once: sixteen accumulators cover the latency of a product.
constexpr std::int32_t tile_tokens = tile_rows;
/// How many rows ahead of the ones multiplied rows are fetched into the second level, which has
/// room for more outstanding misses, and from there into the first.
constexpr std::int32_t far_ahead = 64;
constexpr std::int32_t near_ahead = tile_tokens;

/// A unit is what one broadcast loads: a pair of bf16 dims, the even one in the low half. An odd
/// last dim is paired with 0.
struct Bf16Pair {
  static constexpr std::int32_t dims = 2;
  static std::uint32_t pack(float low, float high) {
    return BFloat16::from_float(low).bits | std::uint32_t{BFloat16::from_float(high).bits} << 16;
  }
  /// Written out: nothing else here needs AVX512-BF16, and clang 16 crashes on the intrinsic with a
  /// broadcast operand.
  GROWPAGE_AVX512 static __m256 multiply_add(const char* key, __m256 query, __m256 sum) {
    std::int32_t pair;
    std::memcpy(&pair, key, sizeof pair);
    const __m256i keys = _mm256_set1_epi32(pair);
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(keys), "v"(query));
    return sum;
  }
};

/// One dim as a float.
struct Float {
  static constexpr std::int32_t dims = 1;
  static float pack(float value, float /*none*/) { return value; }
  GROWPAGE_AVX512 static __m256 multiply_add(const char* key, __m256 query, __m256 sum) {
    float value;
    std::memcpy(&value, key, sizeof value);
    return _mm256_fmadd_ps(_mm256_set1_ps(value), query, sum);
  }
};

/// Packed: [block of 8 queries][unit][8] units.
template <class Unit>
void pack(const float* q, std::int64_t q_stride, std::int32_t queries, std::int32_t dim,
          void* packed) {
  auto* out = static_cast<decltype(Unit::pack(0, 0))*>(packed);
  for (std::int32_t block = 0; block < queries; block += query_block) {
    for (std::int32_t i = 0; i < dim; i += Unit::dims) {
      for (std::int32_t j = block; j < block + query_block; ++j) {
        const float first = j < queries ? q[j * q_stride + i] : 0.0F;
        const float second = j < queries && i + 1 < dim ? q[j * q_stride + i + 1] : 0.0F;
        *out++ = Unit::pack(first, second);
      }
    }
  }
}

/// 8×8 transpose: in [token][query] → out[query · stride + token].
GROWPAGE_AVX512 void store_transposed(const __m256* in, float* out, std::int64_t stride,
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

/// Fetches the rows to come piece by piece: all at once they would fill the queue of misses and
/// hold up what is needed now.
struct Fetch {
  const char* far;
  const char* near;
  std::int64_t stride;
  std::int64_t bytes;
  std::int64_t step;
  std::int64_t at = 0;

  GROWPAGE_AVX512 void next() {
    _mm_prefetch(far + at, _MM_HINT_T1);
    _mm_prefetch(near + at, _MM_HINT_T0);
    at += step;
    if (at >= bytes) {
      at = 0;
      far += stride;
      near += stride;
    }
  }
};

/// The products of a block of 8 queries with the `units` of 16 rows, `stride` bytes apart.
template <class Unit>
GROWPAGE_AVX512 void multiply_tile(const char* rows, std::int64_t stride, std::int32_t units,
                                   const float* q, Fetch fetch, __m256* sums) {
  const char* a = rows;
  const char* b = rows + 4 * stride;
  const char* c = rows + 8 * stride;
  const char* d = rows + 12 * stride;
  const std::int64_t s3 = 3 * stride;
  __m256 s[tile_tokens];
  for (__m256& sum : s) sum = _mm256_setzero_ps();
  for (std::int32_t i = 0; i < units; ++i) {
    fetch.next();
    const __m256 x = _mm256_loadu_ps(q);
    s[0] = Unit::multiply_add(a, x, s[0]);
    s[1] = Unit::multiply_add(a + stride, x, s[1]);
    s[2] = Unit::multiply_add(a + 2 * stride, x, s[2]);
    s[3] = Unit::multiply_add(a + s3, x, s[3]);
    s[4] = Unit::multiply_add(b, x, s[4]);
    s[5] = Unit::multiply_add(b + stride, x, s[5]);
    s[6] = Unit::multiply_add(b + 2 * stride, x, s[6]);
    s[7] = Unit::multiply_add(b + s3, x, s[7]);
    s[8] = Unit::multiply_add(c, x, s[8]);
    s[9] = Unit::multiply_add(c + stride, x, s[9]);
    s[10] = Unit::multiply_add(c + 2 * stride, x, s[10]);
    s[11] = Unit::multiply_add(c + s3, x, s[11]);
    s[12] = Unit::multiply_add(d, x, s[12]);
    s[13] = Unit::multiply_add(d + stride, x, s[13]);
    s[14] = Unit::multiply_add(d + 2 * stride, x, s[14]);
    s[15] = Unit::multiply_add(d + s3, x, s[15]);
    a += 4, b += 4, c += 4, d += 4;
    q += query_block;
  }
  for (std::int32_t t = 0; t < tile_tokens; ++t) sums[t] = s[t];
}

/// Stores the products of a block's first `queries` queries with the first `tokens` rows of a tile.
GROWPAGE_AVX512 void store_tile(const __m256* sums, std::int32_t tokens, std::int32_t queries,
                                float* out, std::int64_t stride) {
  if (tokens == tile_tokens) {
    store_transposed(sums, out, stride, queries);
    store_transposed(sums + 8, out + 8, stride, queries);
    return;
  }
  float part[query_block * tile_tokens];
  store_transposed(sums, part, tile_tokens, query_block);
  store_transposed(sums + 8, part + 8, tile_tokens, query_block);
  for (std::int32_t i = 0; i < query_block && i < queries; ++i) {
    std::memcpy(out + i * stride, part + std::int64_t{i} * tile_tokens,
                static_cast<std::size_t>(tokens) * sizeof(float));
  }
}

/// Where row `row` of this page lies, in the next page when it is past the end, or, where there is
/// none, any row.
GROWPAGE_AVX512 const char* row_to_fetch(const KRows& k, std::int32_t row, std::int64_t stride) {
  if (row >= k.tokens && k.next != nullptr) {
    return static_cast<const char*>(k.next) + (row - k.tokens) * stride;
  }
  return static_cast<const char*>(k.rows) + (row < k.tokens ? row * stride : 0);
}

// Where a tile's units come from: rows that are multiplied as they lie, but for the last ones (what
// is past them is not to be read) and odd dims, or rows that are widened first.

struct F32Row {
  using Unit = Float;
  static constexpr std::int32_t bytes = 4;
  static constexpr bool in_place = true;
  GROWPAGE_AVX512 static void widen(const char* row, std::int32_t dim, float* out) {
    std::memcpy(out, row, static_cast<std::size_t>(dim) * sizeof(float));
  }
};
/// Sixteen halves at a time; of the last ones only those that are there are read. The all-ones mask
/// of the conversions works around GCC 12, which warns of the undefined source in those without.
constexpr __mmask16 all = 0xffff;
template <class Widen>
GROWPAGE_AVX512 void widen_halves(const char* row, std::int32_t dim, float* out, Widen widen) {
  std::int32_t i = 0;
  for (; i + 16 <= dim; i += 16) {
    _mm512_storeu_ps(out + i, widen(_mm256_loadu_epi16(row + std::int64_t{i} * 2)));
  }
  if (i == dim) return;
  const auto rest = static_cast<__mmask16>((1u << (dim - i)) - 1);
  _mm512_storeu_ps(out + i, widen(_mm256_maskz_loadu_epi16(rest, row + std::int64_t{i} * 2)));
}
struct WidenF16 {
  GROWPAGE_AVX512 __m512 operator()(__m256i halves) const {
    return _mm512_maskz_cvtph_ps(all, halves);
  }
};
struct WidenBf16 {
  GROWPAGE_AVX512 __m512 operator()(__m256i halves) const {
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(all, halves);
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(all, wide, 16));
  }
};
/// f16 and bf16: rows that are widened to floats.
template <class Widen>
struct HalfRow {
  using Unit = Float;
  static constexpr std::int32_t bytes = 2;
  static constexpr bool in_place = false;
  GROWPAGE_AVX512 static void widen(const char* row, std::int32_t dim, float* out) {
    widen_halves(row, dim, out, Widen());
  }
};
struct Bf16PairRow {
  using Unit = Bf16Pair;
  static constexpr std::int32_t bytes = 2;
  static constexpr bool in_place = true;
  GROWPAGE_AVX512 static void widen(const char* row, std::int32_t dim, float* out) {
    if (dim % 2 != 0) out[dim / 2] = 0.0F;
    std::memcpy(out, row, static_cast<std::size_t>(dim) * 2);
  }
};

template <class Row>
__attribute__((target("avx512f,avx512bw,avx512vl,fma"))) void dot(const KRows& k,
                                                                  const void* packed,
                                                                  std::int32_t queries, float* out,
                                                                  std::int64_t out_stride,
                                                                  float* tile) {
  using Unit = typename Row::Unit;
  const std::int64_t stride = k.token_stride * Row::bytes;
  const std::int64_t tile_stride = (std::int64_t{k.dim} + 15) / 16 * 16;
  const std::int32_t units = (k.dim + Unit::dims - 1) / Unit::dims;
  const bool in_place = Row::in_place && k.dim % Unit::dims == 0;
  for (std::int32_t first = 0; first < k.tokens; first += tile_tokens) {
    const std::int32_t tokens = k.tokens - first < tile_tokens ? k.tokens - first : tile_tokens;
    const Fetch fetch{row_to_fetch(k, first + far_ahead, stride),
                      row_to_fetch(k, first + near_ahead, stride), stride,
                      std::int64_t{k.dim} * Row::bytes,
                      std::int64_t{tile_tokens} * Row::bytes * Unit::dims};
    const char* rows = static_cast<const char*>(k.rows) + first * stride;
    std::int64_t rows_stride = stride;
    if (!in_place || tokens < tile_tokens) {
      // Rows past the last one are not to be read; their products are not stored.
      for (std::int32_t t = 0; t < tokens; ++t) {
        Row::widen(rows + t * stride, k.dim, tile + t * tile_stride);
      }
      rows = reinterpret_cast<const char*>(tile);
      rows_stride = tile_stride * 4;
    }
    for (std::int32_t j = 0; j < queries; j += query_block) {
      __m256 sums[tile_tokens];
      multiply_tile<Unit>(rows, rows_stride, units,
                          static_cast<const float*>(packed) + std::int64_t{j} * units, fetch, sums);
      store_tile(sums, tokens, queries - j, out + j * out_stride + first, out_stride);
    }
  }
}

template <class Row>
void use(CpuKernels& kernels, std::int32_t index) noexcept {
  kernels.pack[index] = pack<typename Row::Unit>;
  kernels.dot[index] = dot<Row>;
}

}  // namespace

bool use_avx512(CpuKernels& kernels) noexcept {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) return false;
  use<F32Row>(kernels, static_cast<std::int32_t>(DType::f32));
  use<HalfRow<WidenF16>>(kernels, static_cast<std::int32_t>(DType::f16));
  use<HalfRow<WidenBf16>>(kernels, static_cast<std::int32_t>(DType::bf16));
  use<HalfRow<WidenBf16>>(kernels, bf16_queries);
  if (!__builtin_cpu_supports("avx512bf16")) return false;
  use<Bf16PairRow>(kernels, bf16_queries);
  return true;
}

}  // namespace growpage::detail

#else

bool growpage::detail::use_avx512(CpuKernels& /*kernels*/) noexcept { return false; }

#endif
