// SPDX-License-Identifier: Apache-2.0
// A whole capacity-boundary event and where its time goes. The floor: K read once, and the rows
// that have to move copied. `share` is of the floor; counters ending in _ms are of the stages.
#include "examples/runtime/thread_pool.hpp"
#include "retention/event.hpp"
#include "retention/plain_event.hpp"
#include "support/floors.hpp"

namespace growpage::bench {
namespace {

struct Stages {
  explicit Stages(std::int32_t workers) : threads(workers) {}
  std::int32_t threads;
  std::vector<double> pass, select, plan, compact;
};

/// One event of each of `requests` requests.
double run(Event& event, std::int32_t requests, Stages& stages) {
  double at[5] = {};
  double part[4] = {};
  for (std::int32_t r = 0; r < requests; ++r) {
    at[0] = now(stages.threads);
    event.pass();
    at[1] = now(stages.threads);
    event.select();
    at[2] = now(stages.threads);
    event.plan();
    at[3] = now(stages.threads);
    event.compact();
    at[4] = now(stages.threads);
    for (int i = 0; i < 4; ++i) part[i] += (at[i + 1] - at[i]) / requests;
    event.next_request();
  }
  stages.pass.push_back(part[0]);
  stages.select.push_back(part[1]);
  stages.plan.push_back(part[2]);
  stages.compact.push_back(part[3]);
  return part[0] + part[1] + part[2] + part[3];
}

void measure_event(benchmark::State& state, const SceneOptions& options, std::int32_t threads,
                   CpuBackend::Isa isa, CompactionStrategy strategy) {
  runtime::ThreadPool pool(threads);
  CpuBackend backend(pool.executor(), isa);
  Scene scene(backend, options);
  Event event(backend, scene, strategy);
  Floors floors(pool.executor());
  event.run_checked();
  const Traffic traffic{.read = scene.k_bytes(), .copied = event.moved_bytes()};
  const std::int32_t requests = std::min(options.requests, 32);
  Stages stages(threads);
  measure_kernel(state, floors, traffic, [&] { return run(event, requests, stages); });
  state.counters["pass_ms"] = median(stages.pass) * 1e3;
  state.counters["select_ms"] = median(stages.select) * 1e3;
  state.counters["plan_ms"] = median(stages.plan) * 1e3;
  state.counters["compact_ms"] = median(stages.compact) * 1e3;
  const double total = state.counters["ns"].value;
  state.counters["select_share"] = median(stages.select) * 1e9 / total;
  state.counters["plan_share"] = median(stages.plan) * 1e9 / total;
  state.counters["compact_share"] = median(stages.compact) * 1e9 / total;
  state.counters["moved_MB"] = traffic.copied / 1e6;
  state.counters["layer_ns"] = total / options.shape.layers;
  state.counters["head_ns"] = total / static_cast<double>(scene.heads());
  state.SetLabel(backend.name());
}

SceneOptions options_of(benchmark::State& state, const CacheShape& shape) {
  return {.shape = shape,
          .dtype = static_cast<DType>(state.range(0)),
          .layout = static_cast<PageLayout>(state.range(1))};
}

void qwen(benchmark::State& state) {
  measure_event(state, options_of(state, qwen3_8b(8)), static_cast<std::int32_t>(state.range(2)),
                CpuBackend::Isa::simd, static_cast<CompactionStrategy>(state.range(3)));
}

/// The scalar form, on half the layers: it takes long enough.
void qwen_scalar(benchmark::State& state) {
  measure_event(state, {.shape = qwen3_8b(4)}, 1, CpuBackend::Isa::scalar,
                CompactionStrategy::fill_holes);
}

/// Plain loops and the standard library.
void qwen_plain(benchmark::State& state) {
  CpuBackend backend;
  const CacheShape shape = qwen3_8b(4);
  Scene scene(backend, {.shape = shape});
  PlainEvent event(scene);
  measure(state, 1, [&] { return seconds_of([&] { event.run(); }); });
  check(event.demand() > 0 && event.demand() < 1);
  state.counters["layer_ns"] = state.counters["ns"] / shape.layers;
}

void small(benchmark::State& state) {
  SceneOptions options = options_of(state, small_model());
  options.pages = 4;
  options.requests = 64;
  measure_event(state, options, 1, CpuBackend::Isa::simd, CompactionStrategy::fill_holes);
}

/// The same pool cut into fewer, longer requests.
void slots(benchmark::State& state) {
  SceneOptions options{.shape = qwen3_8b(2)};
  options.pages = static_cast<std::int32_t>(state.range(0)) / options.shape.page_size;
  options.requests = 64 / options.pages;
  measure_event(state, options, 1, CpuBackend::Isa::simd, CompactionStrategy::fill_holes);
}

/// One thread beside two, on the same data in turns. Counter `speedup`.
void threads(benchmark::State& state) {
  runtime::ThreadPool pool(2);
  CpuBackend one({}, CpuBackend::Isa::simd);
  CpuBackend two(pool.executor(), CpuBackend::Isa::simd);
  Scene scene(one, {.shape = qwen3_8b(8)});
  Event alone(one, scene, CompactionStrategy::fill_holes);
  Event shared(two, scene, CompactionStrategy::fill_holes);
  alone.run_checked();
  shared.run_checked();
  Stages stages(2);  // for both the wall clock
  measure(
      state, 1, [&] { return run(shared, 1, stages); }, [&] { return run(alone, 1, stages); },
      "speedup");
}

void qwen_cases(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"dtype", "nhd", "threads", "in_order"});
  for (const int dtype : {0, 1, 2}) {
    for (const int nhd : {0, 1}) bench->Args({dtype, nhd, 1, 0});
  }
  bench->Args({2, 0, 1, 1})->Args({2, 1, 1, 1})->Args({1, 0, 2, 0})->Args({2, 0, 2, 0});
  bench->Unit(benchmark::kMillisecond)->Apply(in_rounds);
}

BENCHMARK(qwen)->Name("retention/event/qwen3_8b")->Apply(qwen_cases);
BENCHMARK(qwen_scalar)
    ->Name("retention/event/qwen3_8b_scalar")
    ->Unit(benchmark::kMillisecond)
    ->Apply(in_rounds);
BENCHMARK(qwen_plain)
    ->Name("retention/event/qwen3_8b_plain_loops")
    ->Unit(benchmark::kMillisecond)
    ->Apply(in_rounds);
BENCHMARK(small)
    ->Name("retention/event/small")
    ->ArgNames({"dtype", "nhd"})
    ->ArgsProduct({{0, 1, 2}, {0, 1}})
    ->Apply(in_rounds);
BENCHMARK(slots)
    ->Name("retention/event/slots")
    ->ArgName("slots")
    ->RangeMultiplier(2)
    ->Range(1024, 16384)
    ->Apply(in_rounds);
BENCHMARK(threads)->Name("retention/event/two_threads")->Apply(in_rounds);

}  // namespace
}  // namespace growpage::bench
