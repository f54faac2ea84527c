// SPDX-License-Identifier: Apache-2.0
// What the machine's memory can do, by itself; the other benchmarks measure it again around every
// round. And whether two threads here are two: what a speed-up has to be judged by.
#include "examples/runtime/thread_pool.hpp"
#include "support/check.hpp"
#include "support/floors.hpp"

namespace growpage::bench {
namespace {

constexpr double window = Floors::window;

void bandwidth(benchmark::State& state, double (Floors::*probe)(double)) {
  runtime::ThreadPool pool(static_cast<std::int32_t>(state.range(0)));
  Floors floors(pool.executor());
  measure(state, 1, [&] { return (floors.*probe)(window); });
  state.counters["GBps"] = window / state.counters["ns"];
}
void read(benchmark::State& state) { bandwidth(state, &Floors::read); }
void copy(benchmark::State& state) { bandwidth(state, &Floors::copy); }
void copy_past_cache(benchmark::State& state) { bandwidth(state, &Floors::copy_past_cache); }
void gather(benchmark::State& state) { bandwidth(state, &Floors::gather); }
void rewrite(benchmark::State& state) { bandwidth(state, &Floors::rewrite); }

/// Multiplications that depend on each other: no memory, no shared unit.
double compute(std::int64_t steps) {
  double x = 1.0000001;
  for (std::int64_t i = 0; i < steps; ++i) {
    x *= 1.0000001;
    benchmark::DoNotOptimize(x);
  }
  return x;
}

void two_threads(benchmark::State& state) {
  runtime::ThreadPool pool(2);
  constexpr std::int64_t steps = 1 << 20;
  const auto both = [&] {
    pool.executor().for_each(2, [](std::int64_t, std::int32_t) { compute(steps); });
  };
  const auto one = [] {
    compute(steps);
    compute(steps);
  };
  measure(
      state, 1, [&] { return seconds_of(both, 2); }, [&] { return seconds_of(one, 2); }, "speedup");
}

void threads(benchmark::internal::Benchmark* bench) {
  bench->ArgName("threads")->Arg(1)->Arg(2)->Apply(in_rounds);
}

BENCHMARK(read)->Name("memory/bandwidth/read")->Apply(threads);
BENCHMARK(copy)->Name("memory/bandwidth/copy")->Apply(threads);
BENCHMARK(copy_past_cache)->Name("memory/bandwidth/copy_past_cache")->Apply(threads);
BENCHMARK(gather)->Name("memory/bandwidth/gather_256B_rows")->Apply(threads);
BENCHMARK(rewrite)->Name("memory/bandwidth/rewrite")->Apply(threads);
BENCHMARK(two_threads)->Name("memory/compute/two_threads")->Apply(in_rounds);

}  // namespace
}  // namespace growpage::bench
