// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <numeric>

#include "simt/device_array.hpp"
#include "simt/expect.hpp"

namespace {

using simt::DeviceArray;

constexpr int threads = 128;

std::vector<int> numbers(int count) {
  std::vector<int> values;
  for (int i = 0; i < count; ++i) values.push_back(i * 37 % 1001 - 300);
  return values;
}

template <class T, cub::BlockReduceAlgorithm algorithm>
__global__ void block_sum(const T* in, T* out) {
  using Reduce = cub::BlockReduce<T, threads, algorithm>;
  SIMT_SHARED(typename Reduce::TempStorage, storage, );
  const T sum = Reduce(storage).Sum(in[blockIdx.x * threads + threadIdx.x]);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

template <class T, cub::BlockReduceAlgorithm algorithm>
void expect_sums() {
  const std::vector<int> values = numbers(4 * threads);
  const DeviceArray<T> in(std::vector<T>(values.begin(), values.end()));
  simt::for_each_schedule([&] {
    const DeviceArray<T> out(4);
    simt::launch(block_sum<T, algorithm>, 4, threads, 0, nullptr, in.data(), out.data());
    const std::vector<T> sums = out.host();
    for (int block = 0; block < 4; ++block) {
      const auto first = values.begin() + block * threads;
      CHECK(sums[static_cast<std::size_t>(block)] ==
            static_cast<T>(std::accumulate(first, first + threads, 0)));
    }
  });
}

TEST_CASE("cub::BlockReduce") {
  expect_sums<int, cub::BLOCK_REDUCE_WARP_REDUCTIONS>();
  expect_sums<float, cub::BLOCK_REDUCE_WARP_REDUCTIONS>();
  expect_sums<float, cub::BLOCK_REDUCE_RAKING>();
  expect_sums<int, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>();
}

template <class T, cub::BlockScanAlgorithm algorithm>
__global__ void block_scan(const T* in, T* out, T* total) {
  using Scan = cub::BlockScan<T, threads, algorithm>;
  SIMT_SHARED(typename Scan::TempStorage, storage, );
  T sum{};
  T before{};
  Scan(storage).ExclusiveSum(in[threadIdx.x], before, sum);
  out[threadIdx.x] = before;
  if (threadIdx.x == 0) *total = sum;
}

template <class T, cub::BlockScanAlgorithm algorithm>
void expect_scan() {
  const std::vector<int> values = numbers(threads);
  std::vector<int> expected(values.size());
  std::exclusive_scan(values.begin(), values.end(), expected.begin(), 0);
  const DeviceArray<T> in(std::vector<T>(values.begin(), values.end()));
  simt::for_each_schedule([&] {
    const DeviceArray<T> out(threads);
    const DeviceArray<T> total(1);
    simt::launch(block_scan<T, algorithm>, 1, threads, 0, nullptr, in.data(), out.data(),
                 total.data());
    CHECK(out.host() == std::vector<T>(expected.begin(), expected.end()));
    CHECK(total.host()[0] == static_cast<T>(expected.back() + values.back()));
  });
}

TEST_CASE("cub::BlockScan") {
  expect_scan<int, cub::BLOCK_SCAN_RAKING>();
  expect_scan<int, cub::BLOCK_SCAN_WARP_SCANS>();
  expect_scan<float, cub::BLOCK_SCAN_WARP_SCANS>();
}

__global__ void warp_sums(const float* in, float* whole, float* eighths) {
  using Warp = cub::WarpReduce<float>;
  using Eighth = cub::WarpReduce<float, 8>;
  SIMT_SHARED(Warp::TempStorage, warp_storage, [threads / 32]);
  SIMT_SHARED(Eighth::TempStorage, eighth_storage, [threads / 8]);
  const unsigned i = threadIdx.x;
  const float warp = Warp(warp_storage[i / 32]).Sum(in[i]);
  const float eighth = Eighth(eighth_storage[i / 8]).Sum(in[i]);
  if (i % 32 == 0) whole[i / 32] = warp;
  if (i % 8 == 0) eighths[i / 8] = eighth;
}

TEST_CASE("cub::WarpReduce, whole warps and parts") {
  const std::vector<int> values = numbers(threads);
  const DeviceArray<float> in(std::vector<float>(values.begin(), values.end()));
  const auto sums = [&](int width) {
    std::vector<float> all;
    for (auto first = values.begin(); first != values.end(); first += width) {
      all.push_back(static_cast<float>(std::accumulate(first, first + width, 0)));
    }
    return all;
  };
  simt::for_each_schedule([&] {
    const DeviceArray<float> whole(threads / 32);
    const DeviceArray<float> eighths(threads / 8);
    simt::launch(warp_sums, 1, threads, 0, nullptr, in.data(), whole.data(), eighths.data());
    CHECK(whole.host() == sums(32));
    CHECK(eighths.host() == sums(8));
  });
}

__global__ void sort_pairs(const float* keys, int* values) {
  using Sort = cub::BlockRadixSort<float, threads, 4, int>;
  SIMT_SHARED(Sort::TempStorage, storage, );
  float key[4];
  int value[4];
  for (unsigned i = 0; i < 4; ++i) {
    key[i] = keys[threadIdx.x * 4 + i];
    value[i] = static_cast<int>(threadIdx.x * 4 + i);
  }
  Sort(storage).SortDescending(key, value);
  for (unsigned i = 0; i < 4; ++i) values[threadIdx.x * 4 + i] = value[i];
}

TEST_CASE("cub::BlockRadixSort keeps equal keys in order") {
  std::vector<float> keys;
  for (const int number : numbers(4 * threads)) keys.push_back(static_cast<float>(number / 8));
  std::vector<int> expected(keys.size());
  std::iota(expected.begin(), expected.end(), 0);
  std::stable_sort(expected.begin(), expected.end(), [&](int a, int b) {
    return keys[static_cast<std::size_t>(a)] > keys[static_cast<std::size_t>(b)];
  });
  const DeviceArray<float> in(keys);
  const DeviceArray<int> out(keys.size());
  simt::launch(sort_pairs, 1, threads, 0, nullptr, in.data(), out.data());
  CHECK(out.host() == expected);
  simt::expect_clean();
}

}  // namespace
