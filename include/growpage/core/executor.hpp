// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

namespace growpage {

/// Threads the engine lends to the CPU backend; the library starts none. `run` must call
/// `task(argument, i, worker)` exactly once for every i in [0, tasks), with worker in [0, workers)
/// and no two concurrent calls sharing a worker, and return when all have returned. A default
/// Executor runs everything on the calling thread. Plain data, so that it crosses a C boundary.
struct Executor {
  using Task = void (*)(void* argument, std::int64_t index, std::int32_t worker);

  void (*run)(void* context, std::int64_t tasks, Task task, void* argument) = nullptr;
  void* context = nullptr;
  std::int32_t workers = 1;

  /// Calls f(index, worker) for every index in [0, tasks). Allocates nothing.
  template <class F>
  void for_each(std::int64_t tasks, F&& f) const {
    if (run == nullptr || workers <= 1 || tasks <= 1) {
      for (std::int64_t i = 0; i < tasks; ++i) f(i, 0);
      return;
    }
    using Body = std::remove_reference_t<F>;
    run(
        context, tasks,
        [](void* argument, std::int64_t i, std::int32_t worker) {
          (*static_cast<Body*>(argument))(i, worker);
        },
        const_cast<void*>(static_cast<const void*>(&f)));
  }
};

}  // namespace growpage
