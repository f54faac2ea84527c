// SPDX-License-Identifier: Apache-2.0
// Included by cpu_simd.cpp once per SIMD target; hence no include guard of the usual kind.
#if defined(GROWPAGE_CPU_SIMD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GROWPAGE_CPU_SIMD_INL
#undef GROWPAGE_CPU_SIMD_INL
#else
#define GROWPAGE_CPU_SIMD_INL
#endif

#include <cstdint>
#include <limits>

#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/cpu_scalar.hpp"
#include "hwy/cache_control.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace growpage::detail::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

// No vectors: the oracle is as fast.
inline CpuKernels make_kernels() { return scalar::kernels; }
inline const char* target_name() { return "scalar"; }

#else

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::Rebind<std::uint32_t, F32>;
using I32 = hn::Rebind<std::int32_t, F32>;
using F32Half = hn::Half<F32>;
using F64 = hn::RepartitionToWide<F32>;
using VecF32 = hn::Vec<F32>;
using VecF64 = hn::Vec<F64>;

inline constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(F32()));

/// The first n − i lanes, at most all.
HWY_INLINE hn::Mask<F32> rest(std::int64_t n, std::int64_t i) {
  return hn::FirstN(F32(), static_cast<std::size_t>(HWY_MIN(n - i, lanes)));
}

HWY_INLINE VecF64 add_wide(VecF64 sum, VecF32 v) {
  const VecF64 low = hn::PromoteTo(F64(), hn::LowerHalf(F32Half(), v));
  const VecF64 high = hn::PromoteTo(F64(), hn::UpperHalf(F32Half(), v));
  return hn::Add(sum, hn::Add(low, high));
}
HWY_INLINE double total(VecF64 sum) { return hn::GetLane(hn::SumOfLanes(F64(), sum)); }

// ------------------------------------------------------------------------------------ elements

HWY_INLINE VecF32 load_wide(const float* from) { return hn::LoadU(F32(), from); }
HWY_INLINE VecF32 load_wide(const Float16* from) {
  return hn::PromoteTo(F32(), hn::LoadU(hn::Rebind<hwy::float16_t, F32>(),
                                        reinterpret_cast<const hwy::float16_t*>(from)));
}
HWY_INLINE VecF32 load_wide(const BFloat16* from) {
  return hn::PromoteTo(F32(), hn::LoadU(hn::Rebind<hwy::bfloat16_t, F32>(),
                                        reinterpret_cast<const hwy::bfloat16_t*>(from)));
}
inline float to_float(float value) { return value; }
inline float to_float(Float16 value) { return value.to_float(); }
inline float to_float(BFloat16 value) { return value.to_float(); }

template <class T>
void widen(const void* row, std::int64_t n, float* out) {
  const T* from = static_cast<const T*>(row);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(load_wide(from + i), F32(), out + i);
  for (; i < n; ++i) out[i] = to_float(from[i]);
}

// ----------------------------------------------------------------------------- queries times keys

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
      if constexpr (std::is_same_v<T, float>) {
        keys[t] = row;
      } else {
        widen<T>(row, k.dim, tile + t * tile_stride);
        keys[t] = tile + t * tile_stride;
      }
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

// -------------------------------------------------------------------------------- distributions

inline float sanitize_max(float* x, std::int64_t n, float scale) {
  const F32 tag;
  const VecF32 factor = hn::Set(tag, scale);
  const VecF32 minus_inf = hn::Set(tag, -std::numeric_limits<float>::infinity());
  const VecF32 largest = hn::Set(tag, std::numeric_limits<float>::max());
  VecF32 max = minus_inf;
  for (std::int64_t i = 0; i < n; i += lanes) {
    VecF32 v = hn::Mul(hn::LoadU(tag, x + i), factor);
    v = hn::Min(hn::IfThenElse(hn::IsNaN(v), minus_inf, v), largest);
    if (i + lanes <= n) {
      hn::StoreU(v, tag, x + i);
    } else {
      hn::BlendedStore(v, rest(n, i), tag, x + i);
      v = hn::IfThenElse(rest(n, i), v, minus_inf);
    }
    max = hn::Max(max, v);
  }
  return hn::GetLane(hn::MaxOfLanes(tag, max));
}

