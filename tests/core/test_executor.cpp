// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "growpage/core/executor.hpp"
#include "support/catch.hpp"

namespace growpage {
namespace {

using Call = std::pair<std::int64_t, std::int32_t>;

TEST_CASE("Executor: the default one runs everything in order on the calling thread") {
  const Executor executor;
  const std::thread::id self = std::this_thread::get_id();
  std::vector<Call> calls;
  bool elsewhere = false;
  executor.for_each(5, [&](std::int64_t i, std::int32_t worker) {
    calls.emplace_back(i, worker);
    elsewhere = elsewhere || std::this_thread::get_id() != self;
  });
  CHECK(calls == std::vector<Call>{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}});
  CHECK_FALSE(elsewhere);
  executor.for_each(0, [&](std::int64_t, std::int32_t) { elsewhere = true; });
  CHECK_FALSE(elsewhere);
}

/// Hands the tasks out to real threads, as an engine's pool would.
struct Pool {
  std::int32_t workers = 3;
  std::int64_t runs = 0;

  static void run(void* context, std::int64_t tasks, Executor::Task task, void* argument) {
    auto& pool = *static_cast<Pool*>(context);
    ++pool.runs;
    std::atomic<std::int64_t> next{0};
    std::vector<std::thread> threads;
    for (std::int32_t w = 0; w < pool.workers; ++w) {
      threads.emplace_back([&, w] {
        for (std::int64_t i = next++; i < tasks; i = next++) task(argument, i, w);
      });
    }
    for (std::thread& t : threads) t.join();
  }
};

TEST_CASE("Executor: every task runs once, with a worker no other thread has") {
  Pool pool;
  const Executor executor{&Pool::run, &pool, pool.workers};
  std::vector<std::int32_t> runs(1000, 0);  // one writer each, or the sanitizers say so
  std::vector<std::int64_t> per_worker(3, 0);
  executor.for_each(1000, [&](std::int64_t i, std::int32_t worker) {
    ++runs[static_cast<std::size_t>(i)];
    ++per_worker[static_cast<std::size_t>(worker)];
  });
  CHECK(runs == std::vector<std::int32_t>(1000, 1));
  CHECK(per_worker[0] + per_worker[1] + per_worker[2] == 1000);
  CHECK(pool.runs == 1);
}

TEST_CASE("Executor: a const body and one worker") {
  Pool pool;
  std::atomic<std::int64_t> sum{0};
  const auto body = [&sum](std::int64_t i, std::int32_t) { sum += i; };
  Executor{&Pool::run, &pool, 3}.for_each(10, body);
  CHECK(sum == 45);
  // One worker or one task is not worth a hand-over.
  Executor{&Pool::run, &pool, 1}.for_each(10, body);
  Executor{&Pool::run, &pool, 3}.for_each(1, body);
  CHECK(sum == 90);
  CHECK(pool.runs == 1);
}

}  // namespace
}  // namespace growpage
