// SPDX-License-Identifier: Apache-2.0
// What the C boundary costs: each call through the C++ API and through libgrowpage.so, on the same
// state, in one run. The number to look at is the ratio of two neighbours.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "growpage/growpage.h"
#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/scheduler.hpp"

namespace {

using growpage::AnyPolicy;
using growpage::PageManager;
using growpage::TokenId;

constexpr std::int32_t requests = 64, page_size = 256;
constexpr std::int64_t pages = 1 << 15;

std::vector<TokenId> prompt_of(std::int32_t tag) {
  std::vector<TokenId> prompt(300);
  std::iota(prompt.begin(), prompt.end(), tag * 1000);
  return prompt;
}

void check(bool good) {
  if (!good) std::abort();
}

growpage::PageManagerOptions cpp_options() {
  growpage::PageManagerOptions options;
  options.pages = pages;
  options.page_size = page_size;
  options.max_pages_per_sequence = 1 << 14;
  return options;
}

PageManager cpp_cache() { return std::move(PageManager::create(cpp_options())).value(); }

growpage_cache* c_cache() {
  growpage_cache_options options;
  growpage_cache_options_init(&options, sizeof options);
  options.pages = pages;
  options.page_size = page_size;
  options.max_pages_per_sequence = 1 << 14;
  growpage_cache* cache = nullptr;
  check(growpage_cache_create(&options, nullptr, &cache) == GROWPAGE_OK);
  return cache;
}

constexpr std::int64_t unlimited = 1 << 19;  // tokens a request may generate: more than are timed

// -- schedule() alone; complete() runs in between, untimed: manual time
// ----------------------------

template <class Schedule, class Complete>
void time_schedule(benchmark::State& state, Schedule&& schedule, Complete&& complete) {
  constexpr int steps = 64;  // of one measurement, against the cost of the clock
  for (auto _ : state) {
    std::int64_t nanoseconds = 0;
    for (int i = 0; i < steps; ++i) {
      const auto start = std::chrono::steady_clock::now();
      schedule();
      nanoseconds += (std::chrono::steady_clock::now() - start).count();
      complete();
    }
    state.SetIterationTime(static_cast<double>(nanoseconds) * 1e-9 / steps);
  }
}

void schedule_cpp(benchmark::State& state) {
  PageManager cache = cpp_cache();
  auto made = growpage::Scheduler<AnyPolicy, PageManager>::create(cache, *AnyPolicy::named("full"),
                                                                  growpage::SchedulerOptions{});
  check(made.ok());
  auto scheduler = std::move(made).value();
  for (std::int32_t tag = 0; tag < requests; ++tag) {
    const std::vector<TokenId> prompt = prompt_of(tag);
    growpage::RequestSpec spec;
    spec.prompt = prompt;
    spec.max_new_tokens = unlimited;
    check(scheduler.submit(spec).ok());
  }
  std::vector<growpage::SampledToken> tokens;
  const growpage::StepPlan* plan = nullptr;
  const auto schedule = [&] {
    const auto result = scheduler.schedule();
    plan = result.ok() ? *result : nullptr;
    benchmark::DoNotOptimize(plan);
  };
  const auto complete = [&] {
    tokens.clear();
    for (const auto& p : plan->prefills) {
      if (p.last) tokens.push_back({p.request, 1, false});
    }
    for (const auto& d : plan->decodes) tokens.push_back({d.request, 1, false});
    check(scheduler.complete({tokens, {}, {}, {}}).ok());
  };
  for (int i = 0; i < 10; ++i) schedule(), complete();  // past the prefill
  check(plan->decodes.size() == requests);
  time_schedule(state, schedule, complete);
}

void schedule_c(benchmark::State& state) {
  growpage_cache* cache = c_cache();
  growpage_policy* policy = nullptr;
  growpage_scheduler* scheduler = nullptr;
  check(growpage_policy_create("full", nullptr, &policy) == GROWPAGE_OK);
  check(growpage_scheduler_create(cache, policy, nullptr, nullptr, &scheduler) == GROWPAGE_OK);
  for (std::int32_t tag = 0; tag < requests; ++tag) {
    const std::vector<TokenId> prompt = prompt_of(tag);
    growpage_request request;
    growpage_request_init(&request, sizeof request);
    request.prompt = prompt.data();
    request.prompt_tokens = prompt.size();
    request.max_new_tokens = unlimited;
    std::uint64_t id = 0;
    check(growpage_scheduler_submit(scheduler, &request, &id) == GROWPAGE_OK);
  }
  std::vector<growpage_sampled_token> tokens;
  growpage_plan plan{};
  plan.struct_size = sizeof plan;
  growpage_step_result result;
  growpage_step_result_init(&result, sizeof result);
  growpage_status status = GROWPAGE_OK;
  const auto schedule = [&] {
    status = growpage_scheduler_schedule(scheduler, &plan);
    benchmark::DoNotOptimize(plan.decodes);
  };
  const auto complete = [&] {
    check(status == GROWPAGE_OK);
    tokens.clear();
    for (std::size_t i = 0; i < plan.prefill_count; ++i) {
      if (plan.prefills[i].last != 0) tokens.push_back({plan.prefills[i].request, 1, 0, {}});
    }
    for (std::size_t i = 0; i < plan.decode_count; ++i) {
      tokens.push_back({plan.decodes[i].request, 1, 0, {}});
    }
    result.tokens = tokens.data();
    result.token_count = tokens.size();
    check(growpage_scheduler_complete(scheduler, &result) == GROWPAGE_OK);
  };
  for (int i = 0; i < 10; ++i) schedule(), complete();
  check(plan.decode_count == requests);
  time_schedule(state, schedule, complete);
  check(growpage_scheduler_destroy(scheduler) == GROWPAGE_OK);
  check(growpage_policy_destroy(policy) == GROWPAGE_OK);
  check(growpage_cache_destroy(cache) == GROWPAGE_OK);
}

// -- append: one token to each of 64 sequences, as a step of an engine with its own scheduler
// -------

constexpr std::int64_t rounds = 4096;  // until the sequences are cut back

void append_cpp(benchmark::State& state) {
  PageManager cache = cpp_cache();
  std::vector<growpage::SequenceId> ids;
  for (std::int32_t i = 0; i < requests; ++i) {
    ids.push_back(cache.admit({})->sequence);
    check(cache.reserve(ids.back(), rounds).ok());
  }
  std::vector<growpage::PageCopy> copies;
  const TokenId token = 1;
  std::int64_t round = 0;
  for (auto _ : state) {
    if (round++ == rounds) {
      state.PauseTiming();
      for (const auto id : ids) {
        check(cache.truncate(id, 0).ok());
        check(cache.reserve(id, rounds).ok());
      }
      round = 1;
      state.ResumeTiming();
    }
    for (const auto id : ids) {
      copies.clear();
      benchmark::DoNotOptimize(cache.append(id, 1, &token, copies).ok());
    }
  }
}

template <class Append>
void time_append(benchmark::State& state, Append&& append) {
  growpage_cache* cache = c_cache();
  std::vector<std::uint64_t> ids(requests);
  for (auto& id : ids) {
    check(growpage_cache_admit(cache, nullptr, 0, nullptr, &id, nullptr) == GROWPAGE_OK);
    check(growpage_cache_reserve(cache, id, rounds) == GROWPAGE_OK);
  }
  std::int64_t round = 0;
  for (auto _ : state) {
    if (round++ == rounds) {
      state.PauseTiming();
      for (const auto id : ids) {
        check(growpage_cache_truncate(cache, id, 0) == GROWPAGE_OK);
        check(growpage_cache_reserve(cache, id, rounds) == GROWPAGE_OK);
      }
      round = 1;
      state.ResumeTiming();
    }
    append(cache, ids);
  }
  check(growpage_cache_destroy(cache) == GROWPAGE_OK);
}

// A call for each sequence.
void append_c_single(benchmark::State& state) {
  time_append(state, [](growpage_cache* cache, const std::vector<std::uint64_t>& ids) {
    const TokenId token = 1;
    growpage_page_copy copy;
    for (const auto id : ids) {
      benchmark::DoNotOptimize(growpage_cache_append(cache, id, 1, &token, &copy));
    }
  });
}

// One call for the step.
void append_c(benchmark::State& state) {
  const std::vector<TokenId> tokens(requests, 1);
  std::vector<growpage_page_copy> copies(requests);
  time_append(state, [&](growpage_cache* cache, const std::vector<std::uint64_t>& ids) {
    std::size_t count = 0;
    std::size_t done = 0;
    benchmark::DoNotOptimize(growpage_cache_append_batch(cache, ids.data(), tokens.data(),
                                                         ids.size(), copies.data(), &count, &done));
  });
}

// -- prefix match of a prompt of 8 cached pages
// ------------------------------------------------------

std::vector<TokenId> long_prompt() {
  std::vector<TokenId> prompt(8 * page_size + 1);
  std::iota(prompt.begin(), prompt.end(), 0);
  return prompt;
}

void match_cpp(benchmark::State& state) {
  PageManager cache = cpp_cache();
  const std::vector<TokenId> prompt = long_prompt();
  const auto id = cache.admit({})->sequence;
  std::vector<growpage::PageCopy> copies;
  const auto size = static_cast<std::int32_t>(prompt.size());
  check(cache.reserve(id, size).ok());
  check(cache.append(id, size, prompt.data(), copies).ok());
  check(cache.mark_computed(id, size).ok());
  check(cache.match_length(prompt) == 8 * page_size);
  for (auto _ : state) benchmark::DoNotOptimize(cache.match_length(prompt));
}

void match_c(benchmark::State& state) {
  growpage_cache* cache = c_cache();
  const std::vector<TokenId> prompt = long_prompt();
  std::uint64_t id = 0;
  growpage_page_copy copy;
  const auto size = static_cast<std::int32_t>(prompt.size());
  check(growpage_cache_admit(cache, nullptr, 0, nullptr, &id, nullptr) == GROWPAGE_OK);
  check(growpage_cache_reserve(cache, id, size) == GROWPAGE_OK);
  check(growpage_cache_append(cache, id, size, prompt.data(), &copy) == GROWPAGE_OK);
  check(growpage_cache_mark_computed(cache, id, size) == GROWPAGE_OK);
  std::int64_t matched = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        growpage_cache_match_length(cache, prompt.data(), prompt.size(), nullptr, &matched));
  }
  check(matched == 8 * page_size);
  check(growpage_cache_destroy(cache) == GROWPAGE_OK);
}

// As many steps as fit into the pool.
BENCHMARK(schedule_cpp)->UseManualTime()->Iterations(1000);
BENCHMARK(schedule_c)->UseManualTime()->Iterations(1000);
BENCHMARK(append_cpp);
BENCHMARK(append_c);
BENCHMARK(append_c_single);
BENCHMARK(match_cpp);
BENCHMARK(match_c);

}  // namespace
