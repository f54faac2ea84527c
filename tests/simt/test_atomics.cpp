// SPDX-License-Identifier: Apache-2.0
#include "simt/device_array.hpp"
#include "simt/emulation.hpp"
#include "simt/expect.hpp"

namespace {

using simt::DeviceArray;

constexpr int threads = 100;

template <class T>
__global__ void integers(T* out) {
  const T i = static_cast<T>(threadIdx.x);
  atomicAdd(&out[0], i);
  atomicSub(&out[1], i);
  atomicMax(&out[2], i);
  atomicMin(&out[3], i);
  atomicOr(&out[4], static_cast<T>(T{1} << (i % 20)));
  atomicAnd(&out[5], static_cast<T>(~(T{1} << (i % 20))));
  atomicXor(&out[6], i);
  if (atomicCAS(&out[7], T{0}, static_cast<T>(i + 1)) == T{0}) atomicAdd(&out[8], T{1});
}

TEMPLATE_TEST_CASE("integer atomics", "", int, unsigned, unsigned long long) {
  using T = TestType;
  simt::for_each_schedule([] {
    const T all = static_cast<T>(~T{0});
    const DeviceArray<T> out(std::vector<T>{0, 5000, 0, T{77}, 0, all, 0, 0, 0});
    simt::launch(integers<T>, 1, threads, 0, nullptr, out.data());
    const std::vector<T> result = out.host();
    CHECK(result[0] == 4950);
    CHECK(result[1] == 50);
    CHECK(result[2] == 99);
    CHECK(result[3] == 0);
    CHECK(result[4] == (T{1} << 20) - 1);
    CHECK(result[5] == static_cast<T>(all << 20));
    CHECK(result[6] == 0);  // 0 ^ 1 ^ … ^ 99
    CHECK(result[7] >= 1);
    CHECK(result[7] <= threads);
    CHECK(result[8] == 1);
  });
}

template <class T>
__global__ void add_halves(T* sum, T* before) {
  before[threadIdx.x] = atomicAdd(sum, static_cast<T>(0.5F));
}

TEMPLATE_TEST_CASE("atomic sums of floats", "", float, double, __half, __nv_bfloat16) {
  using T = TestType;
  simt::for_each_schedule([] {
    const DeviceArray<T> sum(1, static_cast<T>(0.0F));
    const DeviceArray<T> before(64, static_cast<T>(0.0F));
    simt::launch(add_halves<T>, 1, 64, 0, nullptr, sum.data(), before.data());
    CHECK(static_cast<float>(sum.host()[0]) == 32.0F);
    float total = 0;
    for (const T value : before.host()) total += static_cast<float>(value);
    CHECK(total == 1008.0F);  // 0.5 × (0 + … + 63): each step was seen once
  });
}

__global__ void add_pairs(__half2* sum) { atomicAdd(sum, __floats2half2_rn(1.0F, 2.0F)); }

TEST_CASE("an atomic sum of pairs of halves") {
  const DeviceArray<__half2> sum(1, __floats2half2_rn(0.0F, 0.0F));
  simt::launch(add_pairs, 1, 64, 0, nullptr, sum.data());
  const __half2 result = sum.host()[0];
  CHECK(__low2float(result) == 64.0F);
  CHECK(__high2float(result) == 128.0F);
}

__global__ void wrap_and_exchange(unsigned* counter, float* last) {
  atomicInc(counter, 6U);
  atomicExch(last, 3.0F);
}

TEST_CASE("atomicInc wraps around and atomicExch stores") {
  const DeviceArray<unsigned> counter(1);
  const DeviceArray<float> last(1);
  simt::launch(wrap_and_exchange, 1, threads, 0, nullptr, counter.data(), last.data());
  CHECK(counter.host()[0] == threads % 7);
  CHECK(last.host()[0] == 3.0F);
}

}  // namespace
