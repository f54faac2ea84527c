// SPDX-License-Identifier: Apache-2.0
// The prefix index alone, filled with 1k … 1M pages. Texts differ in their first token only, so
// that the text that is looked up lies in the cache and the index is what is cold.
#include <vector>

#include "growpage/prefix/prefix_index.hpp"
#include "support/check.hpp"
#include "support/host.hpp"
#include "support/text.hpp"

namespace growpage::bench {
namespace {

constexpr std::size_t chain = 64;  // pages of one text

class Filled {
 public:
  Filled(std::int64_t pages, std::int32_t page_size)
      : page_size_(static_cast<std::size_t>(page_size)),
        chains_(static_cast<std::size_t>(pages) / chain),
        tokens_(random_tokens(chain * page_size_)),
        index(PrefixIndex::create(pages, page_size).value()) {
    for (std::size_t c = 0; c < chains_; ++c) publish(c);
  }
  /// Makes the text that of chain `c`.
  void choose(std::size_t c) { tokens_[0] = static_cast<TokenId>(c); }
  void publish(std::size_t c) {
    choose(c);
    PrefixLink link = prefix_root({});
    for (std::size_t k = 0; k < chain; ++k) {
      link = index.publish(page(c, k), link, tokens(k, 1)).link;
      index.lru_push(page(c, k));
    }
  }
  [[nodiscard]] static PageId page(std::size_t c, std::size_t k) {
    return PageId{static_cast<std::int32_t>(c * chain + k)};
  }
  [[nodiscard]] std::span<const TokenId> tokens(std::size_t k, std::size_t pages) const {
    return {tokens_.data() + k * page_size_, pages * page_size_};
  }
  [[nodiscard]] std::size_t random_chain() { return detail::splitmix64(draws_++) % chains_; }
  [[nodiscard]] std::size_t chains() const { return chains_; }

 private:
  std::size_t page_size_, chains_;
  std::vector<TokenId> tokens_;
  std::uint64_t draws_ = 0;

 public:
  PrefixIndex index;
};

Filled filled_for(const benchmark::State& state) {
  return {state.range(1), static_cast<std::int32_t>(state.range(0))};
}

/// Hash, lookup, comparison of tokens and parent, along one text after another in random order.
void hit(benchmark::State& state) {
  Filled filled = filled_for(state);
  PrefixIndex::Match found[PrefixIndex::max_run];
  std::size_t hits = 0;
  std::size_t wanted = 0;
  measure_host(state, chain, timed([&] {
                 filled.choose(filled.random_chain());
                 PrefixLink link = prefix_root({});
                 for (std::size_t k = 0; k < chain; k += PrefixIndex::max_run) {
                   hits +=
                       filled.index.lookup_run(link, filled.tokens(k, PrefixIndex::max_run), found);
                   link = found[PrefixIndex::max_run - 1].link;
                 }
                 wanted += chain;
               }));
  check(hits == wanted);
}

/// Texts nobody has seen, which is what most first pages are.
void miss(benchmark::State& state) {
  Filled filled = filled_for(state);
  std::size_t hits = 0;
  std::size_t text = filled.chains();
  measure_host(state, 1, timed([&] {
                 filled.choose(text++);
                 hits +=
                     filled.index.lookup(prefix_root({}), filled.tokens(0, 1)).page.valid() ? 1 : 0;
               }));
  check(hits == 0);
}

/// What a full pool does for every new page: the oldest is given up, another published in it.
void evict_and_publish(benchmark::State& state) {
  Filled filled = filled_for(state);
  PrefixIndex& index = filled.index;
  std::size_t text = filled.chains();
  measure_host(state, 1, timed([&] {
                 const PageId page = index.lru_oldest();
                 index.lru_remove(page);
                 index.withdraw(page);
                 filled.choose(text++);
                 index.publish(page, prefix_root({}), filled.tokens(0, 1));
                 index.lru_push(page);
               }));
  check(index.size() == state.range(1) && index.lru_size() == state.range(1));
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"page", "pages"})->ArgsProduct({{16, 256}, {1 << 10, 1 << 16, 1 << 20}});
  bench->Apply(in_short_rounds);
}

BENCHMARK(hit)->Name("prefix/index/hit")->Apply(sizes);
BENCHMARK(miss)->Name("prefix/index/miss")->Apply(sizes);
BENCHMARK(evict_and_publish)->Name("prefix/index/evict_and_publish")->Apply(sizes);

}  // namespace
}  // namespace growpage::bench
