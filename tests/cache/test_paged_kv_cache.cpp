// SPDX-License-Identifier: Apache-2.0
// PagedKVCache and Scheduler together: a tiny model with real tensors, every row, every attention
// output, every demand and every compaction compared with the double-precision reference.
#include <optional>
#include <string>

#include "support/catch.hpp"
#include "support/tiny_engine.hpp"

namespace growpage::test {
namespace {

enum class Memory { library_hnd, library_nhd, padded, per_layer, k_only };

struct Served {
  Served(PagedKVCacheOptions options, const AnyPolicy& policy, SchedulerOptions scheduling,
         Memory memory)
      : k(options.shape, static_cast<std::int32_t>(options.pages.pages), options.shape.head_dim,
          options.dtype, arrangement(memory)),
        v(options.shape, static_cast<std::int32_t>(options.pages.pages), options.shape.v_dim(),
          options.dtype, arrangement(memory)),
        cache(CpuCache::create(with_memory(options, memory)).value()),
        scheduler(TinyEngine::EngineScheduler::create(cache, policy, scheduling).value()),
        engine(cache, scheduler) {}
  static Arrangement arrangement(Memory memory) {
    return memory == Memory::padded      ? Arrangement::padded
           : memory == Memory::per_layer ? Arrangement::per_layer
                                         : Arrangement::hnd;
  }
  PagedKVCacheOptions with_memory(PagedKVCacheOptions options, Memory memory) {
    options.layout = memory == Memory::library_nhd ? PageLayout::nhd : PageLayout::hnd;
    if (memory == Memory::padded || memory == Memory::per_layer) options.kv = {k.view(), v.view()};
    if (memory == Memory::k_only) options.kv = {k.view(), {}};
    return options;
  }
  static SchedulerOptions few() {
    SchedulerOptions options;
    options.max_batched_tokens = 48;
    options.max_running = 8;
    options.summary_slots = 8;
    return options;
  }
  std::vector<TokenId> prompt(std::uint64_t family, std::int32_t length) {
    std::vector<TokenId> tokens;
    for (std::int32_t i = 0; i < length; ++i) {
      tokens.push_back(static_cast<TokenId>(
          detail::splitmix64(family * 7919 + static_cast<std::uint64_t>(i)) % 500));
    }
    return tokens;
  }

