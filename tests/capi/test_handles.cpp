// SPDX-License-Identifier: Apache-2.0
// Every call that takes a handle, with every kind of wrong one.
#include <functional>
#include <vector>

#include "capi/engine.hpp"
#include "growpage/growpage.h"
#include "support/catch.hpp"

namespace growpage::test {
namespace {

// Large enough for any out parameter and any small array; valid content where it is read.
struct Arguments {
  growpage_sequence view{};
  growpage_cache_info info{};
  growpage_plan plan{};
  growpage_stats stats{};
  growpage_step_result result{};
  growpage_request request{};
  growpage_policy_info policy_info{};
  growpage_parameter parameter{};
  growpage_policy_options options{};
  growpage_retention_options retention{};
  growpage_boundary boundary{};
  growpage_tensor tensor{};
  growpage_ticket ticket{1, 1, 1, 0};
  growpage_compaction_plan compaction{0, 1, {0, -1}};
  growpage_demand demand{};
  growpage_page_copy copy{};
  growpage_page_transfer transfer{};
  growpage_summary_entry entry{};
  growpage_hash hash{};
  growpage_prefix_link link{};
  const growpage_finished* finished = nullptr;
  const growpage_measured_demand* measured = nullptr;
  const std::uint64_t* fences = nullptr;
  const std::int32_t* text = nullptr;
  std::int32_t ints[16]{};
  std::int64_t longs[16]{};
  std::uint64_t id = 0;
  std::uint8_t marks[16]{};
  float floats[64]{};
  double real = 0;
  std::size_t count = 0, stride = 0;
  growpage_scheduler* made = nullptr;

