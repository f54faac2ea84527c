// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simt.cuh"

/// Collectives of a full warp. Every lane calls them; sums are taken in one fixed order, so equal
/// inputs give equal bits.
namespace growpage::cuda {

inline constexpr unsigned full_warp = 0xffffffffu;
inline constexpr int warp_lanes = 32;

__device__ __forceinline__ int lane_id() { return static_cast<int>(threadIdx.x) % warp_lanes; }
__device__ __forceinline__ int warp_id() { return static_cast<int>(threadIdx.x) / warp_lanes; }

/// Σ over the lanes, in all of them.
template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int step = warp_lanes / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(full_warp, value, step);
  }
  return value;
}

/// The largest over the lanes, in all of them; NaN is ignored.
__device__ __forceinline__ float warp_max(float value) {
  for (int step = warp_lanes / 2; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(full_warp, value, step));
  }
  return value;
}

/// Σ over the lanes up to this one, itself included.
template <class T>
__device__ __forceinline__ T warp_inclusive_scan(T value) {
  for (int step = 1; step < warp_lanes; step *= 2) {
    const T below = __shfl_up_sync(full_warp, value, static_cast<unsigned>(step));
    if (lane_id() >= step) value += below;
  }
  return value;
}

}  // namespace growpage::cuda