  CacheTensor k, v;
  CpuCache cache;
  TinyEngine::EngineScheduler scheduler;
  TinyEngine engine;
};

TEST_CASE("every dtype in every memory, growing and compacting by measured demand") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const Memory memory = GENERATE(Memory::library_hnd, Memory::library_nhd, Memory::padded,
                                 Memory::per_layer, Memory::k_only);
  PagedKVCacheOptions options = tiny_options();
  options.dtype = dtype;
  GrowPagePolicy policy;
  policy.capacity.initial_pages = 3;
  policy.retention_options = options.retention;
  Served served(options, AnyPolicy(policy), Served::few(), memory);
  served.engine.submit(1, served.prompt(1, 37), 70);
  served.engine.submit(2, served.prompt(1, 50), 40);  // shares two pages
  served.engine.submit(3, served.prompt(2, 5), 50);
  served.engine.run(400);
  CHECK(served.engine.compactions() > 0);
  CHECK(served.engine.demands() > 0);
  CHECK(served.scheduler.counters().finished == 3);
}

TEST_CASE("in order, shrinking, sinks, and shared pages copied") {
  PagedKVCacheOptions options = tiny_options();
  options.retention.strategy =
      GENERATE(CompactionStrategy::fill_holes, CompactionStrategy::in_order);
  options.retention.shared = GENERATE(SharedPages::keep, SharedPages::copy);
  options.retention.sinks = GENERATE(0, 3);
  ShrinkPolicy policy;
  policy.low = 0;
  policy.min_tokens = 32;
  policy.capacity.initial_pages = 4;
  policy.retention_options = options.retention;
  Served served(options, AnyPolicy(policy), Served::few(), Memory::library_hnd);
  served.engine.submit(1, served.prompt(1, 37), 80);
  served.engine.step();
  served.engine.submit(2, served.prompt(1, 45), 60);
  served.engine.run(400);
  CHECK(served.engine.compactions() > 0);
}

TEST_CASE("early demand: scores from before the last tokens still rank the rows") {
  PagedKVCacheOptions options = tiny_options();
  options.retention.recent = 8;
  GrowPagePolicy policy;
  policy.threshold = 10;  // never grows
  policy.capacity.initial_pages = 3;
  policy.retention_options = options.retention;
  SchedulerOptions scheduling = Served::few();
  scheduling.early_slots = 3;
  Served served(options, AnyPolicy(policy), scheduling, Memory::library_hnd);
  served.engine.submit(1, served.prompt(1, 20), 31);  // one boundary, at 48
  std::int64_t read = 0;
  while (!served.scheduler.idle()) {
    const std::int64_t before = served.cache.k_bytes_read();
    const StepPlan& plan = served.engine.step();
    const std::int64_t now = served.cache.k_bytes_read() - before;
    if (!plan.demand.empty()) CHECK(now == 2 * 2 * 45 * 16 * 4);
    if (!plan.compactions.empty()) CHECK(now == 0);
    read += now;
  }
  CHECK(read == 2 * 2 * 45 * 16 * 4);  // K is read once per boundary
}

TEST_CASE("full policy: attention is bit for bit that over unpaged memory") {
  PagedKVCacheOptions options = tiny_options(9);  // shared, preempted, out of order
  options.pages.host_pages = 16;
  options.dtype = GENERATE(DType::f32, DType::bf16);
  SchedulerOptions scheduling = Served::few();
  scheduling.preemption = Preemption::swap;
  Served served(options, AnyPolicy(FullPolicy{}), scheduling, Memory::library_hnd);
  served.engine.submit(1, served.prompt(1, 40), 55);
  served.engine.submit(2, served.prompt(1, 33), 60);
  served.engine.submit(3, served.prompt(2, 10), 50);

  PagedKVCacheOptions flat_options = options;
  flat_options.pages.pages = 12;
  auto flat = CpuCache::create(flat_options).value();
  const TinyModel unpaged(flat);
  const TinyModel paged(served.cache);
  std::int64_t compared = 0;
  while (!served.scheduler.idle()) {
    const StepPlan& plan = served.engine.step();
    if (plan.step % 7 != 0) continue;
    for (const DecodeItem& item : plan.decodes) {
      if (!served.cache.alive(item.sequence)) continue;  // finished
      const auto text = served.scheduler.text(item.request).value();
      const SequenceId id = flat.admit({}).value().sequence;
      std::vector<PageCopy> copies;
      REQUIRE(flat.reserve(id, item.kv_length).ok());
      REQUIRE(flat.append(id, item.kv_length, nullptr, copies).ok());
      unpaged.append(id, text.first(static_cast<std::size_t>(item.kv_length)), 0, 0);
      for (std::int32_t l = 0; l < 2; ++l) {
        CHECK(paged.attention(item.sequence, l, item.token, item.position, item.kv_length) ==
              unpaged.attention(id, l, item.token, item.position, item.kv_length));
        ++compared;
      }
      REQUIRE(flat.release(id).ok());
    }
  }
  CHECK(compared > 10);
  CHECK(served.scheduler.counters().swap_in > 0);
  CHECK(served.scheduler.counters().prefix_hit_tokens >= 0);
}

TEST_CASE("recompute after compaction, with real rows") {
  PagedKVCacheOptions options = tiny_options(7);
  RandomPolicy policy;
  policy.compact_probability = 0.5;
  policy.seed = 3;
  policy.capacity.initial_pages = 2;
  policy.retention_options = options.retention;
  SchedulerOptions scheduling = Served::few();
  scheduling.max_batched_tokens = 10;
  Served served(options, AnyPolicy(policy), scheduling, Memory::library_hnd);
  for (std::uint64_t tag = 1; tag <= 5; ++tag) {
    served.engine.submit(tag, served.prompt(tag, 12 + 6 * static_cast<std::int32_t>(tag)), 60);
  }
  served.engine.run(4000);
  CHECK(served.engine.compactions() > 5);
}

TEST_CASE("more boundaries in one step than score buffers give the same result") {
  std::vector<std::vector<std::int64_t>> kept[2];
  std::int64_t read[2] = {0, 0};
  for (const int few : {0, 1}) {
    PagedKVCacheOptions options = tiny_options();
    options.score_buffers = few == 1 ? 1 : 8;
    GrowPagePolicy policy;
    policy.threshold = 10;
    policy.capacity.initial_pages = 3;
    policy.retention_options = options.retention;
    Served served(options, AnyPolicy(policy), Served::few(), Memory::library_hnd);
    std::vector<RequestId> ids;
    for (std::uint64_t tag = 1; tag <= 3; ++tag) {
      ids.push_back(served.engine.submit(tag, served.prompt(tag, 14), 40));
    }
    const TinyModel model(served.cache);
    while (served.engine.compactions() < 3) {
      for (const CompactionItem& item : served.engine.step().compactions) {
        const TinySequence& sequence = served.engine.at(item.request, item.ticket.sequence);
        for (std::int32_t h = 0; h < 2; ++h) kept[few].push_back(sequence.positions(model, 1, h));
      }
    }
    read[few] = served.cache.k_bytes_read();
    served.engine.run(200);
  }
  CHECK(kept[0] == kept[1]);
  CHECK(read[0] == 3 * (2 * 2 * 48 * 16 * 4));
  CHECK(read[1] == 6 * (2 * 2 * 48 * 16 * 4));  // each one's scores are gone when it is compacted
}

TEST_CASE("a request aborted between schedule() and the launches is skipped, its fence reported") {
  PagedKVCacheOptions options = tiny_options();
  GrowPagePolicy policy;
  policy.threshold = 10;
  policy.capacity.initial_pages = 3;
  policy.retention_options = options.retention;
  Served served(options, AnyPolicy(policy), Served::few(), Memory::library_hnd);
  const bool at_demand = GENERATE(true, false);
  const RequestId id = served.engine.submit(1, served.prompt(1, 14), 60);
  while (served.engine.demands() < (at_demand ? 0 : 1) ||
         (at_demand && served.scheduler.text(id)->size() < 48)) {
    served.engine.step();
  }
  const StepPlan& plan = **served.scheduler.schedule();
  REQUIRE(plan.demand.size() == (at_demand ? 1 : 0));
  REQUIRE(plan.compactions.size() == (at_demand ? 0 : 1));
  REQUIRE(served.scheduler.abort(id).ok());
  std::vector<FenceId> fences;
  std::vector<MeasuredDemand> demand;
  CHECK(run_before_forward(served.cache, plan, fences).ok());
  CHECK(run_after_forward(served.cache, plan, demand).ok());
  CHECK(fences.size() == plan.compactions.size());
  CHECK(demand.empty());
  CHECK(served.scheduler.complete({{}, demand, fences, {}}).ok());
  served.engine.run(1);
}

}  // namespace
}  // namespace growpage::test