  Arguments() {
    view.struct_size = sizeof view;
    info.struct_size = sizeof info;
    plan.struct_size = sizeof plan;
    stats.struct_size = sizeof stats;
    policy_info.struct_size = sizeof policy_info;
    parameter.struct_size = sizeof parameter;
    boundary.struct_size = sizeof boundary;
    boundary.page_size = 16;
    growpage_step_result_init(&result, sizeof result);
    growpage_request_init(&request, sizeof request);
    growpage_policy_options_init(&options, sizeof options);
    growpage_retention_options_init(&retention, sizeof retention);
    growpage_tensor_init(&tensor, sizeof tensor);
  }
};

using Cache = growpage_cache*;
using Policy = growpage_policy*;
using Sched = growpage_scheduler*;
using Index = growpage_prefix_index*;
using A = Arguments;

const std::vector<std::function<growpage_status(Cache, A&)>> cache_calls = {
    [](Cache c, A& a) { return growpage_cache_get_info(c, &a.info); },
    [](Cache c, A& a) { return growpage_cache_admit(c, a.ints, 4, nullptr, &a.id, a.longs); },
    [](Cache c, A& a) { return growpage_cache_match_length(c, a.ints, 4, nullptr, a.longs); },
    [](Cache c, A& a) { return growpage_cache_grow(c, a.id); },
    [](Cache c, A& a) { return growpage_cache_reserve(c, a.id, 1); },
    [](Cache c, A& a) { return growpage_cache_append(c, a.id, 1, a.ints, &a.copy); },
    [](Cache c, A& a) {
      return growpage_cache_append_batch(c, &a.id, a.ints, 1, &a.copy, &a.count, &a.stride);
    },
    [](Cache c, A& a) { return growpage_cache_mark_computed(c, a.id, 1); },
    [](Cache c, A& a) { return growpage_cache_fork(c, a.id, &a.id); },
    [](Cache c, A& a) { return growpage_cache_truncate(c, a.id, 0); },
    [](Cache c, A& a) { return growpage_cache_release(c, a.id); },
    [](Cache c, A& a) { return growpage_cache_get_sequence(c, a.id, &a.view); },
    [](Cache c, A& a) { return growpage_cache_physical_slot(c, a.id, 0, a.longs); },
    [](Cache c, A&) { return growpage_cache_clear_prefix_cache(c); },
    [](Cache c, A&) { return growpage_cache_check_invariants(c); },
    [](Cache c, A& a) {
      return growpage_cache_padded_tables(c, &a.id, 1, a.longs, a.ints, 16, 0, nullptr);
    },
    [](Cache c, A& a) {
      return growpage_cache_compressed_tables(c, &a.id, 1, a.ints, a.ints, 8, &a.count, a.ints);
    },
    [](Cache c, A& a) {
      return growpage_cache_token_tables(c, &a.id, 1, a.ints, a.longs, nullptr, 16, &a.count);
    },
    [](Cache c, A& a) {
      return growpage_cache_begin_compaction(c, a.id, 1, 0, 0, &a.copy, 1, &a.count, &a.ticket);
    },
    [](Cache c, A& a) { return growpage_cache_page_marks(c, a.id, 0, a.marks, 16); },
    [](Cache c, A& a) {
      return growpage_cache_apply_compaction(c, &a.ticket, &a.compaction, nullptr, 0, 64);
    },
    [](Cache c, A& a) { return growpage_cache_cancel_compaction(c, &a.ticket); },
    [](Cache c, A& a) { return growpage_cache_swap_out(c, a.id, &a.transfer, 1, &a.count, &a.id); },
    [](Cache c, A& a) { return growpage_cache_swap_in(c, a.id, &a.transfer, 1, &a.count, &a.id); },
    [](Cache c, A& a) { return growpage_cache_complete_fence(c, a.id); },
    [](Cache c, A& a) { return growpage_cache_guard(c, a.id, &a.id); },
    [](Cache c, A& a) { return growpage_cache_get_kv(c, &a.tensor, nullptr); },
    [](Cache c, A& a) {
      return growpage_cache_update_summaries(c, &a.entry, 1, &a.tensor, 0, 1, nullptr);
    },
    [](Cache c, A& a) { return growpage_cache_measure_demand(c, a.id, 0, 0, &a.demand, nullptr); },
    [](Cache c, A& a) { return growpage_cache_compact(c, &a.ticket, 0, 0, 0, nullptr); },
    [](Cache c, A& a) { return growpage_cache_run_copies(c, &a.copy, 1, nullptr); },
    [](Cache c, A& a) { return growpage_cache_run_swap_out(c, a.id, 0, &a.transfer, 1, nullptr); },
    [](Cache c, A& a) { return growpage_cache_run_swap_in(c, a.id, 0, &a.transfer, 1, nullptr); },
    [](Cache c, A& a) {
      return growpage_cache_append_kv(c, 0, a.longs, 1, a.floats, a.floats, nullptr);
    },
    [](Cache c, A& a) {
      return growpage_cache_attention(c, 0, 1, a.ints, 1, a.ints, a.floats, a.floats, nullptr);
    },
    [](Cache c, A& a) { return growpage_cache_drain_events(c, nullptr, 0, &a.count, nullptr); },
    [](Cache c, A& a) { return growpage_scheduler_create(c, nullptr, nullptr, nullptr, &a.made); },
};

const std::vector<std::function<growpage_status(Policy, A&)>> policy_calls = {
    [](Policy p, A& a) { return growpage_policy_get_parameter(p, 0, &a.parameter); },
    [](Policy p, A&) { return growpage_policy_set_double(p, "threshold", 0); },
    [](Policy p, A&) { return growpage_policy_set_int(p, "initial_pages", 4); },
    [](Policy p, A& a) { return growpage_policy_get_double(p, "threshold", &a.real); },
    [](Policy p, A& a) { return growpage_policy_get_int(p, "initial_pages", a.longs); },
    [](Policy p, A& a) { return growpage_policy_set_options(p, &a.options); },
    [](Policy p, A& a) { return growpage_policy_get_options(p, &a.options); },
    [](Policy p, A& a) { return growpage_policy_set_retention(p, &a.retention); },
    [](Policy p, A& a) { return growpage_policy_get_retention(p, &a.retention); },
    [](Policy p, A& a) { return growpage_policy_get_info(p, 16, &a.policy_info); },
    [](Policy p, A&) { return growpage_policy_validate(p, 16); },
    [](Policy p, A& a) { return growpage_policy_decide(p, &a.boundary, a.ints); },
};

const std::vector<std::function<growpage_status(Sched, A&)>> scheduler_calls = {
    [](Sched s, A& a) { return growpage_scheduler_submit(s, &a.request, &a.id); },
    [](Sched s, A& a) { return growpage_scheduler_abort(s, a.id); },
    [](Sched s, A& a) { return growpage_scheduler_schedule(s, &a.plan); },
    [](Sched s, A& a) {
      return growpage_scheduler_run_before_forward(s, nullptr, &a.fences, &a.count);
    },
    [](Sched s, A& a) {
      return growpage_scheduler_run_after_forward(s, nullptr, &a.measured, &a.count);
    },
    [](Sched s, A& a) { return growpage_scheduler_complete(s, &a.result); },
    [](Sched s, A& a) { return growpage_scheduler_finished(s, &a.finished, &a.count, &a.stride); },
    [](Sched s, A& a) { return growpage_scheduler_state(s, a.id, a.ints); },
    [](Sched s, A& a) { return growpage_scheduler_text(s, a.id, &a.text, &a.count); },
    [](Sched s, A& a) { return growpage_scheduler_get_stats(s, &a.stats); },
    [](Sched s, A&) { return growpage_scheduler_check_invariants(s); },
    [](Sched s, A& a) {
      return growpage_scheduler_drain_decisions(s, nullptr, 0, &a.count, nullptr);
    },
};

const std::vector<std::function<growpage_status(Index, A&)>> index_calls = {
    [](Index x, A& a) { return growpage_prefix_index_lookup(x, &a.link, a.ints, a.ints, &a.link); },
    [](Index x, A& a) {
      return growpage_prefix_index_publish(x, 0, &a.link, a.ints, &a.link, a.ints);
    },
    [](Index x, A& a) { return growpage_prefix_index_withdraw(x, 0, &a.hash, a.ints); },
    [](Index x, A&) { return growpage_prefix_index_lru_push(x, 0); },
    [](Index x, A&) { return growpage_prefix_index_lru_remove(x, 0); },
    [](Index x, A& a) { return growpage_prefix_index_lru_oldest(x, a.ints); },
};

/// Null, nonsense, a handle of another type, and one that is gone.
template <class Handle, class Calls>
void refuse_all(const Calls& calls, void* other, Handle gone) {
  const std::vector<void*> wrong = {nullptr, reinterpret_cast<void*>(std::uintptr_t{0xdeadbeef}),
                                    reinterpret_cast<void*>(~std::uintptr_t{0}), other, gone};
  for (std::size_t call = 0; call < calls.size(); ++call) {
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      INFO("call " << call << ", handle " << i);
      Arguments arguments;
      CHECK(calls[call](static_cast<Handle>(wrong[i]), arguments) == GROWPAGE_INVALID_ARGUMENT);
    }
  }
}

growpage_cache* make_cache() {
  growpage_cache_options options;
  growpage_cache_options_init(&options, sizeof options);
  options.pages = 4;
  options.page_size = 16;
  growpage_cache* cache = nullptr;
  REQUIRE(growpage_cache_create(&options, nullptr, &cache) == GROWPAGE_OK);
  return cache;
}

}  // namespace

