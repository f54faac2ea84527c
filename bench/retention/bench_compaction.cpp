// SPDX-License-Identifier: Apache-2.0
// The row moves of a compaction against memcpy of as many bytes; `gather_share` against copying
// rows from random places, which is what they are.
#include <random>

#include "examples/runtime/thread_pool.hpp"
#include "retention/event.hpp"
#include "support/floors.hpp"
#include "support/host.hpp"

namespace growpage::bench {
namespace {

void compaction(benchmark::State& state) {
  const auto threads = static_cast<std::int32_t>(state.range(3));
  runtime::ThreadPool pool(threads);
  CpuBackend backend(pool.executor());
  Scene scene(backend, {.shape = qwen3_8b(8),
                        .dtype = static_cast<DType>(state.range(0)),
                        .layout = static_cast<PageLayout>(state.range(1))});
  Event event(backend, scene, static_cast<CompactionStrategy>(state.range(2)));
  event.run_checked();
  Floors floors(pool.executor());
  const Traffic traffic{.copied = event.moved_bytes()};
  std::vector<double> gather_share;
  // The probes around it, 64 MB each, leave nothing of K and V in the cache.
  measure_kernel(state, floors, traffic, [&] {
    const double gather = floors.gather(traffic.copied);
    const double took = seconds_of([&] { event.compact(); }, threads);
    gather_share.push_back(gather / took);
    return took;
  });
  state.counters["gather_share"] = median(gather_share);
}

void cases(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"dtype", "nhd", "in_order", "threads"});
  for (const int in_order : {0, 1}) {
    for (const int nhd : {0, 1}) {
      for (const int dtype : {0, 1, 2}) bench->Args({dtype, nhd, in_order, 1});
    }
    bench->Args({2, 0, in_order, 2});
  }
  bench->Apply(in_rounds);
}

BENCHMARK(compaction)->Name("retention/compaction")->Apply(cases);

/// The plan alone, from page counts: host work. Requests of 32768 pages in all take turns, so that
/// no branch predictor learns them by heart.
void plan(benchmark::State& state) {
  const auto pages = static_cast<std::size_t>(state.range(0));
  const std::vector<std::uint8_t> marks(pages, page_private);
  std::vector<std::int32_t> kept(32768);
  std::mt19937_64 random(4);
  for (std::int32_t& rows : kept) rows = static_cast<std::int32_t>(random() % 16384);
  std::size_t at = 0;
  measure_host(state, 1, timed([&] {
                 const std::span<const std::int32_t> request(kept.data() + at, pages);
                 benchmark::DoNotOptimize(
                     plan_compaction(marks, request, 1, CompactionStrategy::fill_holes)->victim[0]);
                 at = (at + pages) % kept.size();
               }));
}
BENCHMARK(plan)
    ->Name("retention/plan")
    ->ArgName("pages")
    ->Arg(64)
    ->Arg(256)
    ->Arg(1024)
    ->Apply(in_short_rounds);

}  // namespace
}  // namespace growpage::bench
