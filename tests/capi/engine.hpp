// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "capi/scenario.hpp"
#include "growpage/growpage.h"
#include "support/catch.hpp"

namespace growpage::test {

/// The cache options of the scenario.
struct EngineOptions {
  growpage_summary_options summary{};
  growpage_retention_options retention{};
  growpage_cache_options cache{};
  growpage_scheduler_options scheduler{};

  EngineOptions() {
    growpage_summary_options_init(&summary, sizeof summary);
    growpage_retention_options_init(&retention, sizeof retention);
    growpage_cache_options_init(&cache, sizeof cache);
    growpage_scheduler_options_init(&scheduler, sizeof scheduler);
    summary.slots = scenario_slots;
    cache.backend = GROWPAGE_BACKEND_CPU;
    cache.isa = GROWPAGE_ISA_SCALAR;
    cache.layers = scenario_layers;
    cache.query_heads = scenario_query_heads;
    cache.kv_heads = scenario_kv_heads;
    cache.head_dim = scenario_dim;
    cache.page_size = scenario_page;
    cache.pages = 24;
    cache.dtype = GROWPAGE_F32;
    cache.summary = &summary;
    cache.retention = &retention;
    scheduler.max_running = scenario_slots;
    scheduler.summary_slots = scenario_slots;
    scheduler.decision_capacity = 4096;
  }
  EngineOptions(const EngineOptions&) = delete;
  EngineOptions& operator=(const EngineOptions&) = delete;
};

/// An engine in terms of the C API: policy, cache and scheduler of the scenario.
struct Engine {
  growpage_policy* policy = nullptr;
  growpage_cache* cache = nullptr;
  growpage_scheduler* scheduler = nullptr;

  explicit Engine(const EngineOptions& options = EngineOptions(),
                  const growpage_hooks* hooks = nullptr, growpage_policy* own = nullptr)
      : policy(own) {
    if (policy == nullptr) {
      REQUIRE(growpage_policy_create("growpage", hooks, &policy) == GROWPAGE_OK);
      REQUIRE(growpage_policy_set_int(policy, "initial_pages", 4) == GROWPAGE_OK);
    }
    REQUIRE(growpage_cache_create(&options.cache, hooks, &cache) == GROWPAGE_OK);
    REQUIRE(growpage_scheduler_create(cache, policy, &options.scheduler, hooks, &scheduler) ==
            GROWPAGE_OK);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() {
    (void)growpage_scheduler_destroy(scheduler);
    (void)growpage_cache_destroy(cache);
    (void)growpage_policy_destroy(policy);
  }

  std::uint64_t submit(std::int32_t tag, std::int64_t max_new_tokens = 150) const {
    const std::vector<std::int32_t> prompt = scenario_prompt(tag);
    growpage_request request;
    growpage_request_init(&request, sizeof request);
    request.tag = static_cast<std::uint64_t>(tag);
    request.prompt = prompt.data();
    request.prompt_tokens = prompt.size();
    request.max_new_tokens = max_new_tokens;
    std::uint64_t id = 0;
    REQUIRE(growpage_scheduler_submit(scheduler, &request, &id) == GROWPAGE_OK);
    return id;
  }
  void submit_all() const {
    for (std::int32_t tag = 0; tag < 6; ++tag) (void)submit(tag);
  }

  [[nodiscard]] growpage_stats stats() const {
    growpage_stats stats{};
    stats.struct_size = sizeof stats;
    REQUIRE(growpage_scheduler_get_stats(scheduler, &stats) == GROWPAGE_OK);
    return stats;
  }

  void forward(std::int32_t token, std::int64_t position, std::int64_t slot, std::int32_t summary,
               std::int32_t first) const {
    Projected p(token, position);
    for (std::int32_t l = 0; l < scenario_layers; ++l) {
      REQUIRE(growpage_cache_append_kv(cache, l, &slot, 1, p.keys(l), p.values(l), nullptr) ==
              GROWPAGE_OK);
    }
    if (summary < 0) return;
    const growpage_summary_entry entry = {summary, first};
    growpage_tensor queries;
    growpage_tensor_init(&queries, sizeof queries);
    queries.data = p.q.data();
    queries.ndim = 4;
    const std::int64_t shape[] = {scenario_layers, 1, scenario_query_heads, scenario_dim};
    for (int i = 0; i < 4; ++i) queries.shape[i] = shape[i];
    REQUIRE(growpage_cache_update_summaries(cache, &entry, 1, &queries, 0, scenario_layers,
                                            nullptr) == GROWPAGE_OK);
  }

  /// One step of the loop; false when there is nothing left to do.
  bool step() const {
    if (stats().idle != 0) return false;
    growpage_plan plan{};
    plan.struct_size = sizeof plan;
    REQUIRE(growpage_scheduler_schedule(scheduler, &plan) == GROWPAGE_OK);
    growpage_step_result result;
    growpage_step_result_init(&result, sizeof result);
    REQUIRE(growpage_scheduler_run_before_forward(scheduler, nullptr, &result.fences,
                                                  &result.fence_count) == GROWPAGE_OK);
    std::vector<growpage_sampled_token> tokens;
    for (std::size_t n = 0; n < plan.prefill_count; ++n) {
      const growpage_prefill& chunk = plan.prefills[n];
      const std::int32_t* text = nullptr;
      std::size_t length = 0;
      REQUIRE(growpage_scheduler_text(scheduler, chunk.request, &text, &length) == GROWPAGE_OK);
      for (std::int32_t i = 0; i < chunk.tokens; ++i) {
        std::int64_t slot = 0;
        REQUIRE(growpage_cache_physical_slot(cache, chunk.sequence, chunk.first_slot + i, &slot) ==
                GROWPAGE_OK);
        forward(text[chunk.first_position + i], chunk.first_position + i, slot,
                i + 1 == chunk.tokens ? chunk.summary : -1, 1);
      }
      const std::int64_t end = chunk.first_position + chunk.tokens - 1;
      if (chunk.last != 0) tokens.push_back({chunk.request, next_token(text[end], end), 0, {}});
    }
    for (std::size_t n = 0; n < plan.decode_count; ++n) {
      const growpage_decode& d = plan.decodes[n];
      forward(d.token, d.position, d.slot, d.summary, d.summary_first);
      tokens.push_back({d.request, next_token(d.token, d.position), 0, {}});
    }
    REQUIRE(growpage_scheduler_run_after_forward(scheduler, nullptr, &result.demand,
                                                 &result.demand_count) == GROWPAGE_OK);
    result.tokens = tokens.data();
    result.token_count = tokens.size();
    REQUIRE(growpage_scheduler_complete(scheduler, &result) == GROWPAGE_OK);
    return true;
  }
};

}  // namespace growpage::test
