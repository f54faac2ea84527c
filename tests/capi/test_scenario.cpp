// SPDX-License-Identifier: Apache-2.0
// examples/bindings/scenario.md through the C++ API and through the C API: the same decisions, and
// those that the bindings are compared with.
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "capi/engine.hpp"
#include "capi/scenario.hpp"
#include "growpage/growpage.hpp"
#include "support/catch.hpp"

namespace growpage::test {
namespace {

ScenarioResult run_cpp() {
  GrowPagePolicy policy;
  policy.capacity.initial_pages = 4;
  PagedKVCacheOptions config;
  config.shape = {scenario_layers, scenario_query_heads, scenario_kv_heads, scenario_dim, 0,
                  scenario_page};
  config.pages.pages = 24;
  config.dtype = DType::f32;
  config.summary.slots = scenario_slots;
  config.retention = policy.retention();
  auto cache = PagedKVCache<CpuBackend>::create(config, CpuBackend({}, CpuBackend::Isa::scalar));
  REQUIRE(cache.ok());
  SchedulerOptions options;
  options.max_running = options.summary_slots = scenario_slots;
  options.decision_capacity = 4096;
  auto scheduler =
      Scheduler<GrowPagePolicy, PagedKVCache<CpuBackend>>::create(*cache, policy, options);
  REQUIRE(scheduler.ok());
  for (std::int32_t tag = 0; tag < 6; ++tag) {
    const std::vector<TokenId> prompt = scenario_prompt(tag);
    RequestSpec spec;
    spec.tag = static_cast<std::uint64_t>(tag);
    spec.prompt = prompt;
    spec.max_new_tokens = 150;
    REQUIRE(scheduler->submit(spec).ok());
  }
  const auto forward = [&](TokenId token, std::int64_t position, std::int64_t slot,
                           SummaryEntry summary) {
    Projected p(token, position);
    for (std::int32_t l = 0; l < scenario_layers; ++l) {
      REQUIRE(cache->append_kv(l, {&slot, 1}, p.keys(l), p.values(l)).ok());
    }
    if (summary.slot < 0) return;
    REQUIRE(cache->update_summaries({&summary, 1}, {p.q.data()}, 0, scenario_layers).ok());
  };
  while (!scheduler->idle()) {
    const auto planned = scheduler->schedule();
    REQUIRE(planned.ok());
    const StepPlan& plan = **planned;
    std::vector<FenceId> fences;
    std::vector<MeasuredDemand> demand;
    std::vector<SampledToken> tokens;
    REQUIRE(run_before_forward(*cache, plan, fences).ok());
    for (const PrefillChunk& chunk : plan.prefills) {
      const auto text = *scheduler->text(chunk.request);
      for (std::int32_t i = 0; i < chunk.tokens; ++i) {
        const std::int64_t position = chunk.first_position + i;
        forward(text[static_cast<std::size_t>(position)], position,
                cache->physical_slot(chunk.sequence, chunk.first_slot + i),
                {i + 1 == chunk.tokens ? chunk.summary.value : -1, 1});
      }
      const std::int64_t end = chunk.first_position + chunk.tokens - 1;
      if (!chunk.last) continue;
      tokens.push_back({chunk.request, next_token(text[static_cast<std::size_t>(end)], end)});
    }
    for (const DecodeItem& item : plan.decodes) {
      forward(item.token, item.position, item.slot,
              {item.summary.value, item.summary_first ? 1 : 0});
      tokens.push_back({item.request, next_token(item.token, item.position)});
    }
    REQUIRE(run_after_forward(*cache, plan, demand).ok());
    REQUIRE(scheduler->complete({tokens, demand, fences, {}}).ok());
  }
  const Counters& c = scheduler->counters();
  ScenarioResult r{c.decode_tokens, c.steps, c.grow, c.compact, 0, 0, 0};
  std::string text;
  for (DecisionRecord record; scheduler->decisions().pop(record); ++r.entries) {
    append_jsonl(text, record);
  }
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  r.hash_low = hash.low64;
  r.hash_high = hash.high64;
  return r;
}

ScenarioResult run_c() {
  const Engine engine;
  engine.submit_all();
  while (engine.step()) {
  }
  const growpage_stats stats = engine.stats();
  std::vector<growpage_decision> decisions(4096);
  std::size_t count = 0;
  std::int64_t dropped = -1;
  REQUIRE(growpage_scheduler_drain_decisions(engine.scheduler, decisions.data(), decisions.size(),
                                             &count, &dropped) == GROWPAGE_OK);
  CHECK(dropped == 0);
  growpage_hash hash{};
  REQUIRE(growpage_decision_log_hash(decisions.data(), count, &hash) == GROWPAGE_OK);
  return {stats.decode_tokens, stats.steps, stats.grow, stats.compact, count, hash.low, hash.high};
}

}  // namespace

TEST_CASE("the scenario gives the same decisions through C++ and through C", "[capi]") {
  const ScenarioResult cpp = run_cpp();
  const ScenarioResult c = run_c();
  CHECK(scenario_text(c) == scenario_text(cpp));
  CHECK(cpp.tokens == 6 * 150);
  CHECK(cpp.grow > 0);
  CHECK(cpp.compact > 0);
  std::ifstream file(GROWPAGE_SCENARIO_EXPECTED);
  std::stringstream expected;
  expected << file.rdbuf();
  CHECK(scenario_text(cpp) == expected.str());
}

}  // namespace growpage::test
