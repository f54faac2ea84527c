// SPDX-License-Identifier: Apache-2.0
// The tables of a batch of sequences of 16 pages of 256 tokens, per request.
#include <vector>

#include "growpage/cache/batch_tables.hpp"
#include "support/host.hpp"
#include "support/sequences.hpp"

namespace growpage::bench {
namespace {

constexpr std::int64_t tokens = 16 * 256 - 96;
constexpr std::int64_t stride = 16;

struct Batch : Sequences {
  explicit Batch(std::size_t requests)
      : Sequences(Options{}),
        table(requests * stride),
        lengths(requests),
        indptr(requests + 1),
        counts(requests, 1),
        slots(requests),
        positions(requests) {
    fill(static_cast<std::int32_t>(requests), tokens);
  }
  std::vector<std::int32_t> table, lengths, indptr, counts;
  std::vector<std::int64_t> slots, positions;
};

template <class Fill>
void tables(benchmark::State& state, Fill fill) {
  Batch batch(static_cast<std::size_t>(state.range(0)));
  check(fill(batch).ok());
  measure_host(state, static_cast<double>(state.range(0)), timed([&] {
                 benchmark::DoNotOptimize(fill(batch).ok());
                 benchmark::ClobberMemory();
               }));
  const std::int64_t last = batch.manager.physical_slot(batch.ids[0], tokens - 1);
  check(batch.table[15] == last / 256 || batch.slots[0] == last);
}

void padded(benchmark::State& state) {
  tables(state, [](Batch& b) {
    return fill_padded_tables(b.manager, b.ids, {b.table, stride, -1, b.lengths});
  });
}
void compressed(benchmark::State& state) {
  tables(state, [](Batch& b) {
    return fill_compressed_tables(b.manager, b.ids, {b.indptr, b.table, b.lengths});
  });
}
void slot_mapping(benchmark::State& state) {
  tables(state, [](Batch& b) {
    return fill_token_tables(b.manager, b.ids, b.counts, {b.slots, b.positions});
  });
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgName("requests")->Arg(1)->Arg(16)->Arg(64)->Arg(256)->Arg(1024)->Apply(in_short_rounds);
}

BENCHMARK(padded)->Name("cache/batch_tables/padded")->Apply(sizes);
BENCHMARK(compressed)->Name("cache/batch_tables/compressed")->Apply(sizes);
BENCHMARK(slot_mapping)->Name("cache/batch_tables/slot_mapping")->Apply(sizes);

}  // namespace
}  // namespace growpage::bench