/// exp(x) for x ≤ 0, 0 below exp_floor, within 2 ulp: 2^round(x/ln 2) times the polynomial of
/// Cephes' expf on the rest.
HWY_INLINE VecF32 exp_negative(VecF32 x) {
  const F32 tag;
  const auto too_small = hn::Lt(x, hn::Set(tag, exp_floor));
  const VecF32 n = hn::Round(hn::Mul(x, hn::Set(tag, 1.44269504088896341F)));
  VecF32 r = hn::NegMulAdd(n, hn::Set(tag, 0.693359375F), x);
  r = hn::NegMulAdd(n, hn::Set(tag, -2.12194440e-4F), r);
  VecF32 p = hn::Set(tag, 1.9875691500e-4F);
  p = hn::MulAdd(p, r, hn::Set(tag, 1.3981999507e-3F));
  p = hn::MulAdd(p, r, hn::Set(tag, 8.3334519073e-3F));
  p = hn::MulAdd(p, r, hn::Set(tag, 4.1665795894e-2F));
  p = hn::MulAdd(p, r, hn::Set(tag, 1.6666665459e-1F));
  p = hn::MulAdd(p, r, hn::Set(tag, 5.0000001201e-1F));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(tag, 1.0F)));
  const auto exponent = hn::Add(hn::ConvertTo(I32(), n), hn::Set(I32(), 127));
  const VecF32 power = hn::BitCast(tag, hn::ShiftLeft<23>(exponent));
  return hn::IfThenZeroElse(too_small, hn::Mul(p, power));
}

inline double exp_sum(float* x, std::int64_t n, float max) {
  const F32 tag;
  const VecF32 shift = hn::Set(tag, max);
  VecF64 sum = hn::Zero(F64());
  std::int64_t i = 0;
  while (i + lanes <= n) {
    // Few enough terms a lane that a float sum loses nothing that matters.
    const std::int64_t end = HWY_MIN(n, i + 64 * lanes);
    VecF32 part = hn::Zero(tag);
    for (; i + lanes <= end; i += lanes) {
      const VecF32 e = exp_negative(hn::Sub(hn::LoadU(tag, x + i), shift));
      hn::StoreU(e, tag, x + i);
      part = hn::Add(part, e);
    }
    sum = add_wide(sum, part);
  }
  if (i < n) {
    const VecF32 e = exp_negative(hn::Sub(hn::LoadU(tag, x + i), shift));
    hn::BlendedStore(e, rest(n, i), tag, x + i);
    sum = add_wide(sum, hn::IfThenElseZero(rest(n, i), e));
  }
  return total(sum);
}

inline void mix(const float* rows, std::int64_t stride, const float* coefficient,
                std::int32_t count, std::int64_t n, float* out) {
  const F32 tag;
  for (std::int64_t i = 0; i < n; i += lanes) {
    VecF32 sum = hn::Zero(tag);
    for (std::int32_t j = 0; j < count; ++j) {
      sum = hn::MulAdd(hn::Set(tag, coefficient[j]), hn::LoadU(tag, rows + j * stride + i), sum);
    }
    hn::StoreU(sum, tag, out + i);
  }
}

inline void max_scaled(const float* rows, std::int64_t stride, const float* coefficient,
                       std::int32_t count, std::int64_t n, float* out) {
  const F32 tag;
  for (std::int64_t i = 0; i < n; i += lanes) {
    VecF32 max = hn::Zero(tag);
    for (std::int32_t j = 0; j < count; ++j) {
      max = hn::Max(max,
                    hn::Mul(hn::Set(tag, coefficient[j]), hn::LoadU(tag, rows + j * stride + i)));
    }
    hn::StoreU(max, tag, out + i);
  }
}

