// SPDX-License-Identifier: Apache-2.0
#include "../../../cuda/simt.cuh"
#include "planted.hpp"
#include "simt/device_array.hpp"

namespace {

using simt::DeviceArray;

constexpr int threads = 64;

__global__ void barrier_in_branch(int* out, int split) {
  if (static_cast<int>(threadIdx.x) < split) {
    __syncthreads();
  } else {
    out[threadIdx.x] = 1;
    __syncthreads();
  }
}

bool divergent_barrier(bool planted) {
  const DeviceArray<int> out(threads);
  growpage::cuda::launch(barrier_in_branch, 1, threads, 0, nullptr, out.data(), planted ? 40 : 0);
  return out.host()[0] == 1;
}

/// The upper half of the warp takes the other branch: the mask must not name it.
__global__ void shuffle_in_branch(int* out, unsigned mask) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane < 16) {
    out[lane] = __shfl_down_sync(mask, lane, 1);
  } else {
    out[lane] = static_cast<int>(__ballot_sync(0xFFFF0000U, 1));
  }
  __syncwarp();
}

bool mismatched_mask(bool planted) {
  const DeviceArray<int> out(32);
  growpage::cuda::launch(shuffle_in_branch, 1, 32, 0, nullptr, out.data(),
                         planted ? 0xFFFFFFFFU : 0xFFFFU);
  return out.host()[3] == 4;
}

bool lane_not_in_mask(bool planted) {
  const DeviceArray<int> out(32);
  growpage::cuda::launch(shuffle_in_branch, 1, 32, 0, nullptr, out.data(),
                         planted ? 0xFFFEU : 0xFFFFU);
  return out.host()[3] == 4;
}

constexpr Planted collectives[] = {{"divergent_barrier", divergent_barrier},
                                   {"mismatched_mask", mismatched_mask},
                                   {"lane_not_in_mask", lane_not_in_mask}};

}  // namespace

std::span<const Planted> planted_collectives() { return collectives; }
