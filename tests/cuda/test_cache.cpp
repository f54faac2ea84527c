// SPDX-License-Identifier: Apache-2.0
// A whole cache on the CUDA backend, served by the scheduler beside the same cache on the CPU: both
// must decide alike and attend alike.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/cpu_backends.hpp"
#include "backend/scene.hpp"
#include "growpage/backend/cuda.hpp"
#include "growpage/cache/batch_tables.hpp"
#include "growpage/cache/paged_kv_cache.hpp"
#include "growpage/detail/splitmix.hpp"
#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/execute.hpp"
#include "growpage/schedule/scheduler.hpp"
#include "support/catch.hpp"

namespace growpage::test {
namespace {

/// Fixed vectors of (token, position, role): the "model".
std::vector<float> project(TokenId token, std::int64_t position, int role, std::int32_t size) {
  std::vector<float> out;
  for (std::int32_t i = 0; i < size; ++i) {
    const auto key = static_cast<std::uint64_t>(((position * 64 + role) * 4096 + token) * 512 + i);
    out.push_back(static_cast<float>(4.0 * detail::unit_interval(detail::splitmix64(key)) - 2.0));
  }
  return out;
}

/// What two backends must agree on.
struct Outcome {
  std::string decisions;        // JSONL without the measured numbers
  std::vector<double> deltas;   // of the measured decisions
  std::vector<float> attended;  // outputs of attention, in order
  Counters counters;
};

/// One token at a time through a one-layer model on a backend.
template <KvBackend B>
class Engine {
 public:
  using Cache = PagedKVCache<B>;

  Engine(const PagedKVCacheOptions& options, const AnyPolicy& policy, const SchedulerOptions& how)
      : cache_(std::move(Cache::create(options)).value()),
        scheduler_(Scheduler<AnyPolicy, Cache>::create(cache_, policy, how).value()) {}

  Outcome serve(std::int32_t requests, std::int64_t output) {
    for (std::int32_t r = 0; r < requests; ++r) {
      const std::vector<TokenId> prompt(static_cast<std::size_t>(18 + 5 * r), r + 1);
      RequestSpec spec;
      spec.tag = static_cast<std::uint64_t>(r);
      spec.prompt = prompt;
      spec.max_new_tokens = output;
      REQUIRE(scheduler_.submit(spec).ok());
    }
    while (!scheduler_.idle()) step();
    cache_.clear_prefix_cache();
    CHECK(cache_.counts().free == cache_.counts().total);
    CHECK(cache_.check_invariants().ok());
    outcome_.counters = scheduler_.counters();
    return outcome_;
  }

 private:
  void step() {
    const auto planned = scheduler_.schedule();
    REQUIRE(planned.ok());
    const StepPlan& plan = **planned;
    std::vector<FenceId> fences;
    std::vector<MeasuredDemand> demand;
    std::vector<SampledToken> tokens;
    const Status before = run_before_forward(cache_, plan, fences);
    INFO(before.message());
    REQUIRE(before.ok());
    for (const PrefillChunk& chunk : plan.prefills) {
      const auto text = *scheduler_.text(chunk.request);
      for (std::int32_t i = 0; i < chunk.tokens; ++i) {
        const std::int64_t position = chunk.first_position + i;
        const bool starts = chunk.summary.valid() && i + 1 == chunk.tokens;
        forward(chunk.sequence, text[static_cast<std::size_t>(position)], position,
                chunk.first_slot + i, {starts ? chunk.summary.value : -1, 1});
      }
      if (chunk.last) tokens.push_back({chunk.request, 7});
    }
    for (const DecodeItem& item : plan.decodes) {
      forward(item.sequence, item.token, item.position, item.kv_length - 1,
              {item.summary.value, item.summary_first ? 1 : 0});
      tokens.push_back({item.request, static_cast<TokenId>(7 + item.position % 31)});
    }
    REQUIRE(run_after_forward(cache_, plan, demand).ok());
    REQUIRE(scheduler_.complete({tokens, demand, fences, {}}).ok());
    REQUIRE(scheduler_.check_invariants().ok());
    DecisionRecord record;
    while (scheduler_.decisions().pop(record)) {
      if (record.measured) outcome_.deltas.push_back(record.delta);
      record.delta = record.short_ratio = record.long_ratio = 0;
      append_jsonl(outcome_.decisions, record);
    }
  }

