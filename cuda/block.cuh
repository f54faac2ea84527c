// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cub/block/block_scan.cuh>

#include "simt.cuh"

/// Collectives of a block of `block_threads` threads in one dimension, by CUB. Every thread calls
/// them; sums are taken in one fixed order, so equal inputs give equal bits. `scratch` is shared
/// memory; it may be used again at once.
namespace growpage::cuda {

inline constexpr int block_threads = 256;

template <class T>
using BlockScanner = cub::BlockScan<T, block_threads, cub::BLOCK_SCAN_WARP_SCANS>;
template <class T>
using BlockScratch = typename BlockScanner<T>::TempStorage;

template <class T>
struct BlockScan {
  T before;  ///< Σ over the threads before this one
  T total;   ///< Σ over all threads
};

template <class T>
__device__ __forceinline__ BlockScan<T> block_scan(T value, BlockScratch<T>& scratch) {
  BlockScan<T> sums;
  BlockScanner<T>(scratch).ExclusiveSum(value, sums.before, sums.total);
  __syncthreads();
  return sums;
}

/// Σ over the block, in all threads, which a reduction would give to one of them.
template <class T>
__device__ __forceinline__ T block_sum(T value, BlockScratch<T>& scratch) {
  return block_scan(value, scratch).total;
}

}  // namespace growpage::cuda
