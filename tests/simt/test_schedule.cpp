// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <set>

#include "simt/device_array.hpp"
#include "simt/emulation.hpp"
#include "simt/expect.hpp"
#include "simt/runtime/random.hpp"
#include "simt/runtime/ready_set.hpp"

namespace {

using simt::DeviceArray;
using simt::Order;

/// Puts back the environment's settings.
class KeepSettings {
 public:
  KeepSettings() = default;
  ~KeepSettings() { simt::configure(settings_); }
  KeepSettings(const KeepSettings&) = delete;
  KeepSettings& operator=(const KeepSettings&) = delete;
  void use(Order order, std::uint64_t seed) const {
    simt::configure({seed, order, settings_.streams, settings_.grid_races});
  }

 private:
  simt::Settings settings_ = simt::settings();
};

__global__ void arrive(unsigned* next, unsigned* order) {
  __syncthreads();
  order[atomicAdd(next, 1U)] = blockIdx.x * blockDim.x + threadIdx.x;
}

/// Global indices of the threads in the order in which they pass a barrier.
std::vector<unsigned> passage() {
  const DeviceArray<unsigned> next(1);
  const DeviceArray<unsigned> order(4 * 70);
  simt::launch(arrive, 4, 70, 0, nullptr, next.data(), order.data());
  return order.host();
}

TEST_CASE("a seed repeats a schedule, another changes it") {
  const KeepSettings keep;
  std::set<std::vector<unsigned>> schedules;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    keep.use(Order::mix, seed);
    const std::vector<unsigned> schedule = passage();
    keep.use(Order::mix, seed);
    CHECK(passage() == schedule);
    schedules.insert(schedule);
  }
  CHECK(schedules.size() == 10);
}

TEST_CASE("the forward order is the order of the indices, in every block") {
  const KeepSettings keep;
  keep.use(Order::forward, 1);
  std::vector<unsigned> expected(4 * 70);
  std::iota(expected.begin(), expected.end(), 0U);
  CHECK(passage() == expected);
}

std::vector<unsigned> taken(unsigned threads) {
  static simt::ReadySet ready;
  ready.start_block(threads);
  for (unsigned thread = 0; thread < threads; ++thread) ready.insert(thread);
  std::vector<unsigned> order;
  while (!ready.empty()) order.push_back(ready.take());
  return order;
}

TEST_CASE("every order takes every ready thread once, each in its way") {
  const KeepSettings keep;
  constexpr unsigned threads = 200;
  std::vector<unsigned> all(threads);
  std::iota(all.begin(), all.end(), 0U);
  for (const Order order : {Order::mix, Order::forward, Order::reverse, Order::uniform,
                            Order::priority, Order::warp_priority, Order::starved}) {
    std::set<unsigned> last;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      keep.use(order, seed);
      std::vector<unsigned> sequence = taken(threads);
      last.insert(sequence.back());
      if (order == Order::reverse) CHECK(std::equal(all.rbegin(), all.rend(), sequence.begin()));
      if (order == Order::warp_priority) {
        for (unsigned i = 1; i < threads; ++i) {
          const bool new_warp = sequence[i] / 32 != sequence[i - 1] / 32;
          const bool seen_before =
              std::any_of(sequence.begin(), sequence.begin() + i - 1,
                          [&](unsigned earlier) { return earlier / 32 == sequence[i] / 32; });
          CHECK((!new_warp || !seen_before));
        }
      }
      std::sort(sequence.begin(), sequence.end());
      CHECK(sequence == all);
    }
    const bool fixed = order == Order::forward || order == Order::reverse;
    CHECK((last.size() == 1) == fixed);
    if (order == Order::starved) CHECK(last.count(0) == 1);
  }
}

TEST_CASE("a random number below a bound takes all values about equally often") {
  simt::Random random(3);
  int counts[10] = {};
  for (int i = 0; i < 10000; ++i) ++counts[random.below(10)];
  for (const int count : counts) {
    CHECK(count > 850);
    CHECK(count < 1150);
  }
}

}  // namespace
