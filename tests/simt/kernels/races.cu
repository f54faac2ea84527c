// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <vector>

#include "../../../cuda/simt.cuh"
#include "planted.hpp"
#include "simt/device_array.hpp"

namespace {

using simt::DeviceArray;

constexpr int threads = 64;

std::vector<int> numbers(int count) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1);
  return values;
}

/// Reads of one round and writes of the next must not meet.
template <bool planted>
__global__ void rotate_twice(const int* in, int* out) {
  GROWPAGE_SHARED(int, tile, [threads]);
  int value = in[threadIdx.x];
  for (int round = 0; round < 2; ++round) {
    tile[threadIdx.x] = value;
    __syncthreads();
    value = tile[(threadIdx.x + 1) % threads];
    if (!planted) __syncthreads();
  }
  out[threadIdx.x] = value;
}

bool missing_syncthreads(bool planted) {
  const DeviceArray<int> in(numbers(threads));
  const DeviceArray<int> out(threads);
  growpage::cuda::launch(planted ? rotate_twice<true> : rotate_twice<false>, 1, threads, 0, nullptr,
                         in.data(), out.data());
  const std::vector<int> result = out.host();
  for (int i = 0; i < threads; ++i) {
    if (result[static_cast<std::size_t>(i)] != (i + 2) % threads + 1) return false;
  }
  return true;
}

template <bool planted>
__global__ void swap_neighbours(const int* in, int* out) {
  GROWPAGE_SHARED(int, tile, [32]);
  tile[threadIdx.x] = in[threadIdx.x];
  if (!planted) __syncwarp();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

bool missing_syncwarp(bool planted) {
  const DeviceArray<int> in(numbers(32));
  const DeviceArray<int> out(32);
  growpage::cuda::launch(planted ? swap_neighbours<true> : swap_neighbours<false>, 1, 32, 0,
                         nullptr, in.data(), out.data());
  const std::vector<int> result = out.host();
  for (int i = 0; i < 32; ++i) {
    if (result[static_cast<std::size_t>(i)] != (i ^ 1) + 1) return false;
  }
  return true;
}

/// Right in every order of threads that take turns: only the race detector sees it.
template <bool planted>
__global__ void count_threads(int* count) {
  if (planted) {
    count[0] += 1;
  } else {
    atomicAdd(count, 1);
  }
}

bool lost_update(bool planted) {
  const DeviceArray<int> count(1);
  growpage::cuda::launch(planted ? count_threads<true> : count_threads<false>, 1, threads, 0,
                         nullptr, count.data());
  return count.host()[0] == threads;
}

/// The same between blocks of one thread.
bool lost_update_of_blocks(bool planted) {
  const DeviceArray<int> count(1);
  growpage::cuda::launch(planted ? count_threads<true> : count_threads<false>, threads, 1, 0,
                         nullptr, count.data());
  return count.host()[0] == threads;
}

constexpr Planted races[] = {{"missing_syncthreads", missing_syncthreads},
                             {"missing_syncwarp", missing_syncwarp},
                             {"lost_update", lost_update},
                             {"lost_update_of_blocks", lost_update_of_blocks}};

}  // namespace

std::span<const Planted> planted_races() { return races; }