TEST_CASE("wrong handles are refused by every call", "[capi]") {
  growpage_cache* live = make_cache();
  growpage_cache* gone_cache = make_cache();
  REQUIRE(growpage_cache_destroy(gone_cache) == GROWPAGE_OK);
  growpage_policy* policy = nullptr;
  REQUIRE(growpage_policy_create("full", nullptr, &policy) == GROWPAGE_OK);
  growpage_policy* gone_policy = nullptr;
  REQUIRE(growpage_policy_create("full", nullptr, &gone_policy) == GROWPAGE_OK);
  REQUIRE(growpage_policy_destroy(gone_policy) == GROWPAGE_OK);
  growpage_scheduler* gone_scheduler = nullptr;
  REQUIRE(growpage_scheduler_create(live, policy, nullptr, nullptr, &gone_scheduler) ==
          GROWPAGE_OK);
  REQUIRE(growpage_scheduler_destroy(gone_scheduler) == GROWPAGE_OK);
  growpage_prefix_index* gone_index = nullptr;
  REQUIRE(growpage_prefix_index_create(4, 16, nullptr, &gone_index) == GROWPAGE_OK);
  REQUIRE(growpage_prefix_index_destroy(gone_index) == GROWPAGE_OK);

  refuse_all(cache_calls, policy, gone_cache);
  refuse_all(policy_calls, live, gone_policy);
  refuse_all(scheduler_calls, live, gone_scheduler);
  refuse_all(index_calls, live, gone_index);

  // Destroying nothing is fine, destroying twice is not.
  CHECK(growpage_cache_destroy(nullptr) == GROWPAGE_OK);
  CHECK(growpage_scheduler_destroy(nullptr) == GROWPAGE_OK);
  CHECK(growpage_policy_destroy(nullptr) == GROWPAGE_OK);
  CHECK(growpage_prefix_index_destroy(nullptr) == GROWPAGE_OK);
  CHECK(growpage_cache_destroy(gone_cache) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_scheduler_destroy(gone_scheduler) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_policy_destroy(gone_policy) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_prefix_index_destroy(gone_index) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_policy_destroy(policy) == GROWPAGE_OK);
  CHECK(growpage_cache_destroy(live) == GROWPAGE_OK);
}

