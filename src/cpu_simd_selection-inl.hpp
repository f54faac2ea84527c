// SPDX-License-Identifier: Apache-2.0
// Order keys and the slots they choose; the rows that move.
#if defined(GROWPAGE_CPU_SIMD_SELECTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GROWPAGE_CPU_SIMD_SELECTION_INL
#undef GROWPAGE_CPU_SIMD_SELECTION_INL
#else
#define GROWPAGE_CPU_SIMD_SELECTION_INL
#endif

#include <cstdint>
#include <cstring>
#include <limits>

#include "cpu_simd_vectors-inl.hpp"
#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/cpu_scalar.hpp"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace growpage::detail::HWY_NAMESPACE {
#if GROWPAGE_CPU_HAS_VECTORS

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

/// Rows fetched before they are copied.
inline constexpr std::int64_t copies_ahead = 32;

/// Into the second level, which has room for more outstanding misses than the first.
HWY_INLINE void prefetch_row(const char* row, std::size_t bytes) {
  for (std::size_t byte = 0; byte < bytes; byte += 64) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
    __builtin_prefetch(row + byte, 0, 2);
#else
    hwy::Prefetch(row + byte);
#endif
  }
}

/// Stores past the cache: what is written is not fetched first, which is a third of the traffic.
inline void copy_rows(const RowCopy* rows, std::int64_t count, std::size_t bytes) {
  const hn::ScalableTag<std::uint8_t> tag;
  const std::size_t vector = hn::Lanes(tag);
  const bool whole_lines = bytes % 64 == 0;
  for (std::int64_t i = 0; i < HWY_MIN(copies_ahead, count); ++i) prefetch_row(rows[i].from, bytes);
  for (std::int64_t i = 0; i < count; ++i) {
    if (i + copies_ahead < count) prefetch_row(rows[i + copies_ahead].from, bytes);
    const auto* from = reinterpret_cast<const std::uint8_t*>(rows[i].from);
    auto* to = reinterpret_cast<std::uint8_t*>(rows[i].to);
    if (whole_lines && reinterpret_cast<std::uintptr_t>(to) % 64 == 0) {
      for (std::size_t at = 0; at < bytes; at += vector) {
        hn::Stream(hn::LoadU(tag, from + at), tag, to + at);
      }
    } else {
      std::memcpy(to, from, bytes);
    }
  }
  hwy::FlushStream();  // other threads see them like any other store
}

#endif
}  // namespace growpage::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