  void forward(SequenceId id, TokenId token, std::int64_t position, std::int32_t slot,
               SummaryEntry summary) {
    B& device = cache_.backend();
    const CacheShape& s = cache_.shape();
    DeviceArray<B, float> q(device, project(token, position, 0, s.query_heads * s.head_dim));
    DeviceArray<B, float> k(device, project(token, position, 1, s.kv_heads * s.head_dim));
    DeviceArray<B, float> v(device, project(token, position, 2, s.kv_heads * s.head_dim));
    DeviceArray<B, std::int64_t> mapping(device, {cache_.physical_slot(id, slot)});
    REQUIRE(cache_.append_kv(0, {mapping.get(), 1}, k.get(), v.get()).ok());
    if (summary.slot >= 0) REQUIRE(cache_.update_summaries({&summary, 1}, {q.get()}, 0, 1).ok());
    if (position % 9 != 0) return;  // attention now and then
    const std::int64_t stride = *padded_stride(cache_, {&id, 1});
    std::vector<std::int32_t> table(static_cast<std::size_t>(stride));
    REQUIRE(fill_padded_tables(cache_, {&id, 1}, {table, stride, 0, {}}).ok());
    DeviceArray<B, std::int32_t> blocks(device, table), length(device, {slot + 1});
    DeviceArray<B, float> out(
        device, std::vector<float>(static_cast<std::size_t>(s.query_heads * s.v_dim())));
    REQUIRE(cache_
                .attention(0, {blocks.get(), table.size()}, stride, {length.get(), 1}, q.get(),
                           out.get())
                .ok());
    for (const float x : out.download()) outcome_.attended.push_back(x);
  }

  Cache cache_;
  Scheduler<AnyPolicy, Cache> scheduler_;
  Outcome outcome_;
};

/// What `cpu` did, once it is known that the CUDA backend did the same.
Counters check_alike(const PagedKVCacheOptions& options, const AnyPolicy& policy,
                     const SchedulerOptions& how) {
  const Outcome cpu = Engine<ScalarCpu>(options, policy, how).serve(4, 60);
  const Outcome cuda = Engine<CudaBackend>(options, policy, how).serve(4, 60);
  CHECK(cuda.decisions == cpu.decisions);
  REQUIRE(cuda.deltas.size() == cpu.deltas.size());
  for (std::size_t i = 0; i < cpu.deltas.size(); ++i) {
    REQUIRE(cuda.deltas[i] == Approx(cpu.deltas[i]).margin(1e-6));
  }
  REQUIRE(cuda.attended.size() == cpu.attended.size());
  for (std::size_t i = 0; i < cpu.attended.size(); ++i) {
    REQUIRE(cuda.attended[i] == Approx(cpu.attended[i]).margin(1e-4));
  }
  return cpu.counters;
}

PagedKVCacheOptions small_cache() {
  PagedKVCacheOptions options;
  options.shape = {1, 4, 2, 16, 0, 16};
  options.pages.pages = 7;
  options.pages.max_sequences = 8;
  options.pages.max_pages_per_sequence = 8;
  options.dtype = DType::f32;
  options.summary.beta_long = 0.999F;  // so slow that some of these few decisions are growths
  options.summary.slots = 4;
  options.retention.recent = 4;
  options.score_buffers = 2;
  return options;
}

TEST_CASE("cuda: a cache decides and attends as on the CPU", "[cuda]") {
  PagedKVCacheOptions options = small_cache();
  SchedulerOptions how;
  how.summary_slots = 4;
  how.max_running = 4;
  how.overcommit = true;
  GrowPagePolicy growing;
  growing.capacity.initial_pages = 2;
  growing.retention_options.recent = 4;
  SECTION("growpage") {
    const Counters done = check_alike(options, AnyPolicy(growing), how);
    CHECK(done.grow > 0);
    CHECK(done.compact > 0);
  }
  SECTION("growpage with decayed scores, compacting in order") {
    growing.retention_options.global_decay = 0.8F;
    growing.retention_options.strategy = CompactionStrategy::in_order;
    options.retention = growing.retention();
    CHECK(check_alike(options, AnyPolicy(growing), how).compact > 0);
  }
  SECTION("full, recomputed after preemption") {
    CHECK(check_alike(options, AnyPolicy(FullPolicy{}), how).preempt > 0);
  }
  SECTION("full, swapped") {
    how.preemption = Preemption::swap;
    options.pages.host_pages = 12;
    CHECK(check_alike(options, AnyPolicy(FullPolicy{}), how).preempt > 0);
  }
}

}  // namespace
}  // namespace growpage::test
