// SPDX-License-Identifier: Apache-2.0
// Query summaries stored as halves, rounded stochastically: the oracle's bits.
#if defined(GROWPAGE_CPU_SIMD_SUMMARY_F16_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GROWPAGE_CPU_SIMD_SUMMARY_F16_INL
#undef GROWPAGE_CPU_SIMD_SUMMARY_F16_INL
#else
#define GROWPAGE_CPU_SIMD_SUMMARY_F16_INL
#endif

#include <cstdint>

#include "cpu_simd_vectors-inl.hpp"
#include "growpage/detail/cpu_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace growpage::detail::HWY_NAMESPACE {
#if GROWPAGE_CPU_HAS_VECTORS

using U64 = hn::RepartitionToWide<U32>;
using U16 = hn::Rebind<std::uint16_t, F32>;
using VecU64 = hn::Vec<U64>;
using VecU32 = hn::Vec<U32>;
using VecI32 = hn::Vec<I32>;
using VecU16 = hn::Vec<U16>;

/// The random bits of a row, a vector of elements at a time: SummaryRow::key. Constants are
/// members, which stay in registers; what is written in a loop is broadcast anew each time.
class RandomBits {
 public:
  struct Pair {
    VecU32 of_short, of_long;
  };

  HWY_INLINE explicit RandomBits(const SummaryRow& row)
      : row_(row),
        aligned_((row.index | static_cast<std::uint64_t>(row.dim)) % lanes == 0),
        low_(order(0)),
        high_(order(lanes / 2)) {}

  [[nodiscard]] HWY_INLINE Pair bits(std::int64_t at) const {
    const std::uint64_t index = row_.index + static_cast<std::uint64_t>(at);
    VecU64 low, high;
    if (HWY_LIKELY(aligned_)) {
      const VecU64 common = hn::Set(U64(), ((index ^ row_.key) & ~low_bits) + increment);
      low = hn::Add(common, low_);
      high = hn::Add(common, high_);
    } else {
      const VecU64 first = hn::Add(hn::Set(U64(), index), hn::Iota(U64(), 0));
      const VecU64 key = hn::Set(U64(), row_.key);
      const VecU64 golden = hn::Set(U64(), increment);
      const VecU64 half = hn::Set(U64(), static_cast<std::uint64_t>(lanes / 2));
      low = hn::Add(hn::Xor(first, key), golden);
      high = hn::Add(hn::Xor(hn::Add(first, half), key), golden);
    }
    const VecU32 low_mixed = hn::BitCast(U32(), mixed(low));
    const VecU32 high_mixed = hn::BitCast(U32(), mixed(high));
    return {hn::ConcatEven(U32(), high_mixed, low_mixed),
            hn::ConcatOdd(U32(), high_mixed, low_mixed)};
  }

 private:
  static constexpr std::uint64_t increment = 0x9e3779b97f4a7c15u;
  static constexpr std::uint64_t low_bits = static_cast<std::uint64_t>(lanes) - 1;

  /// For an index of which the low bits are 0, (index + i) ^ key = ((index ^ key) without its low
  /// bits) + (i ^ the low bits of key).
  [[nodiscard]] HWY_INLINE VecU64 order(std::int64_t first) const {
    return hn::Xor(hn::Iota(U64(), static_cast<std::uint64_t>(first)),
                   hn::Set(U64(), row_.key & low_bits));
  }
  /// splitmix64 of splitmix.hpp after its first addition.
  [[nodiscard]] HWY_INLINE VecU64 mixed(VecU64 x) const {
    x = hn::Xor(x, hn::ShiftRight<30>(x)) * first_factor_;
    x = hn::Xor(x, hn::ShiftRight<27>(x)) * second_factor_;
    return hn::Xor(x, hn::ShiftRight<31>(x));
  }

  const SummaryRow& row_;
  bool aligned_;
  VecU64 low_, high_;
  VecU64 first_factor_ = hn::Set(U64(), 0xbf58476d1ce4e5b9u);
  VecU64 second_factor_ = hn::Set(U64(), 0x94d049bb133111ebu);
};

/// scalar::round_stochastic.
HWY_INLINE VecU16 round_stochastic(VecF32 value, VecU32 random) {
  const U32 u32;
  const F32 f32;
  const VecU32 bits = hn::BitCast(u32, value);
  const VecU32 magnitude = hn::And(bits, hn::Set(u32, 0x7fffffffu));
  const VecU32 carried = hn::Add(magnitude, hn::And(random, hn::Set(u32, 0x1fffu)));
  const VecU32 normal =
      hn::Min(hn::Sub(hn::ShiftRight<13>(carried), hn::Set(u32, 0x1c000u)), hn::Set(u32, 0x7bffu));
  const VecF32 units = hn::Mul(hn::BitCast(f32, magnitude), hn::Set(f32, 0x1p24F));
  const VecF32 whole = hn::Floor(units);
  const VecF32 chance = hn::Mul(hn::ConvertTo(f32, hn::BitCast(I32(), hn::ShiftRight<8>(random))),
                                hn::Set(f32, 0x1p-24F));
  const VecF32 up = hn::IfThenElseZero(hn::Lt(chance, hn::Sub(units, whole)), hn::Set(f32, 1.0F));
  const VecU32 subnormal = hn::BitCast(u32, hn::ConvertTo(I32(), hn::Add(whole, up)));
  VecU32 half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(u32, 0x387fffffu)), normal, subnormal);
  const VecU32 infinity = hn::Set(u32, 0x7f800000u);
  const VecU32 special =
      hn::IfThenElse(hn::Eq(magnitude, infinity), hn::Set(u32, 0x7c00u), hn::Set(u32, 0x7e00u));
  half = hn::IfThenElse(hn::Lt(magnitude, infinity), half, special);
  half = hn::Or(half, hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 0x8000u)));
  return hn::DemoteTo(U16(), hn::BitCast(I32(), half));
}

