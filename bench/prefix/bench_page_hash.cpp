// SPDX-License-Identifier: Apache-2.0
// The chained hash of a page, beside what xxHash needs for the same bytes lying ready as one block.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <vector>

#include "growpage/prefix/page_hash.hpp"
#include "support/host.hpp"
#include "support/text.hpp"

namespace growpage::bench {
namespace {

constexpr std::size_t texts = 256;  // in turn: 16 pages of 256 tokens would stay in the L1 cache

void chained(benchmark::State& state) {
  const auto page_size = static_cast<std::size_t>(state.range(0));
  const std::vector<TokenId> tokens = random_tokens(texts * page_size);
  std::vector<TokenId> blocks = random_tokens(texts * (page_size + 4));  // room for the parent
  Hash128 parent;
  std::size_t at = 0;
  XXH128_hash_t raw{};
  std::size_t raw_at = 0;
  measure_host(state, 1, timed([&] {
                 parent = hash_page(parent, {tokens.data() + at * page_size, page_size});
                 benchmark::DoNotOptimize(parent);
                 at = (at + 1) % texts;
               }),
               timed([&] {
                 TokenId* block = blocks.data() + raw_at * (page_size + 4);
                 std::memcpy(block, &raw, sizeof raw);
                 raw = XXH3_128bits(block, (page_size + 4) * sizeof(TokenId));
                 benchmark::DoNotOptimize(raw);
                 raw_at = (raw_at + 1) % texts;
               }),
               "share");
}

BENCHMARK(chained)
    ->Name("prefix/page_hash/chained")
    ->ArgName("page")
    ->Arg(16)
    ->Arg(256)
    ->Apply(in_short_rounds);

}  // namespace
}  // namespace growpage::bench
