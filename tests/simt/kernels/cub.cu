// SPDX-License-Identifier: Apache-2.0
#include "../../../cuda/simt.cuh"
//
#include <cub/block/block_reduce.cuh>

#include "planted.hpp"
#include "simt/device_array.hpp"

namespace {

using simt::DeviceArray;

constexpr int threads = 128;

/// Two reductions one after the other in the same temporary storage need a barrier between them.
template <bool planted>
__global__ void sum_and_maximum(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, threads>;
  GROWPAGE_SHARED(typename Reduce::TempStorage, storage, );
  const int value = in[threadIdx.x];
  const int sum = Reduce(storage).Sum(value);
  if (!planted) __syncthreads();
  const int maximum = Reduce(storage).Reduce(value, [](int a, int b) { return a > b ? a : b; });
  if (threadIdx.x == 0) {
    out[0] = sum;
    out[1] = maximum;
  }
}

bool reused_temp_storage(bool planted) {
  std::vector<int> values(threads);
  for (int i = 0; i < threads; ++i) values[static_cast<std::size_t>(i)] = i * 37 % threads;
  const DeviceArray<int> in(values);
  const DeviceArray<int> out(2);
  growpage::cuda::launch(planted ? sum_and_maximum<true> : sum_and_maximum<false>, 1, threads, 0,
                         nullptr, in.data(), out.data());
  return out.host() == std::vector<int>{threads * (threads - 1) / 2, threads - 1};
}

constexpr Planted cub_cases[] = {{"reused_temp_storage", reused_temp_storage}};

}  // namespace

std::span<const Planted> planted_cub() { return cub_cases; }