inline Mass mass_at_least(const float* w, std::int64_t n, float threshold) {
  const F32 tag;
  const VecF32 bound = hn::Set(tag, threshold);
  const auto one = hn::Set(U32(), 1u);
  VecF64 sum0 = hn::Zero(F64());
  VecF64 sum1 = hn::Zero(F64());
  auto count = hn::Zero(U32());
  for (std::int64_t i = 0; i < n; i += lanes) {
    VecF32 v = hn::LoadU(tag, w + i);
    auto above = hn::Ge(v, bound);
    if (i + lanes > n) above = hn::And(above, rest(n, i));
    v = hn::IfThenElseZero(above, v);
    sum0 = hn::Add(sum0, hn::PromoteTo(F64(), hn::LowerHalf(F32Half(), v)));
    sum1 = hn::Add(sum1, hn::PromoteTo(F64(), hn::UpperHalf(F32Half(), v)));
    count = hn::Add(count, hn::IfThenElseZero(hn::RebindMask(U32(), above), one));
  }
  return {total(hn::Add(sum0, sum1)),
          static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(U32(), count)))};
}

inline std::int64_t gather(const float* w, std::int64_t n, float low, float high, float* out) {
  const F32 tag;
  const VecF32 from = hn::Set(tag, low);
  const VecF32 to = hn::Set(tag, high);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; i += lanes) {
    const VecF32 v = hn::LoadU(tag, w + i);
    auto inside = hn::And(hn::Ge(v, from), hn::Lt(v, to));
    if (i + lanes > n) inside = hn::And(inside, rest(n, i));
    if (hn::AllFalse(tag, inside)) continue;
    hn::StoreU(hn::Compress(v, inside), tag, out + count);
    count += static_cast<std::int64_t>(hn::CountTrue(tag, inside));
  }
  return count;
}

inline double sum_w_log_w(const float* w, std::int64_t n) {
  const F32 tag;
  const VecF32 one = hn::Set(tag, 1.0F);
  VecF64 sum = hn::Zero(F64());
  for (std::int64_t i = 0; i < n; i += lanes) {
    VecF32 v = hn::LoadU(tag, w + i);
    auto positive = hn::Gt(v, hn::Zero(tag));
    if (i + lanes > n) positive = hn::And(positive, rest(n, i));
    v = hn::IfThenElse(positive, v, one);  // 1·ln 1 = 0
    sum = add_wide(sum, hn::Mul(v, hn::Log(tag, v)));
  }
  return total(sum);
}

// ------------------------------------------------------------------------------------ summaries

inline void ema(float* short_summary, float* long_summary, const float* q, std::int64_t n,
                float beta_short, float beta_long) {
  const F32 tag;
  const VecF32 old_s = hn::Set(tag, beta_short);
  const VecF32 old_l = hn::Set(tag, beta_long);
  const VecF32 new_s = hn::Set(tag, static_cast<float>(1.0 - double{beta_short}));
  const VecF32 new_l = hn::Set(tag, static_cast<float>(1.0 - double{beta_long}));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VecF32 x = hn::LoadU(tag, q + i);
    const VecF32 s = hn::LoadU(tag, short_summary + i);
    const VecF32 l = hn::LoadU(tag, long_summary + i);
    hn::StoreU(hn::MulAdd(old_s, s, hn::Mul(new_s, x)), tag, short_summary + i);
    hn::StoreU(hn::MulAdd(old_l, l, hn::Mul(new_l, x)), tag, long_summary + i);
  }
  scalar::ema(short_summary + i, long_summary + i, q + i, n - i, beta_short, beta_long);
}

inline double sum_squares(const float* x, std::int64_t n) {
  VecF64 sum0 = hn::Zero(F64());
  VecF64 sum1 = hn::Zero(F64());
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VecF32 v = hn::LoadU(F32(), x + i);
    const VecF64 low = hn::PromoteTo(F64(), hn::LowerHalf(F32Half(), v));
    const VecF64 high = hn::PromoteTo(F64(), hn::UpperHalf(F32Half(), v));
    sum0 = hn::MulAdd(low, low, sum0);
    sum1 = hn::MulAdd(high, high, sum1);
  }
  return total(hn::Add(sum0, sum1)) + scalar::sum_squares(x + i, n - i);
}