/// A vector of floats as doubles.
struct Wide {
  HWY_INLINE explicit Wide(VecF32 v)
      : low(hn::PromoteTo(F64(), hn::LowerHalf(F32Half(), v))),
        high(hn::PromoteTo(F64(), hn::UpperHalf(F32Half(), v))) {}

  VecF64 low, high;
};

/// scalar::ema, exactly: β·old is exact in double, so that a fused addition changes nothing.
class ExactEma {
 public:
  HWY_INLINE explicit ExactEma(float beta)
      : old_(hn::Set(F64(), double{beta})), new_(hn::Set(F64(), 1.0 - double{beta})) {}

  [[nodiscard]] HWY_INLINE VecF32 next(const Wide& old, const Wide& q) const {
    const VecF64 low = hn::MulAdd(old_, old.low, hn::Mul(new_, q.low));
    const VecF64 high = hn::MulAdd(old_, old.high, hn::Mul(new_, q.high));
    return hn::Combine(F32(), hn::DemoteTo(F32Half(), high), hn::DemoteTo(F32Half(), low));
  }

 private:
  VecF64 old_, new_;
};

/// Both summaries of a row stored as halves, a vector at a time.
class HalfSummaries {
 public:
  HWY_INLINE explicit HalfSummaries(const SummaryRow& row)
      : short_summary_(static_cast<Float16*>(row.short_summary)),
        long_summary_(static_cast<Float16*>(row.long_summary)),
        short_(row.beta_short),
        long_(row.beta_long),
        random_(row) {}

  template <bool first>
  HWY_INLINE void update(VecF32 q, std::int64_t at) const {
    Float16* const short_at = short_summary_ + at;
    Float16* const long_at = long_summary_ + at;
    VecF32 s = q;
    VecF32 l = q;
    if constexpr (!first) {
      const Wide wide(q);
      s = short_.next(Wide(load_wide(short_at)), wide);
      l = long_.next(Wide(load_wide(long_at)), wide);
    }
    const auto [short_random, long_random] = random_.bits(at);
    const VecU32 short_sum = carried(s, short_random);
    const VecU32 long_sum = carried(l, long_random);
    VecU16 short_half = cut(short_sum);
    VecU16 long_half = cut(long_sum);
    const VecU32 extreme = hn::Max(extremity(short_sum), extremity(long_sum));
    if (HWY_UNLIKELY(!hn::AllFalse(U32(), hn::Gt(extreme, ordinary_)))) {
      short_half = round_stochastic(s, short_random);
      long_half = round_stochastic(l, long_random);
    }
    hn::StoreU(short_half, U16(), reinterpret_cast<std::uint16_t*>(short_at));
    hn::StoreU(long_half, U16(), reinterpret_cast<std::uint16_t*>(long_at));
  }

 private:
  /// scalar::round_stochastic before the bits that a half lacks are cut off, where both neighbours
  /// are normal halves.
  [[nodiscard]] HWY_INLINE VecU32 carried(VecF32 value, VecU32 random) const {
    return hn::Add(hn::BitCast(U32(), value), hn::And(random, lost_));
  }
  [[nodiscard]] HWY_INLINE VecU16 cut(VecU32 sum) const {
    const hn::Rebind<hwy::float16_t, F32> f16;
    return hn::BitCast(U16(), hn::DemoteTo(f16, hn::BitCast(F32(), hn::AndNot(lost_, sum))));
  }
  /// Above `ordinary_` for sums that are not between the smallest normal half, which a subnormal
  /// one may be carried to, and the largest.
  [[nodiscard]] HWY_INLINE VecU32 extremity(VecU32 sum) const {
    return hn::Sub(hn::Add(sum, sum), second_smallest_);  // the sign drops out
  }

  Float16* short_summary_;
  Float16* long_summary_;
  ExactEma short_, long_;
  RandomBits random_;
  VecU32 lost_ = hn::Set(U32(), 0x1fffu);  // bits of a float that a half lacks
  VecU32 second_smallest_ = hn::Set(U32(), 2 * 0x38802000u);
  VecU32 ordinary_ = hn::Set(U32(), 2 * (0x47800000u - 0x38802000u) - 1);
};

#endif
}  // namespace growpage::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
