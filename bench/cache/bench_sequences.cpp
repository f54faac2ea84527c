// SPDX-License-Identifier: Apache-2.0
// What happens to sequences: admission with and without a cached prefix, decoding, forks, growth.
#include <vector>

#include "support/host.hpp"
#include "support/sequences.hpp"

namespace growpage::bench {
namespace {

Sequences pool_of(std::int64_t pages, std::int32_t page_size) {
  return Sequences({.pages = pages, .page_size = page_size, .max_pages = 512, .host_pages = 0});
}

void prefill(Sequences& s, SequenceId id, std::span<const TokenId> tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const std::int64_t matched = s.manager.view(id)->length;
  check(s.manager.reserve(id, count - matched).ok());
  check(s.manager.append(id, count - matched, tokens.data() + matched, s.copies).ok());
  check(s.manager.mark_computed(id, static_cast<std::int32_t>(count)).ok());
}

/// Prompts that are all in the cache but for a last token, one after another: admission and
/// release, per page.
void admit_hit(benchmark::State& state) {
  const auto page_size = static_cast<std::int32_t>(state.range(0));
  const auto pages = static_cast<std::size_t>(state.range(1));
  const std::size_t prompts = 8192 / pages;  // as many pages in turn, whatever their length
  Sequences s = pool_of(static_cast<std::int64_t>(prompts * (pages + 2)), page_size);
  std::vector<std::vector<TokenId>> texts;
  for (std::size_t i = 0; i < prompts; ++i) {
    texts.push_back(random_tokens(pages * static_cast<std::size_t>(page_size) + 1, i + 1));
    const SequenceId id = s.manager.admit(texts.back())->sequence;
    prefill(s, id, texts.back());
    check(s.manager.release(id).ok());
  }
  std::size_t at = 0;
  std::int64_t matched = 0;
  std::int64_t wanted = 0;
  measure_host(state, static_cast<double>(pages), timed([&] {
                 const auto admission = s.manager.admit(texts[at]);
                 matched += admission->matched;
                 wanted += static_cast<std::int64_t>(texts[at].size()) - 1;
                 (void)s.manager.release(admission->sequence);
                 at = (at + 1) % prompts;
               }));
  check(matched == wanted);
}

/// Prompts nobody has seen, in a pool whose pages are all cached: admission, eviction of as many
/// pages, tokens, publication and release, per page.
void admit_cold(benchmark::State& state) {
  const auto page_size = static_cast<std::int32_t>(state.range(0));
  const auto pages = static_cast<std::size_t>(state.range(1));
  Sequences s = pool_of(8192, page_size);
  auto text = random_tokens(pages * static_cast<std::size_t>(page_size));
  const auto admit = [&] {
    ++text[0];
    const SequenceId id = s.manager.admit(text)->sequence;
    prefill(s, id, text);
    (void)s.manager.release(id);
  };
  while (s.manager.counts().free > 0) admit();
  const std::int64_t before = s.manager.evicted_pages();
  measure_host(state, static_cast<double>(pages), timed(admit));
  check(s.manager.evicted_pages() > before);
}

void prompts(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"page", "pages"});
  for (const int page : {16, 256}) {
    for (const int pages : {8, 64, 256}) bench->Args({page, pages});
  }
  bench->Apply(in_short_rounds);
}

/// A decode step: each of 512 sequences takes a slot, which is computed; a page more at its end.
void decode(benchmark::State& state) {
  constexpr std::int32_t requests = 512;
  constexpr std::int32_t steps = 32;
  Sequences s = pool_of(requests * 20, 256);
  s.fill(requests, 1);
  std::int32_t length = 1;
  const auto step = [&] {
    for (const SequenceId id : s.ids) {
      if (length % 256 == 0) (void)s.manager.grow(id);
      (void)s.manager.append(id, 1, &length, s.copies);
      (void)s.manager.mark_computed(id, length + 1);
    }
    ++length;
  };
  measure_host(state, requests * steps, [&] {
    if (length + steps > 16 * 256) {
      for (const SequenceId id : s.ids) check(s.manager.truncate(id, 1).ok());
      length = 1;
    }
    return seconds_of([&] {
      for (std::int32_t i = 0; i < steps; ++i) step();
    });
  });
  check(s.manager.view(s.ids[7])->length == length);
}

/// A second sequence with the same pages, and its end, per page: of 4096 pages in all.
void fork(benchmark::State& state) {
  const auto pages = static_cast<std::int32_t>(state.range(0));
  const std::int32_t count = 4096 / pages;
  Sequences s = pool_of(4096, 256);
  s.fill(count, std::int64_t{pages} * 256);
  std::size_t at = 0;
  bool good = true;
  measure_host(state, pages, timed([&] {
                 const auto child = s.manager.fork(s.ids[at]);
                 good &= child.ok() && s.manager.release(*child).ok();
                 at = (at + 1) % s.ids.size();
               }));
  check(good && s.manager.live_sequences() == count);
}

/// Growth by a page and its return: pool, block table and index together.
void grow(benchmark::State& state) {
  constexpr std::int32_t requests = 512;
  Sequences s = pool_of(requests * 4, 256);
  s.fill(requests, 300);
  bool good = true;
  measure_host(state, requests, timed([&] {
                 for (const SequenceId id : s.ids) good &= s.manager.grow(id).ok();
                 for (const SequenceId id : s.ids) good &= s.manager.truncate(id, 300).ok();
               }));
  check(good && s.manager.counts().referenced == requests * 2);
}

BENCHMARK(admit_hit)->Name("cache/admit/hit")->Apply(prompts);
BENCHMARK(admit_cold)->Name("cache/admit/cold")->Apply(prompts);
BENCHMARK(decode)->Name("cache/decode")->Apply(in_short_rounds);
BENCHMARK(fork)
    ->Name("cache/fork")
    ->ArgName("pages")
    ->Arg(4)
    ->Arg(16)
    ->Arg(64)
    ->Apply(in_short_rounds);
BENCHMARK(grow)->Name("cache/grow_and_return")->Apply(in_short_rounds);

}  // namespace
}  // namespace growpage::bench