// ------------------------------------------------------------------------------------ selection

inline KeyRange order_keys(const float* scores, std::int64_t n, std::uint32_t* keys) {
  const F32 tag;
  const U32 utag;
  const auto sign = hn::Set(utag, 0x80000000u);
  auto low = hn::Set(utag, ~0u);
  auto high = hn::Zero(utag);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VecF32 v = hn::LoadU(tag, scores + i);
    const auto bits = hn::BitCast(utag, hn::Add(v, hn::Zero(tag)));  // −0 becomes 0
    const auto negative = hn::TestBit(bits, sign);
    auto key = hn::IfThenElse(negative, hn::Not(bits), hn::Or(bits, sign));
    key = hn::IfThenElse(hn::RebindMask(utag, hn::IsNaN(v)), hn::Set(utag, 1u), key);
    hn::StoreU(key, utag, keys + i);
    low = hn::Min(low, key);
    high = hn::Max(high, key);
  }
  const KeyRange last = scalar::order_keys(scores + i, n - i, keys + i);
  return {HWY_MIN(last.low, hn::GetLane(hn::MinOfLanes(utag, low))),
          HWY_MAX(last.high, hn::GetLane(hn::MaxOfLanes(utag, high)))};
}

inline std::int64_t count_at_least(const std::uint32_t* keys, std::int64_t n,
                                   std::uint32_t threshold) {
  const U32 tag;
  const auto bound = hn::Set(tag, threshold - 1);
  const auto one = hn::Set(tag, 1u);
  auto count0 = hn::Zero(tag);
  auto count1 = hn::Zero(tag);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = hn::Gt(hn::LoadU(tag, keys + i), bound);
    const auto b = hn::Gt(hn::LoadU(tag, keys + i + lanes), bound);
    count0 = hn::Add(count0, hn::IfThenElseZero(a, one));
    count1 = hn::Add(count1, hn::IfThenElseZero(b, one));
  }
  const auto sum = hn::GetLane(hn::SumOfLanes(tag, hn::Add(count0, count1)));
  return static_cast<std::int64_t>(sum) + scalar::count_at_least(keys + i, n - i, threshold);
}

inline void take(std::uint32_t* keys, std::int64_t n, std::uint32_t threshold, std::int64_t ties,
                 std::uint64_t* bits, std::int64_t first) {
  const U32 tag;
  const auto bound = hn::Set(tag, threshold);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(tag, keys + i);
    if (ties > 0 && !hn::AllFalse(tag, hn::Eq(v, bound))) {
      // Ties are counted one by one.
      const std::int64_t before = ties;
      for (std::int64_t j = i; j < i + lanes; ++j) ties -= keys[j] == threshold ? 1 : 0;
      ties = HWY_MAX(ties, 0);
      scalar::take(keys + i, lanes, threshold, before, bits, first + i);
      continue;
    }
    const auto above = hn::Gt(v, bound);
    std::uint8_t mask[8] = {};
    hn::StoreMaskBits(tag, above, mask);
    const std::uint64_t word = mask[0] | std::uint64_t{mask[1]} << 8;
    bits[(first + i) >> 6] |= word << ((first + i) & 63);
    hn::StoreU(hn::IfThenZeroElse(above, v), tag, keys + i);
  }
  scalar::take(keys + i, n - i, threshold, ties, bits, first + i);
}

inline CpuKernels make_kernels() {
  return {"",
          {pack, pack, pack, pack},
          {dot<float>, dot<Float16>, dot<BFloat16>, dot<BFloat16>},
          {widen<float>, widen<Float16>, widen<BFloat16>},
          sanitize_max,
          exp_sum,
          mix,
          max_scaled,
          mass_at_least,
          gather,
          sum_w_log_w,
          ema,
          sum_squares,
          order_keys,
          count_at_least,
          take};
}

inline const char* target_name() { return hwy::TargetName(HWY_TARGET); }

#endif

}  // namespace growpage::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
