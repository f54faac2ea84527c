// SPDX-License-Identifier: Apache-2.0
// Products of keys and queries for AVX-512: bf16 pairs with vdpbf16ps, which Highway 1.0 does not
// emit, and floats with FMA. Either takes a unit of a key, broadcast by the load, and as many bits
// of each of eight queries, so both are one loop.
#include <cstdint>

#include "growpage/detail/cpu_kernels.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include "cpu_avx512_rows-inl.hpp"

namespace growpage::detail {
namespace avx512 {
namespace {

/// How many rows ahead of the ones multiplied rows are fetched into the second level, which has
/// room for more outstanding misses, and from there into the first.
constexpr std::int32_t far_ahead = 64;
constexpr std::int32_t near_ahead = tile_tokens;

template <class Unit>
constexpr std::int32_t units_of(std::int32_t dim) {
  constexpr std::int32_t dims = Unit::words * Unit::dims;
  return (dim + dims - 1) / dims;
}

/// Packed: [block of 8 queries][unit][8][words].
template <class Unit>
void pack(const float* q, std::int64_t q_stride, std::int32_t queries, std::int32_t dim,
          void* packed) {
  auto* out = static_cast<decltype(Unit::pack(0, 0))*>(packed);
  const auto at = [&](std::int32_t j, std::int32_t i) {
    return j < queries && i < dim ? q[j * q_stride + i] : 0.0F;
  };
  for (std::int32_t block = 0; block < queries; block += query_block) {
    for (std::int32_t unit = 0; unit < units_of<Unit>(dim); ++unit) {
      for (std::int32_t j = block; j < block + query_block; ++j) {
        for (std::int32_t word = 0; word < Unit::words; ++word) {
          const std::int32_t i = (unit * Unit::words + word) * Unit::dims;
          *out++ = Unit::pack(at(j, i), at(j, i + 1));
        }
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

/// Fetches the rows to come line by line: all at once they would fill the queue of misses and hold
/// up what is needed now.
struct Fetch {
  const char* far;
  const char* near;
  std::int64_t stride;
  std::int64_t bytes;
  std::int64_t at = 0;

  template <bool Near>
  GROWPAGE_AVX512 void next() {
    _mm_prefetch(far + at, _MM_HINT_T1);
    if constexpr (Near) _mm_prefetch(near + at, _MM_HINT_T0);
    at += 64;
    if (at >= bytes) {
      at = 0;
      far += stride;
      near += stride;
    }
  }
};

/// The products of a block of 8 queries with the `units` of 16 rows, `stride` bytes apart, while as
/// many rows are fetched, `Bytes` a unit and row.
template <class Unit, std::int32_t Bytes, bool Near>
GROWPAGE_AVX512 void multiply_tile(const char* rows, std::int64_t stride, std::int32_t units,
                                   const float* q, Fetch fetch, __m256* sums) {
  constexpr std::int32_t lines = Bytes * tile_tokens / 64;  // 0: a line every other unit
  const char* a = rows;
  const char* b = rows + 4 * stride;
  const char* c = rows + 8 * stride;
  const char* d = rows + 12 * stride;
  const std::int64_t s3 = 3 * stride;
  typename Unit::Vector s[tile_tokens];
  for (auto& sum : s) sum = Unit::zero();
  for (std::int32_t i = 0; i < units; ++i) {
    if (lines > 0 || i % 2 == 0) fetch.next<Near>();
    const auto x = Unit::load(q);
    s[0] = Unit::multiply_add(a, x, s[0]);
    s[1] = Unit::multiply_add(a + stride, x, s[1]);
    s[2] = Unit::multiply_add(a + 2 * stride, x, s[2]);
    s[3] = Unit::multiply_add(a + s3, x, s[3]);
    s[4] = Unit::multiply_add(b, x, s[4]);
    s[5] = Unit::multiply_add(b + stride, x, s[5]);
    s[6] = Unit::multiply_add(b + 2 * stride, x, s[6]);
    s[7] = Unit::multiply_add(b + s3, x, s[7]);
    if (lines > 1) fetch.next<Near>();
    s[8] = Unit::multiply_add(c, x, s[8]);
    s[9] = Unit::multiply_add(c + stride, x, s[9]);
    s[10] = Unit::multiply_add(c + 2 * stride, x, s[10]);
    s[11] = Unit::multiply_add(c + s3, x, s[11]);
    s[12] = Unit::multiply_add(d, x, s[12]);
    s[13] = Unit::multiply_add(d + stride, x, s[13]);
    s[14] = Unit::multiply_add(d + 2 * stride, x, s[14]);
    s[15] = Unit::multiply_add(d + s3, x, s[15]);
    a += 4 * Unit::words, b += 4 * Unit::words, c += 4 * Unit::words, d += 4 * Unit::words;
    q += query_block * Unit::words;
  }
  Unit::sums(s, sums);
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

/// `InPlace`: the rows are multiplied where they lie, but for a last tile of fewer rows (rows past
/// the last one are not to be read; their products are not stored).
template <class Row, bool InPlace>
GROWPAGE_AVX512 void dot_rows(const KRows& k, const void* packed, std::int32_t queries, float* out,
                              std::int64_t out_stride, float* tile) {
  using Unit = typename Row::Unit;
  const std::int64_t stride = k.token_stride * Row::bytes;
  const std::int64_t tile_stride = (std::int64_t{k.dim} + 15) / 16 * 16;
  const std::int32_t units = units_of<Unit>(k.dim);
  for (std::int32_t first = 0; first < k.tokens; first += tile_tokens) {
    const std::int32_t tokens = k.tokens - first < tile_tokens ? k.tokens - first : tile_tokens;
    const Fetch fetch{row_to_fetch(k, first + far_ahead, stride),
                      row_to_fetch(k, first + near_ahead, stride), stride,
                      std::int64_t{k.dim} * Row::bytes};
    const char* rows = static_cast<const char*>(k.rows) + first * stride;
    std::int64_t rows_stride = stride;
    if (!InPlace || tokens < tile_tokens) {
      for (std::int32_t t = 0; t < tokens; ++t) {
        Row::widen(rows + t * stride, k.dim, tile + t * tile_stride);
      }
      rows = reinterpret_cast<const char*>(tile);
      rows_stride = tile_stride * 4;
    }
    for (std::int32_t j = 0; j < queries; j += query_block) {
      __m256 sums[tile_tokens];
      multiply_tile<Unit, Row::bytes * Unit::words * Unit::dims, InPlace || !Row::in_place>(
          rows, rows_stride, units,
          static_cast<const float*>(packed) + std::int64_t{j} * units * Unit::words, fetch, sums);
      store_tile(sums, tokens, queries - j, out + j * out_stride + first, out_stride);
    }
  }
}

template <class Row>
__attribute__((target("avx512f,avx512bw,avx512vl,fma"))) void dot(const KRows& k,
                                                                  const void* packed,
                                                                  std::int32_t queries, float* out,
                                                                  std::int64_t out_stride,
                                                                  float* tile) {
  // Rows a multiple of 2 KiB apart (token-major pages) share one or two sets of the first level,
  // which cannot hold a tile of them: every product would miss. They are copied, and not fetched
  // into the first level ahead of that.
  const bool crowded = k.token_stride * Row::bytes % 2048 == 0;
  const bool whole = k.dim % (Row::Unit::words * Row::Unit::dims) == 0;
  if (Row::in_place && whole && !crowded) {
    dot_rows<Row, true>(k, packed, queries, out, out_stride, tile);
  } else {
    dot_rows<Row, false>(k, packed, queries, out, out_stride, tile);
  }
}

template <class Row>
void use(CpuKernels& kernels, std::int32_t index) noexcept {
  kernels.pack[index] = pack<typename Row::Unit>;
  kernels.dot[index] = dot<Row>;
}

/// Whether that includes AVX512-BF16.
bool use_all(CpuKernels& kernels) noexcept {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) return false;
  use<F32Row>(kernels, static_cast<std::int32_t>(DType::f32));
  use<HalfRow<WidenF16>>(kernels, static_cast<std::int32_t>(DType::f16));
  use<HalfRow<WidenBf16>>(kernels, static_cast<std::int32_t>(DType::bf16));
  use<HalfRow<WidenBf16>>(kernels, bf16_queries);
  if (!__builtin_cpu_supports("avx512bf16")) return false;
  use<Bf16PairsRow>(kernels, bf16_queries);
  return true;
}

}  // namespace
}  // namespace avx512

bool use_avx512(CpuKernels& kernels) noexcept { return avx512::use_all(kernels); }

}  // namespace growpage::detail

#else

bool growpage::detail::use_avx512(CpuKernels& /*kernels*/) noexcept { return false; }

#endif
