// SPDX-License-Identifier: Apache-2.0
// Vector types, and rows of any dtype as floats. Included once per SIMD target, as all of
// cpu_simd*-inl.hpp; hence no include guard of the usual kind.
#if defined(GROWPAGE_CPU_SIMD_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GROWPAGE_CPU_SIMD_VECTORS_INL
#undef GROWPAGE_CPU_SIMD_VECTORS_INL
#else
#define GROWPAGE_CPU_SIMD_VECTORS_INL
#endif

#include <cstdint>

#include "growpage/core/dtype.hpp"
#include "hwy/highway.h"

// Without vectors the oracle is as fast: nothing but it is compiled.
#undef GROWPAGE_CPU_HAS_VECTORS
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
#define GROWPAGE_CPU_HAS_VECTORS 0
#else
#define GROWPAGE_CPU_HAS_VECTORS 1
#endif

HWY_BEFORE_NAMESPACE();
namespace growpage::detail::HWY_NAMESPACE {
#if GROWPAGE_CPU_HAS_VECTORS

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

HWY_INLINE VecF32 load_wide(const float* from) { return hn::LoadU(F32(), from); }
HWY_INLINE VecF32 load_wide(const Float16* from) {
  const VecF32 wide = hn::PromoteTo(
      F32(),
      hn::LoadU(hn::Rebind<hwy::float16_t, F32>(), reinterpret_cast<const hwy::float16_t*>(from)));
#if HWY_ARCH_X86 && HWY_TARGET >= HWY_SSE4
  // Without F16C Highway 1.0 converts by shifts, which make numbers of infinity and NaN.
  const auto bits = hn::BitCast(U32(), wide);
  const auto magnitude = hn::And(bits, hn::Set(U32(), 0x7fffffffU));
  const auto special = hn::Gt(magnitude, hn::Set(U32(), 0x477fe000U));  // above 65504
  const auto all_ones = hn::Or(bits, hn::Set(U32(), 0x7f800000U));
  return hn::BitCast(F32(), hn::IfThenElse(special, all_ones, bits));
#else
  return wide;
#endif
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

#endif
}  // namespace growpage::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
