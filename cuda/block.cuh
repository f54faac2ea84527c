// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simt.cuh"
#include "warp.cuh"

/// Collectives of a block of whole warps, blockDim.x ≤ 1024 threads in one dimension. Every thread
/// calls them; sums are taken in one fixed order. `scratch` is shared memory for one T a warp; it
/// may be used again at once.
namespace growpage::cuda {

template <class T>
struct BlockScan {
  T before;  ///< Σ over the threads before this one
  T total;   ///< Σ over all threads
};

template <class T>
__device__ __forceinline__ BlockScan<T> block_scan(T value, T* scratch) {
  const int warps = static_cast<int>(blockDim.x) / warp_lanes;
  const T inclusive = warp_inclusive_scan(value);
  if (lane_id() == warp_lanes - 1) scratch[warp_id()] = inclusive;
  // Not inclusive − value: in floating point that is not the sum of the others.
  T before = __shfl_up_sync(full_warp, inclusive, 1u);
  if (lane_id() == 0) before = T{0};
  __syncthreads();
  T earlier{0};
  T total{0};
  for (int w = 0; w < warps; ++w) {
    if (w == warp_id()) earlier = total;
    total += scratch[w];
  }
  __syncthreads();
  return {earlier + before, total};
}

/// Σ over the block, in all threads.
template <class T>
__device__ __forceinline__ T block_sum(T value, T* scratch) {
  const int warps = static_cast<int>(blockDim.x) / warp_lanes;
  value = warp_sum(value);
  if (lane_id() == 0) scratch[warp_id()] = value;
  __syncthreads();
  T total{0};
  for (int w = 0; w < warps; ++w) total += scratch[w];
  __syncthreads();
  return total;
}

}  // namespace growpage::cuda
