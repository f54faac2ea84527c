// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "growpage/core/executor.hpp"

namespace growpage::runtime {

/// The engine's threads. The library starts none of its own: it borrows these through an Executor,
/// and so do the matmuls and the attention. The caller is worker 0.
class ThreadPool {
 public:
  explicit ThreadPool(std::int32_t workers) : workers_(workers) {
    for (std::int32_t w = 1; w < workers; ++w) {
      threads_.emplace_back([this, w] { serve(w); });
    }
  }
  ~ThreadPool() {
    stop_ = true;
    ++generation_;
    generation_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] Executor executor() noexcept {
    if (workers_ == 1) return {};
    return {[](void* pool, std::int64_t tasks, Executor::Task task, void* argument) {
              static_cast<ThreadPool*>(pool)->run(tasks, task, argument);
            },
            this, workers_};
  }

 private:
  void run(std::int64_t tasks, Executor::Task task, void* argument) {
    tasks_ = tasks;
    task_ = task;
    argument_ = argument;
    next_ = 0;
    busy_ = workers_ - 1;
    ++generation_;
    generation_.notify_all();
    take_tasks(0);
    while (busy_ != 0) std::this_thread::yield();
  }
  void take_tasks(std::int32_t worker) {
    for (std::int64_t i = next_++; i < tasks_; i = next_++) task_(argument_, i, worker);
  }
  void serve(std::int32_t worker) {
    for (std::uint64_t seen = 0;; ++seen) {
      generation_.wait(seen);
      if (stop_) return;
      take_tasks(worker);
      --busy_;
    }
  }

  std::int32_t workers_;
  std::atomic<std::uint64_t> generation_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<std::int32_t> busy_ = 0;
  std::int64_t tasks_ = 0;
  Executor::Task task_ = nullptr;
  void* argument_ = nullptr;
  std::vector<std::thread> threads_;
};

}  // namespace growpage::runtime
