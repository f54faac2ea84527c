// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "simt/device_array.hpp"
#include "simt/emulation.hpp"
#include "simt/expect.hpp"

namespace {

using simt::DeviceArray;

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

__global__ void who(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  atomicAdd(&out[block * threads + thread], 1U + block);
}

TEST_CASE("every thread of every block runs once, with its own indices") {
  simt::for_each_schedule([] {
    const DeviceArray<unsigned> out(24 * 70);
    simt::launch(who, dim3(2, 3, 4), dim3(7, 5, 2), 0, nullptr, out.data());
    const std::vector<unsigned> result = out.host();
    for (std::size_t i = 0; i < result.size(); ++i) CHECK(result[i] == 1 + i / 70);
  });
}

__global__ void reverse(int* data) {
  SIMT_SHARED(int, tile, [256]);
  const int i = static_cast<int>(threadIdx.x);
  const int last = static_cast<int>(blockDim.x) - 1;
  for (int round = 0; round < 3; ++round) {
    tile[i] = data[i];
    __syncthreads();
    data[i] = tile[last - i];
    __syncthreads();
  }
}

TEST_CASE("a barrier holds every thread back, in blocks of any size") {
  for (const int threads : {1, 31, 33, 100, 256}) {
    simt::for_each_schedule([threads] {
      std::vector<int> values(static_cast<std::size_t>(threads));
      for (int i = 0; i < threads; ++i) values[static_cast<std::size_t>(i)] = i;
      const DeviceArray<int> data(values);
      simt::launch(reverse, 1, threads, 0, nullptr, data.data());
      CHECK(data.host() == std::vector<int>(values.rbegin(), values.rend()));
    });
  }
}

__global__ void predicates(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  const int odd = __syncthreads_count(i & 1);
  const int any = __syncthreads_or(i == 5) + 2 * __syncthreads_or(0);
  const int all = __syncthreads_and(1) + 2 * __syncthreads_and(i != 5);
  out[i] = odd * 100 + any * 10 + all;
}

TEST_CASE("barriers with a predicate") {
  simt::for_each_schedule([] {
    const DeviceArray<int> out(70);
    simt::launch(predicates, 1, 70, 0, nullptr, out.data());
    CHECK(out.host() == std::vector<int>(70, 3511));
  });
}

__global__ void half_returns(int* out) {
  if (threadIdx.x % 2 == 0) return;
  __syncthreads();
  atomicAdd(out, 1);
}

TEST_CASE("threads that have returned are not waited for") {
  simt::for_each_schedule([] {
    const DeviceArray<int> out(1);
    simt::launch(half_returns, 1, 64, 0, nullptr, out.data());
    CHECK(out.host()[0] == 32);
  });
}

__global__ void sleep_until_signalled(int* flag, int* out) {
  if (threadIdx.x == 63) atomicExch(flag, 1);
  while (atomicAdd(flag, 0) == 0) __nanosleep(20);
  atomicAdd(out, 1);
}

TEST_CASE("a thread that sleeps lets the one that it waits for run") {
  simt::for_each_schedule([] {
    const DeviceArray<int> flag(1);
    const DeviceArray<int> out(1);
    simt::launch(sleep_until_signalled, 1, 64, 0, nullptr, flag.data(), out.data());
    CHECK(out.host()[0] == 64);
  });
}

__global__ void dynamic_and_static(int* out, int count) {
  SIMT_DYN_SHARED(memory);
  int* values = reinterpret_cast<int*>(memory);
  SIMT_SHARED(int, total, );
  if (threadIdx.x == 0) total = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    values[i] = i;
  }
  __syncthreads();
  atomicAdd(&total, values[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

TEST_CASE("static and dynamic shared memory, fresh for each block") {
  const DeviceArray<int> out(3);
  simt::launch(dynamic_and_static, 3, 32, 100 * sizeof(int), nullptr, out.data(), 100);
  CHECK(out.host() == std::vector<int>(3, 496));
  simt::expect_clean();
}

__global__ void wait_apart() {
  if (threadIdx.x < 3) __syncwarp();
  __syncthreads();
}
__global__ void one_barrier_or_other() {
  if (threadIdx.x < 3) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void give_up() {
  if (threadIdx.x == 2) __trap();
}
__global__ void throw_something() {
  if (threadIdx.x == 2) throw std::runtime_error("this went wrong");
}
__global__ void sleep_for_ever(const int* flag) {
  while (__ldcv(flag) == 0) __nanosleep(1);
}

TEST_CASE("a kernel that fails names what, who and where") {
  for (int repetition = 0; repetition < 3; ++repetition) {  // the threads left behind do no harm
    simt::launch(wait_apart, 1, 64, 0, nullptr);
    const std::string deadlock = simt::expect_failure();
    contains(deadlock, "deadlock in block (0, 0, 0): 3 threads, the first 0, wait in a collective");
    contains(deadlock, "with mask 0xffffffff at test_block.cpp:");
    contains(deadlock, "61 threads, the first 3, wait at the barrier test_block.cpp:");

    simt::launch(one_barrier_or_other, 1, 64, 0, nullptr);
    contains(simt::expect_failure(), "divergent barrier: thread ");

    simt::launch(give_up, 1, 64, 0, nullptr);
    contains(simt::expect_failure(), "__trap() by thread 2 at test_block.cpp:");

    simt::launch(throw_something, 1, 64, 0, nullptr);
    CHECK(simt::expect_failure() == "exception in thread 2: this went wrong");

    const DeviceArray<int> flag(1);
    simt::launch(sleep_for_ever, 1, 1, 0, nullptr, flag.data());
    contains(simt::expect_failure(), "thread 0 sleeps in a loop");
  }
}

TEST_CASE("after a failure nothing runs until the error has been fetched") {
  const DeviceArray<int> out(1);
  simt::launch(give_up, 1, 64, 0, nullptr);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  CHECK(simt::launch(half_returns, 1, 64, 0, nullptr, out.data()) == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(out.host()[0] == 0);
  simt::expect_clean();
}

TEST_CASE("launches that no device takes are refused") {
  const auto configuration = [](dim3 grid, dim3 block) {
    return simt::expect_refusal(simt::launch(give_up, grid, block, 0, nullptr),
                                cudaErrorInvalidConfiguration);
  };
  CHECK(configuration(1, 1025) == "a block of (1025, 1, 1) threads");
  CHECK(configuration(1, 0) == "a block of (0, 1, 1) threads");
  CHECK(configuration(1, dim3(1, 1, 65)) == "a block of (1, 1, 65) threads");
  CHECK(configuration(0, 1) == "a grid of (0, 1, 1) blocks");
  CHECK(configuration(dim3(1, 65536), 1) == "a grid of (1, 65536, 1) blocks");
  simt::expect_clean();
}

TEST_CASE("more than 48 KiB of dynamic shared memory needs the kernel's attribute") {
  const DeviceArray<int> out(1);
  const std::size_t bytes = 64U << 10;
  const auto launch = [&] {
    return simt::launch(dynamic_and_static, 1, 32, bytes, nullptr, out.data(), 32);
  };
  simt::expect_refusal(launch(), cudaErrorInvalidValue);
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  simt::expect_refusal(cudaFuncSetAttribute(dynamic_and_static, attribute, 228 << 10),
                       cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(dynamic_and_static, attribute, static_cast<int>(bytes)) ==
        cudaSuccess);
  CHECK(launch() == cudaSuccess);
  CHECK(out.host()[0] == 496);
  CHECK(cudaFuncSetAttribute(dynamic_and_static, attribute, 48 << 10) == cudaSuccess);
}

}  // namespace
