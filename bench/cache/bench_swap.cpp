// SPDX-License-Identifier: Apache-2.0
// A sequence to host memory and back: the bookkeeping, and the bytes against memcpy.
#include <vector>

#include "support/floors.hpp"
#include "support/host.hpp"
#include "support/scene.hpp"
#include "support/sequences.hpp"

namespace growpage::bench {
namespace {

void bookkeeping(benchmark::State& state) {
  const auto pages = static_cast<std::int32_t>(state.range(0));
  Sequences s({.pages = 4096, .host_pages = 2 * pages});
  s.fill(4096 / pages, std::int64_t{pages} * 256);
  std::vector<PageTransfer> transfers;
  transfers.reserve(static_cast<std::size_t>(pages));
  std::size_t at = 0;
  bool good = true;
  measure_host(state, pages, timed([&] {
                 const SequenceId id = s.ids[at];
                 transfers.clear();
                 good &= s.manager.complete_fence(*s.manager.swap_out(id, transfers)).ok();
                 transfers.clear();
                 good &= s.manager.complete_fence(*s.manager.swap_in(id, transfers)).ok();
                 at = (at + 1) % s.ids.size();
               }));
  check(good && std::ssize(transfers) == pages);
}

/// One request of the model's shape, 8 of its layers. A page's heads are copied one by one.
void bytes(benchmark::State& state, bool out) {
  CpuBackend backend;
  const SceneOptions options{.shape = qwen3_8b(8),
                             .layout = static_cast<PageLayout>(state.range(0))};
  Scene scene(backend, options);
  const std::int64_t size = page_bytes(options.shape, scene.kv());
  void* host = backend.allocate_host(size * options.pages);
  std::vector<PageTransfer> transfers;
  for (std::int32_t p = 0; p < options.pages; ++p) transfers.push_back({scene.table(0)[p], {p}});
  Floors floors;
  const Traffic traffic{.copied = static_cast<double>(size * options.pages)};
  measure_kernel(state, floors, traffic, [&] {
    return seconds_of([&] {
      if (out) {
        backend.pages_to_host(options.shape, scene.kv(), transfers, host);
      } else {
        backend.pages_from_host(options.shape, scene.kv(), transfers, host);
      }
    });
  });
  backend.deallocate_host(host, size * options.pages);
}
void bytes_out(benchmark::State& state) { bytes(state, true); }
void bytes_in(benchmark::State& state) { bytes(state, false); }

void layouts(benchmark::internal::Benchmark* bench) {
  bench->ArgName("nhd")->Arg(0)->Arg(1)->Apply(in_rounds);
}

BENCHMARK(bookkeeping)
    ->Name("cache/swap/bookkeeping")
    ->ArgName("pages")
    ->Arg(4)
    ->Arg(16)
    ->Arg(64)
    ->Apply(in_short_rounds);
BENCHMARK(bytes_out)->Name("cache/swap/bytes_out")->Apply(layouts);
BENCHMARK(bytes_in)->Name("cache/swap/bytes_in")->Apply(layouts);

}  // namespace
}  // namespace growpage::bench
