// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "simt/device_array.hpp"
#include "simt/emulation.hpp"
#include "simt/expect.hpp"

namespace {

using simt::DeviceArray;

constexpr unsigned full = ~0U;

/// Runs one warp and returns what each lane wrote.
template <class T>
std::vector<T> per_lane(void (*kernel)(T*), int lanes = 32) {
  const DeviceArray<T> out(static_cast<std::size_t>(lanes));
  CHECK(simt::launch(kernel, 1, lanes, 0, nullptr, out.data()) == cudaSuccess);
  return out.host();
}

template <class T, class Expected>
void expect_per_lane(void (*kernel)(T*), Expected expected, int lanes = 32) {
  simt::for_each_schedule([&] {
    const std::vector<T> result = per_lane(kernel, lanes);
    for (int lane = 0; lane < lanes; ++lane) {
      INFO("lane " << lane);
      CHECK(result[static_cast<std::size_t>(lane)] == static_cast<T>(expected(lane)));
    }
  });
}

__global__ void broadcast(int* out) {
  out[threadIdx.x] = __shfl_sync(full, static_cast<int>(threadIdx.x) * 10, 7);
}
__global__ void segment_index(int* out) {
  out[threadIdx.x] = __shfl_sync(full, static_cast<int>(threadIdx.x), 9, 8);
}
__global__ void up(int* out) {
  out[threadIdx.x] = __shfl_up_sync(full, static_cast<int>(threadIdx.x), 3, 16);
}
__global__ void down(int* out) {
  out[threadIdx.x] = __shfl_down_sync(full, static_cast<int>(threadIdx.x), 5);
}
__global__ void exchange(double* out) {
  out[threadIdx.x] = __shfl_xor_sync(full, threadIdx.x * 0.5, 16);
}

TEST_CASE("shuffles move values within their segment") {
  expect_per_lane(broadcast, [](int) { return 70; });
  expect_per_lane(segment_index, [](int lane) { return lane / 8 * 8 + 1; });
  expect_per_lane(up, [](int lane) { return lane % 16 < 3 ? lane : lane - 3; });
  expect_per_lane(down, [](int lane) { return lane < 27 ? lane + 5 : lane; });
  expect_per_lane(exchange, [](int lane) { return (lane ^ 16) * 0.5; });
}

__global__ void half_shuffle(float* out) {
  const __half2 pair = __floats2half2_rn(static_cast<float>(threadIdx.x), 1.5F);
  out[threadIdx.x] = __low2float(__shfl_down_sync(full, pair, 1));
}

TEST_CASE("a shuffle carries a pair of halves") {
  expect_per_lane(half_shuffle, [](int lane) { return lane < 31 ? lane + 1 : lane; });
}

__global__ void absent_lane(float* out) { out[threadIdx.x] = __shfl_sync(0x3U, 1.0F, 5); }

TEST_CASE("a shuffle from a lane outside the mask gives NaN") {
  for (const float value : per_lane(absent_lane, 2)) CHECK(std::isnan(value));
}

__global__ void ballot_odd(unsigned* out) {
  out[threadIdx.x] = __ballot_sync(full, threadIdx.x & 1U);
}
__global__ void any_of_few(int* out) {
  out[threadIdx.x] = __any_sync(full, threadIdx.x == 31) + 2 * __any_sync(full, 0);
}
__global__ void all_of(int* out) {
  out[threadIdx.x] = __all_sync(full, 1) + 2 * __all_sync(full, threadIdx.x != 4);
}
__global__ void match_any(unsigned* out) {
  out[threadIdx.x] = __match_any_sync(full, threadIdx.x / 16);
}
__global__ void match_all(int* out) {
  int equal = 0;
  int different = 0;
  const unsigned lanes = __match_all_sync(full, 5, &equal);
  const unsigned none = __match_all_sync(full, threadIdx.x, &different);
  out[threadIdx.x] = (lanes == full ? 1 : 0) + 2 * equal + 4 * (none == 0 ? 1 : 0) + 8 * different;
}

TEST_CASE("votes and matches") {
  expect_per_lane(ballot_odd, [](int) { return 0xAAAAAAAAU; });
  expect_per_lane(any_of_few, [](int) { return 1; });
  expect_per_lane(all_of, [](int) { return 1; });
  expect_per_lane(match_any, [](int lane) { return lane < 16 ? 0xFFFFU : 0xFFFF0000U; });
  expect_per_lane(match_all, [](int) { return 1 + 2 + 4; });
}

TEST_CASE("a warp of fewer lanes votes alone") {
  expect_per_lane(
      ballot_odd, [](int) { return 0xAU; }, 4);
}

__global__ void reductions(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  const int value = lane - 10;
  const auto bits = static_cast<unsigned>(value);
  out[lane * 9 + 0] = __reduce_add_sync(full, value);
  out[lane * 9 + 1] = __reduce_min_sync(full, value);
  out[lane * 9 + 2] = __reduce_max_sync(full, value);
  out[lane * 9 + 3] = static_cast<int>(__reduce_min_sync(full, bits));
  out[lane * 9 + 4] = static_cast<int>(__reduce_max_sync(full, bits));
  out[lane * 9 + 5] = static_cast<int>(__reduce_and_sync(full, threadIdx.x | 64U));
  out[lane * 9 + 6] = static_cast<int>(__reduce_or_sync(full, threadIdx.x));
  out[lane * 9 + 7] = static_cast<int>(__reduce_xor_sync(full, 1U << threadIdx.x));
  out[lane * 9 + 8] = static_cast<int>(__reduce_add_sync(full, 3U));
}

TEST_CASE("reductions, signed and unsigned") {
  const DeviceArray<int> out(32 * 9);
  CHECK(simt::launch(reductions, 1, 32, 0, nullptr, out.data()) == cudaSuccess);
  const std::vector<int> result = out.host();
  const int expected[] = {496 - 320, -10, 21, 0, -1, 64, 31, -1, 96};
  for (std::size_t i = 0; i < result.size(); ++i) CHECK(result[i] == expected[i % 9]);
}

__global__ void two_groups(unsigned* out) {
  if (threadIdx.x < 12) {
    out[threadIdx.x] = __ballot_sync(0xFFFU, 1);
  } else {
    __syncwarp(0xFFFFF000U);
    out[threadIdx.x] = __activemask();
  }
}

TEST_CASE("groups of a warp work beside each other, and __activemask names one") {
  expect_per_lane(two_groups, [](int lane) { return lane < 12 ? 0xFFFU : 0xFFFFF000U; });
}

__global__ void leave_early(unsigned* out) {
  if (threadIdx.x % 2 == 1) return;
  out[threadIdx.x] = __ballot_sync(full, 1);
}

TEST_CASE("lanes that have returned are not waited for") {
  expect_per_lane(leave_early, [](int lane) { return lane % 2 == 1 ? 0U : 0x55555555U; });
}

}  // namespace
