// SPDX-License-Identifier: Apache-2.0
#include "experiment.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <mutex>

#include "thread_pool.hpp"

namespace growpage::eval {

Status Experiment::for_each(const char* part, std::size_t tasks,
                            const std::function<Status(std::size_t)>& f) const {
  std::mutex mutex;
  Status first;
  std::size_t done = 0;
  runtime::ThreadPool pool(options_.threads);
  pool.executor().for_each(static_cast<std::int64_t>(tasks), [&](std::int64_t i, std::int32_t) {
    {
      const std::lock_guard lock(mutex);
      if (!first.ok()) return;
    }
    Status s = f(static_cast<std::size_t>(i));
    const std::lock_guard lock(mutex);
    if (first.ok()) first = std::move(s);
    fmt::print(stderr, "{}: {} of {} runs\n", part, ++done, tasks);
  });
  return first;
}

}  // namespace growpage::eval
