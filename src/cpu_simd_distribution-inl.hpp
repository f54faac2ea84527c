// SPDX-License-Identifier: Apache-2.0
// From logits to weights and masses.
#if defined(GROWPAGE_CPU_SIMD_DISTRIBUTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GROWPAGE_CPU_SIMD_DISTRIBUTION_INL
#undef GROWPAGE_CPU_SIMD_DISTRIBUTION_INL
#else
#define GROWPAGE_CPU_SIMD_DISTRIBUTION_INL
#endif

#include <cstdint>
#include <limits>

#include "cpu_simd_vectors-inl.hpp"
#include "growpage/detail/cpu_kernels.hpp"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace growpage::detail::HWY_NAMESPACE {
#if GROWPAGE_CPU_HAS_VECTORS

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
  // A sum this large has no bits for fractions: the integer n ends up in its low bits, and since
  // the biased exponent is added as well, a shift makes 2^n of them.
  const VecF32 round = hn::Set(tag, 0x1.8p23F + 127.0F);
  const VecF32 rounded = hn::MulAdd(x, hn::Set(tag, 1.44269504088896341F), round);
  const VecF32 power = hn::BitCast(tag, hn::ShiftLeft<23>(hn::BitCast(I32(), rounded)));
  const VecF32 n = hn::Sub(rounded, round);
  VecF32 r = hn::NegMulAdd(n, hn::Set(tag, 0.693359375F), x);
  r = hn::NegMulAdd(n, hn::Set(tag, -2.12194440e-4F), r);
  VecF32 p = hn::Set(tag, 1.9875691500e-4F);
  p = hn::MulAdd(p, r, hn::Set(tag, 1.3981999507e-3F));
  p = hn::MulAdd(p, r, hn::Set(tag, 8.3334519073e-3F));
  p = hn::MulAdd(p, r, hn::Set(tag, 4.1665795894e-2F));
  p = hn::MulAdd(p, r, hn::Set(tag, 1.6666665459e-1F));
  p = hn::MulAdd(p, r, hn::Set(tag, 5.0000001201e-1F));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(tag, 1.0F)));
  return hn::IfThenElseZero(hn::Ge(x, hn::Set(tag, exp_floor)), hn::Mul(p, power));
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

#endif
}  // namespace growpage::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
