// SPDX-License-Identifier: Apache-2.0
// Calls that take a const handle may run together; handles may be made and destroyed anywhere. What
// is wrong here shows under the thread sanitizer.
#include <atomic>
#include <thread>
#include <vector>

#include "capi/engine.hpp"
#include "growpage/growpage.h"
#include "support/catch.hpp"

namespace growpage::test {

TEST_CASE("C: const calls run together, and every thread has its own last error", "[capi]") {
  const Engine engine;
  engine.submit_all();
  for (int i = 0; i < 20; ++i) REQUIRE(engine.step());
  const std::vector<std::int32_t> prompt = scenario_prompt(5);
  std::vector<std::uint64_t> sequences(3);
  for (auto& id : sequences) {
    REQUIRE(growpage_cache_admit(engine.cache, prompt.data(), prompt.size(), nullptr, &id,
                                 nullptr) == GROWPAGE_OK);
  }
  std::atomic<int> wrong = 0;
  const auto expect = [&wrong](bool good) {
    if (!good) ++wrong;
  };
  const auto look = [&](std::int32_t number) {
    for (int round = 0; round < 200; ++round) {
      growpage_cache_info info{};
      info.struct_size = sizeof info;
      expect(growpage_cache_get_info(engine.cache, &info) == GROWPAGE_OK);
      std::int64_t matched = 0;
      expect(growpage_cache_match_length(engine.cache, prompt.data(), prompt.size(), nullptr,
                                         &matched) == GROWPAGE_OK);
      growpage_sequence view{};
      view.struct_size = sizeof view;
      expect(growpage_cache_get_sequence(engine.cache, sequences[0], &view) == GROWPAGE_OK);
      std::int64_t stride = 0;
      expect(growpage_cache_padded_tables(engine.cache, sequences.data(), 3, &stride, nullptr, 0, 0,
                                          nullptr) == GROWPAGE_OK);
      growpage_stats stats{};
      stats.struct_size = sizeof stats;
      expect(growpage_scheduler_get_stats(engine.scheduler, &stats) == GROWPAGE_OK);
      growpage_policy_info policy{};
      policy.struct_size = sizeof policy;
      expect(growpage_policy_get_info(engine.policy, number, &policy) == GROWPAGE_INVALID_ARGUMENT);
      growpage_error error{};
      growpage_last_error(&error, sizeof error);
      expect(std::string(error.value) == std::to_string(number));
    }
  };
  const auto make = [&] {
    for (int round = 0; round < 200; ++round) {
      growpage_policy* policy = nullptr;
      expect(growpage_policy_create("random", nullptr, &policy) == GROWPAGE_OK);
      expect(growpage_policy_set_int(policy, "seed", round) == GROWPAGE_OK);
      expect(growpage_policy_destroy(policy) == GROWPAGE_OK);
      expect(growpage_policy_validate(policy, 256) == GROWPAGE_INVALID_ARGUMENT);
    }
  };
  std::vector<std::thread> threads;
  for (std::int32_t i = 1; i <= 3; ++i) threads.emplace_back(look, i);
  threads.emplace_back(make);
  threads.emplace_back(make);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("C: an engine lends its threads to the kernels", "[capi]") {
  growpage_executor executor;
  growpage_executor_init(&executor, sizeof executor);
  executor.workers = 3;
  EngineOptions options;
  options.cache.executor = &executor;
  growpage_cache* cache = nullptr;
  CHECK(growpage_cache_create(&options.cache, nullptr, &cache) == GROWPAGE_INVALID_ARGUMENT);
  executor.run = [](void*, std::int64_t tasks, growpage_task task, void* argument) {
    std::vector<std::thread> threads;
    for (std::int32_t w = 0; w < 3; ++w) {
      threads.emplace_back([=] {
        for (std::int64_t i = w; i < tasks; i += 3) task(argument, i, w);
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  const Engine engine(options);
  engine.submit_all();
  while (engine.step()) {
  }
  CHECK(engine.stats().grow == 5);
  CHECK(engine.stats().compact == 42);
}

}  // namespace growpage::test
