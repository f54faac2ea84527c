// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "growpage/memory/block_table.hpp"
#include "support/check.hpp"
#include "support/host.hpp"

namespace growpage::bench {
namespace {

/// One page more at the end of the row of each of so many sequences.
void append(benchmark::State& state) {
  const auto sequences = static_cast<std::int32_t>(state.range(0));
  constexpr std::int32_t columns = 1024;
  BlockTables tables = BlockTables::create(sequences, columns).value();
  std::vector<std::int32_t> pages(static_cast<std::size_t>(sequences), 0);
  std::int32_t id = 0;
  measure_host(state, sequences, timed([&] {
                 for (std::int32_t s = 0; s < sequences; ++s) {
                   std::int32_t& used = pages[static_cast<std::size_t>(s)];
                   if (used == columns) used = 0;
                   tables.row(static_cast<std::uint32_t>(s))[used++] = PageId{++id & 0xffffff};
                 }
                 benchmark::ClobberMemory();
               }));
  check(tables.row(0)[0].valid());
}

/// Where the K/V of a token of each of 512 requests goes, as an attention kernel computes it.
void slot(benchmark::State& state) {
  constexpr std::int32_t requests = 512;
  constexpr std::int32_t stride = 64;
  std::vector<std::int32_t> pages(requests * stride);
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<std::int32_t>(i * 7);
  const BlockTableView view{pages.data(), nullptr, stride, requests, 256};
  std::int32_t s = 0;
  measure_host(state, requests, timed([&] {
                 std::int64_t sum = 0;
                 for (std::int32_t r = 0; r < requests; ++r) sum += view.slot(r, s);
                 benchmark::DoNotOptimize(sum);
                 s = (s + 97) % (stride * 256);
               }));
  check(view.slot(1, 300) == std::int64_t{(stride + 1) * 7} * 256 + 44);
}

BENCHMARK(append)
    ->Name("memory/block_table/append")
    ->ArgName("sequences")
    ->Arg(64)
    ->Arg(512)
    ->Arg(10000)
    ->Apply(in_short_rounds);
BENCHMARK(slot)->Name("memory/block_table/slot")->Apply(in_short_rounds);

}  // namespace
}  // namespace growpage::bench
