// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "growpage/backend/cpu.hpp"

namespace growpage::test {

struct ScalarCpu : CpuBackend {
  explicit ScalarCpu(Executor executor = {}) : CpuBackend(executor, Isa::scalar) {}
};

struct SimdCpu : CpuBackend {
  explicit SimdCpu(Executor executor = {}) : CpuBackend(executor, Isa::simd) {}
};

/// Two threads that take the next task as they come.
inline Executor two_workers() {
  Executor executor;
  executor.workers = 2;
  executor.run = [](void*, std::int64_t tasks, Executor::Task task, void* argument) {
    std::atomic<std::int64_t> next{0};
    const auto work = [&](std::int32_t worker) {
      for (std::int64_t i = next++; i < tasks; i = next++) task(argument, i, worker);
    };
    std::thread other(work, 1);
    work(0);
    other.join();
  };
  return executor;
}

struct TwoWorkers : CpuBackend {
  TwoWorkers() : CpuBackend(two_workers()) {}
};

}  // namespace growpage::test