TEST_CASE("a handle's place is used again, its value is not", "[capi]") {
  growpage_cache* first = make_cache();
  REQUIRE(growpage_cache_destroy(first) == GROWPAGE_OK);
  growpage_cache* second = make_cache();
  CHECK(first != second);
  CHECK(growpage_cache_check_invariants(first) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_cache_check_invariants(second) == GROWPAGE_OK);
  REQUIRE(growpage_cache_destroy(second) == GROWPAGE_OK);
}

TEST_CASE("thousands of handles live side by side", "[capi]") {
  std::vector<growpage_policy*> all(3000);
  for (auto& p : all) REQUIRE(growpage_policy_create("fixed", nullptr, &p) == GROWPAGE_OK);
  for (auto* p : all) REQUIRE(growpage_policy_destroy(p) == GROWPAGE_OK);
}

TEST_CASE("a cache outlives its schedulers", "[capi]") {
  const Engine engine;
  CHECK(growpage_cache_destroy(engine.cache) == GROWPAGE_PROTOCOL_ERROR);
}

TEST_CASE("a destroyed scheduler leaves the cache as it was", "[capi]") {
  const EngineOptions options;
  growpage_policy* policy = nullptr;
  REQUIRE(growpage_policy_create("growpage", nullptr, &policy) == GROWPAGE_OK);
  growpage_cache* cache = nullptr;
  {
    Engine engine(options, nullptr, policy);
    engine.submit_all();
    for (int i = 0; i < 100; ++i) REQUIRE(engine.step());
    // A plan that is open, with whatever it has begun.
    growpage_plan plan{};
    plan.struct_size = sizeof plan;
    REQUIRE(growpage_scheduler_schedule(engine.scheduler, &plan) == GROWPAGE_OK);
    cache = engine.cache;
    REQUIRE(growpage_scheduler_destroy(engine.scheduler) == GROWPAGE_OK);
    engine.scheduler = nullptr;
    growpage_cache_info info{};
    info.struct_size = sizeof info;
    REQUIRE(growpage_cache_get_info(cache, &info) == GROWPAGE_OK);
    CHECK(info.sequences == 0);
    CHECK(info.referenced_pages == 0);
    CHECK(info.in_flight_pages == 0);
    CHECK(growpage_cache_check_invariants(cache) == GROWPAGE_OK);
  }
  CHECK(growpage_cache_check_invariants(cache) == GROWPAGE_INVALID_ARGUMENT);
}

}  // namespace growpage::test
