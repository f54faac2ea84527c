// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "simt.cuh"
#include "warp.cuh"

namespace growpage::cuda {

/// Shared memory of `radix_select`.
struct RadixScratch {
  static constexpr int digit_bits = 8;
  static constexpr int digits = 1 << digit_bits;
  std::int32_t histogram[digits];
  std::int32_t eligible;
  std::uint32_t low, high;  // of the nonzero keys
  std::int32_t digit;       // that the last key taken has
  std::int32_t above;       // keys with a higher one
  std::int32_t equal;       // keys with this one
};

/// Which keys are the best: all from `certain` on, and the first `ties` that equal `tied` (0 =
/// none).
struct RadixThreshold {
  std::uint32_t certain;
  std::uint32_t tied;
  std::int32_t ties;
};

/// Finds, from the largest digit down, the one at which `need` keys are reached. Called by one
/// warp.
__device__ inline void find_digit(RadixScratch* s, std::int32_t need) {
  constexpr int own = RadixScratch::digits / warp_lanes;
  const int top = RadixScratch::digits - 1 - lane_id() * own;
  std::int32_t sum = 0;
  for (int i = 0; i < own; ++i) sum += s->histogram[top - i];
  std::int32_t above = warp_inclusive_scan(sum) - sum;
  if (above >= need || above + sum < need) return;
  for (int digit = top;; --digit) {
    const std::int32_t equal = s->histogram[digit];
    if (above + equal >= need) {
      s->digit = digit;
      s->above = above;
      s->equal = equal;
      return;
    }
    above += equal;
  }
}

/// The `budget` ≥ 1 largest of the nonzero keys of slots [0, slots), by digits of 8 bits from the
/// highest in which the keys differ: scores share sign and exponent bits, and histograms of those
/// would only make threads queue. Called by the whole block, after a barrier; ends with one.
template <class Keys>
[[nodiscard]] __device__ RadixThreshold radix_select(const Keys& keys, std::int32_t slots,
                                                     std::int32_t budget, RadixScratch* s) {
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const auto threads = static_cast<std::int32_t>(blockDim.x);
  if (thread == 0) {
    s->eligible = 0;
    s->low = 0xffffffffU;
    s->high = 0;
  }
  __syncthreads();
  int eligible = 0;
  unsigned low = 0xffffffffU;
  unsigned high = 0;
  for (std::int32_t slot = thread; slot < slots; slot += threads) {
    const std::uint32_t key = keys.get(slot);
    if (key == 0) continue;
    ++eligible;
    low = min(low, key);
    high = max(high, key);
  }
  eligible = __reduce_add_sync(full_warp, eligible);
  low = __reduce_min_sync(full_warp, low);
  high = __reduce_max_sync(full_warp, high);
  if (lane_id() == 0) {  // integers: the order of the warps does not show
    atomicAdd(&s->eligible, eligible);
    atomicMin(&s->low, low);
    atomicMax(&s->high, high);
  }
  __syncthreads();
  if (budget >= s->eligible) return {1, 0, 0};

  int shift = 32 - __clz(static_cast<int>(s->low ^ s->high));
  std::uint64_t prefix = std::uint64_t{s->high} >> shift;  // 64 bits: shift may be 32
  std::int32_t need = budget;
  while (shift > 0) {
    const int bits = min(shift, RadixScratch::digit_bits);
    const int next = shift - bits;
    for (std::int32_t i = thread; i < RadixScratch::digits; i += threads) s->histogram[i] = 0;
    __syncthreads();
    for (std::int32_t slot = thread; slot < slots; slot += threads) {
      const std::uint32_t key = keys.get(slot);
      if (key != 0 && std::uint64_t{key} >> shift == prefix) {  // else all 0 queue at one digit
        atomicAdd(&s->histogram[(key >> next) & ((1U << bits) - 1)], 1);
      }
    }
    __syncthreads();
    if (warp_id() == 0) find_digit(s, need);
    __syncthreads();
    need -= s->above;
    prefix = prefix << bits | static_cast<std::uint32_t>(s->digit);
    shift = next;
    if (need == s->equal) return {static_cast<std::uint32_t>(prefix << shift), 0, 0};
  }
  const auto threshold = static_cast<std::uint32_t>(prefix);
  return {threshold + 1, threshold, need};
}

}  // namespace growpage::cuda
