// SPDX-License-Identifier: Apache-2.0
// What cpu_avx512.cpp multiplies, and its only includer: units of dims, and rows of keys that give
// them.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "growpage/core/dtype.hpp"
#include "growpage/detail/cpu_kernels.hpp"

#define GROWPAGE_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,fma"), always_inline)) inline

namespace growpage::detail::avx512 {

/// Keys multiplied at once: sixteen accumulators cover the latency of a product.
constexpr std::int32_t tile_tokens = tile_rows;

// A unit is what one broadcast loads and one product takes: `words` words of 32 bits, each `dims`
// dims of a key, in a vector beside those of eight queries.

/// Two pairs of bf16 dims, the even one in the low half of a pair. A last pair is filled with 0.
struct Bf16Pairs {
  using Vector = __m512;
  static constexpr std::int32_t words = 2;
  static constexpr std::int32_t dims = 2;
  static std::uint32_t pack(float low, float high) {
    return BFloat16::from_float(low).bits | std::uint32_t{BFloat16::from_float(high).bits} << 16;
  }
  GROWPAGE_AVX512 static Vector zero() { return _mm512_setzero_ps(); }
  GROWPAGE_AVX512 static Vector load(const float* queries) { return _mm512_loadu_ps(queries); }
  /// Written out: nothing else here needs AVX512-BF16, and clang 16 crashes on the intrinsic with a
  /// broadcast operand.
  GROWPAGE_AVX512 static Vector multiply_add(const char* key, Vector query, Vector sum) {
    std::int64_t pairs;
    std::memcpy(&pairs, key, sizeof pairs);
    const __m512i keys = _mm512_set1_epi64(pairs);
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(keys), "v"(query));
    return sum;
  }
  /// Adds the two words of each query up, of two tokens at a time.
  GROWPAGE_AVX512 static void sums(const Vector* s, __m256* out) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
    for (std::int32_t t = 0; t < tile_tokens; t += 2) {
      const __m512 sum = _mm512_add_ps(_mm512_permutex2var_ps(s[t], even, s[t + 1]),
                                       _mm512_permutex2var_ps(s[t], odd, s[t + 1]));
      _mm512_storeu_ps(reinterpret_cast<float*>(out + t), sum);
    }
  }
};

/// One dim as a float. (Two in 512 bits, as above, take a fifth longer.)
struct Float {
  using Vector = __m256;
  static constexpr std::int32_t words = 1;
  static constexpr std::int32_t dims = 1;
  static float pack(float value, float /*none*/) { return value; }
  GROWPAGE_AVX512 static Vector zero() { return _mm256_setzero_ps(); }
  GROWPAGE_AVX512 static Vector load(const float* queries) { return _mm256_loadu_ps(queries); }
  GROWPAGE_AVX512 static Vector multiply_add(const char* key, Vector query, Vector sum) {
    float value;
    std::memcpy(&value, key, sizeof value);
    return _mm256_fmadd_ps(_mm256_set1_ps(value), query, sum);
  }
  GROWPAGE_AVX512 static void sums(const Vector* s, __m256* out) {
    for (std::int32_t t = 0; t < tile_tokens; ++t) out[t] = s[t];
  }
};

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
struct Bf16PairsRow {
  using Unit = Bf16Pairs;
  static constexpr std::int32_t bytes = 2;
  static constexpr bool in_place = true;
  GROWPAGE_AVX512 static void widen(const char* row, std::int32_t dim, float* out) {
    // What is past the last dim of a unit; within the row, whose length is a multiple of 16 floats.
    out[dim / 2] = out[dim / 2 + 1] = 0.0F;
    std::memcpy(out, row, static_cast<std::size_t>(dim) * 2);
  }
};

}  // namespace growpage::detail::avx512
