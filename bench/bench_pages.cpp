// SPDX-License-Identifier: Apache-2.0
// The host side of the cache: pages, prefix index, page manager, batch tables. Times are read as
// ratios to the two floors measured in the same run: a plain free list, and raw XXH3-128.
#define XXH_INLINE_ALL
#include <benchmark/benchmark.h>
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "growpage/cache/batch_tables.hpp"
#include "growpage/cache/page_manager.hpp"
#include "growpage/detail/splitmix.hpp"

namespace {

using namespace growpage;

// -- Pages ----------------------------------------------------------------------------------------

/// The floor: a stack of ids and nothing else.
void plain_free_list(benchmark::State& state) {
  std::vector<std::int32_t> free(65536);
  std::iota(free.begin(), free.end(), 0);
  std::vector<std::int32_t> taken(16);
  for (auto _ : state) {
    for (std::int32_t& page : taken) {
      page = free.back();
      free.pop_back();
    }
    benchmark::DoNotOptimize(taken.data());
    for (const std::int32_t page : taken) free.push_back(page);
  }
  state.SetItemsProcessed(state.iterations() * 16);
}
BENCHMARK(plain_free_list);

void pool_allocate_release(benchmark::State& state) {
  PagePool pool = PagePool::create(65536).value();
  std::vector<PageId> taken(16);
  for (auto _ : state) {
    for (PageId& page : taken) page = pool.allocate();
    benchmark::DoNotOptimize(taken.data());
    for (const PageId page : taken) benchmark::DoNotOptimize(pool.release(page));
  }
  state.SetItemsProcessed(state.iterations() * 16);
}
BENCHMARK(pool_allocate_release);

/// Release under a fence, then its completion.
void pool_allocate_guard_complete(benchmark::State& state) {
  PagePool pool = PagePool::create(65536).value();
  std::vector<PageId> taken(16);
  for (auto _ : state) {
    for (PageId& page : taken) page = pool.allocate();
    const FenceId fence = pool.open_fence().value();
    for (const PageId page : taken) {
      (void)pool.guard(fence, page);
      benchmark::DoNotOptimize(pool.release(page));
    }
    (void)pool.complete_fence(fence,
                              [](PageId page, PageFate) { benchmark::DoNotOptimize(page.value); });
  }
  state.SetItemsProcessed(state.iterations() * 16);
}
BENCHMARK(pool_allocate_guard_complete);

// -- Prefix index ---------------------------------------------------------------------------------

std::vector<TokenId> random_tokens(std::size_t count, std::uint64_t seed = 0) {
  std::vector<TokenId> tokens(count);
  for (std::size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<TokenId>(detail::splitmix64(seed + i) % 150000);
  }
  return tokens;
}

/// Raw XXH3-128 over parent ‖ tokens that lie ready as one block: chained, page after page.
void raw_xxh3(benchmark::State& state) {
  const auto page_size = static_cast<std::size_t>(state.range(0));
  std::vector<TokenId> tokens = random_tokens(4 + page_size);
  for (auto _ : state) {
    const XXH128_hash_t h = XXH3_128bits(tokens.data(), tokens.size() * sizeof(TokenId));
    std::memcpy(tokens.data(), &h, sizeof h);
    benchmark::DoNotOptimize(tokens.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(raw_xxh3)->Arg(16)->Arg(256);

void page_hash_chained(benchmark::State& state) {
  const auto page_size = static_cast<std::size_t>(state.range(0));
  const std::vector<TokenId> tokens = random_tokens(page_size);
  Hash128 parent;
  for (auto _ : state) {
    parent = hash_page(parent, tokens);
    benchmark::DoNotOptimize(parent);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(page_hash_chained)->Arg(16)->Arg(256);

/// `pages` pages in chains of 64 that differ in their first token, so that the text looked up is
/// always in the cache and the index is what is cold.
struct Filled {
  std::size_t page_size, chains;
  PrefixIndex index;
  std::vector<TokenId> tokens;

  Filled(std::int64_t pages, std::int32_t size)
      : page_size(static_cast<std::size_t>(size)),
        chains(static_cast<std::size_t>(pages) / 64),
        index(PrefixIndex::create(pages, size).value()),
        tokens(random_tokens(64 * page_size)) {
    for (std::size_t c = 0; c < chains; ++c) {
      choose(c);
      PrefixLink link = prefix_root({});
      for (std::size_t k = 0; k < 64; ++k) {
        link = index.publish(PageId{static_cast<std::int32_t>(c * 64 + k)}, link, page(k)).link;
      }
    }
  }
  void choose(std::size_t chain) { tokens[0] = static_cast<TokenId>(chain); }
  [[nodiscard]] std::span<const TokenId> page(std::size_t k) const {
    return {tokens.data() + k * page_size, page_size};
  }
};

/// Hits along one chain after another, the chains in random order, per page.
void prefix_lookup_hit(benchmark::State& state) {
  Filled filled(state.range(1), static_cast<std::int32_t>(state.range(0)));
  std::uint64_t round = 0;
  PrefixIndex::Match found[PrefixIndex::max_run];
  for (auto _ : state) {
    filled.choose(detail::splitmix64(round++) % filled.chains);
    PrefixLink link = prefix_root({});
    for (std::size_t k = 0; k < 64; k += PrefixIndex::max_run) {
      const std::span<const TokenId> run{filled.page(k).data(),
                                         PrefixIndex::max_run * filled.page_size};
      if (filled.index.lookup_run(link, run, found) != PrefixIndex::max_run) {
        state.SkipWithError("a miss");
      }
      link = found[PrefixIndex::max_run - 1].link;
    }
  }
  state.SetItemsProcessed(state.iterations() * 64);
}
BENCHMARK(prefix_lookup_hit)->ArgsProduct({{16, 256}, {1 << 10, 1 << 16, 1 << 20}});

void prefix_publish_withdraw(benchmark::State& state) {
  const auto page_size = static_cast<std::int32_t>(state.range(0));
  const std::int64_t pages = state.range(1);
  PrefixIndex index = PrefixIndex::create(pages, page_size).value();
  std::vector<TokenId> tokens = random_tokens(static_cast<std::size_t>(page_size));
  const PrefixLink root = prefix_root({});
  std::int32_t page = 0;
  for (auto _ : state) {
    ++tokens[3];
    index.publish(PageId{page}, root, tokens);
    index.withdraw(PageId{page});
    page = static_cast<std::int32_t>((page + 1) % pages);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(prefix_publish_withdraw)->ArgsProduct({{16, 256}, {1 << 10, 1 << 16}});

// -- Page manager ---------------------------------------------------------------------------------

PageManagerOptions manager_options(std::int32_t page_size, std::int64_t pages) {
  PageManagerOptions options;
  options.pages = pages;
  options.page_size = page_size;
  options.max_sequences = 1024;
  options.max_pages_per_sequence = 512;
  return options;
}

/// A prompt of 64 pages that is all in the cache: admission and release, per page.
void manager_admit_hit(benchmark::State& state) {
  const auto page_size = static_cast<std::int32_t>(state.range(0));
  PageManager manager = PageManager::create(manager_options(page_size, 4096)).value();
  const auto tokens = random_tokens(64 * static_cast<std::size_t>(page_size) + 1);
  const auto count = static_cast<std::int64_t>(tokens.size());
  std::vector<PageCopy> copies;
  const SequenceId first = manager.admit(tokens)->sequence;
  (void)manager.reserve(first, count);
  (void)manager.append(first, count, tokens.data(), copies);
  (void)manager.mark_computed(first, static_cast<std::int32_t>(count));
  (void)manager.release(first);
  for (auto _ : state) {
    const auto admission = manager.admit(tokens);
    if (admission->matched != count - 1) state.SkipWithError("a miss");
    (void)manager.release(admission->sequence);
  }
  state.SetItemsProcessed(state.iterations() * 64);
}
BENCHMARK(manager_admit_hit)->Arg(16)->Arg(256);

/// A prompt of 64 pages that is not: admission, pages, tokens, publication and release, per page,
/// in a pool whose pages are all cached, so that each page is evicted first.
void manager_admit_cold(benchmark::State& state) {
  const auto page_size = static_cast<std::int32_t>(state.range(0));
  PageManager manager = PageManager::create(manager_options(page_size, 4096)).value();
  auto tokens = random_tokens(64 * static_cast<std::size_t>(page_size));
  const auto count = static_cast<std::int64_t>(tokens.size());
  std::vector<PageCopy> copies;
  for (auto _ : state) {
    ++tokens[0];
    const SequenceId id = manager.admit(tokens)->sequence;
    (void)manager.reserve(id, count);
    (void)manager.append(id, count, tokens.data(), copies);
    (void)manager.mark_computed(id, static_cast<std::int32_t>(count));
    (void)manager.release(id);
  }
  state.SetItemsProcessed(state.iterations() * 64);
}
BENCHMARK(manager_admit_cold)->Arg(16)->Arg(256);

/// A decode step of 512 sequences: append and mark_computed of one token each.
void manager_decode_step(benchmark::State& state) {
  PageManager manager = PageManager::create(manager_options(256, 32768)).value();
  std::vector<SequenceId> ids;
  for (int i = 0; i < 512; ++i) ids.push_back(manager.admit({})->sequence);
  std::vector<PageCopy> copies;
  std::int32_t slots = 0;
  for (auto _ : state) {
    if (slots == 8192) {
      state.PauseTiming();
      for (const SequenceId id : ids) (void)manager.truncate(id, 0);
      slots = 0;
      state.ResumeTiming();
    }
    for (const SequenceId id : ids) {
      if (slots % 256 == 0) (void)manager.grow(id);
      (void)manager.append(id, 1, &slots, copies);
      (void)manager.mark_computed(id, slots + 1);
    }
    ++slots;
  }
  state.SetItemsProcessed(state.iterations() * 512);
}
BENCHMARK(manager_decode_step);

/// Tables of a batch of 512 sequences of 16 pages, per sequence.
void batch_tables(benchmark::State& state) {
  PageManager manager = PageManager::create(manager_options(256, 32768)).value();
  std::vector<SequenceId> ids;
  std::vector<PageCopy> copies;
  for (int i = 0; i < 512; ++i) {
    ids.push_back(manager.admit({})->sequence);
    (void)manager.reserve(ids.back(), 4000);
    (void)manager.append(ids.back(), 4000, nullptr, copies);
  }
  std::vector<std::int32_t> table(512 * 64), lengths(512), counts(512, 1);
  std::vector<std::int32_t> indptr(513), indices(512 * 16);
  std::vector<std::int64_t> slots(512), positions(512);
  for (auto _ : state) {
    bool good = true;
    if (state.range(0) == 0) {
      good = fill_padded_tables(manager, ids, {table, 64, -1, lengths}).ok();
    } else if (state.range(0) == 1) {
      good = fill_compressed_tables(manager, ids, {indptr, indices, lengths}).ok();
    } else {
      good = fill_token_tables(manager, ids, counts, {slots, positions}).ok();
    }
    if (!good) state.SkipWithError("refused");
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * 512);
}
BENCHMARK(batch_tables)->ArgName("padded_csr_tokens")->Arg(0)->Arg(1)->Arg(2);

}  // namespace
