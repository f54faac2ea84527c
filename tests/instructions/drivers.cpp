// SPDX-License-Identifier: Apache-2.0
// Hot host paths for callgrind to count: growpage_instructions CASE. Only what happens inside
// `measured` counts (--toggle-collect); everything is seeded, nothing is timed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "growpage/cache/batch_tables.hpp"
#include "growpage/cache/page_manager.hpp"
#include "growpage/detail/splitmix.hpp"
#include "growpage/policy/growpage.hpp"
#include "growpage/schedule/scheduler.hpp"

namespace {

using growpage::PageId;
using growpage::TokenId;

void check(bool good) {
  if (!good) std::abort();
}

/// callgrind collects between entry and return of this function.
template <class F>
[[gnu::noinline]] void measured(F&& f) {
  f();
}

/// 16 steps of 512 running requests under the growpage policy. Prompts have all lengths, so that
/// two requests are at a boundary in every step.
void schedule() {
  using growpage::PageManager;
  constexpr std::int32_t requests = 512;
  growpage::PageManagerOptions pages;
  pages.pages = requests * 64;
  pages.max_sequences = requests;
  pages.max_pages_per_sequence = 64;
  PageManager cache = PageManager::create(pages).value();
  growpage::SchedulerOptions options;
  options.max_running = options.summary_slots = requests;
  auto scheduler = growpage::Scheduler<growpage::GrowPagePolicy, PageManager>::create(
                       cache, growpage::GrowPagePolicy{}, options)
                       .value();
  std::vector<TokenId> prompt;
  for (std::int32_t i = 0; i < requests; ++i) {
    prompt.assign(static_cast<std::size_t>(1 + i % 256), i);
    growpage::RequestSpec spec;
    spec.tag = static_cast<std::uint64_t>(i);
    spec.prompt = prompt;
    spec.max_new_tokens = 10000;
    check(scheduler.submit(spec).ok());
  }
  std::vector<growpage::SampledToken> tokens;
  std::vector<growpage::MeasuredDemand> demand;
  tokens.reserve(requests);
  demand.reserve(requests);
  std::size_t decoded = 0;
  const auto step = [&] {
    const growpage::StepPlan& plan = **scheduler.schedule();
    tokens.clear();
    demand.clear();
    for (const auto& chunk : plan.prefills) {
      if (chunk.last) tokens.push_back({chunk.request, 1, false});
    }
    for (const auto& item : plan.decodes) tokens.push_back({item.request, 1, false});
    for (const auto& item : plan.demand) demand.push_back({item.request, {0.6, 0.5, 1}});  // grow
    decoded += plan.decodes.size();
    check(scheduler.complete({tokens, demand, {}, {}}).ok());
  };
  while (decoded < std::size_t{requests} * 24) step();
  decoded = 0;
  measured([&] {
    for (int i = 0; i < 16; ++i) step();
  });
  check(decoded == std::size_t{requests} * 16);
}

/// 256 batches of 16 pages taken and given back.
void pages() {
  growpage::PagePool pool = growpage::PagePool::create(4096).value();
  std::vector<PageId> taken(16);
  const auto batch = [&] {
    for (PageId& page : taken) page = pool.allocate();
    for (const PageId page : taken) check(pool.release(page) == growpage::PageFate::freed);
  };
  batch();
  measured([&] {
    for (int i = 0; i < 256; ++i) batch();
  });
}

/// Prompts of 64 cached pages, of 16 and of 256 tokens.
void prefix() {
  for (const std::int32_t page_size : {16, 256}) {
    growpage::PageManagerOptions options;
    options.pages = 128;
    options.page_size = page_size;
    auto cache = growpage::PageManager::create(options).value();
    std::vector<TokenId> text(static_cast<std::size_t>(64 * page_size + 1));
    for (std::size_t i = 0; i < text.size(); ++i) {
      text[i] = static_cast<TokenId>(growpage::detail::splitmix64(i) % 150000);
    }
    const auto size = static_cast<std::int32_t>(text.size());
    const auto id = cache.admit({})->sequence;
    std::vector<growpage::PageCopy> copies;
    check(cache.reserve(id, size).ok() && cache.append(id, size, text.data(), copies).ok() &&
          cache.mark_computed(id, size).ok());
    std::int64_t matched = 0;
    measured([&] {
      for (int i = 0; i < 8; ++i) matched += cache.match_length(text);
    });
    check(matched == std::int64_t{8} * 64 * page_size);
  }
}

/// The rest of what happens to sequences: cold admission with eviction, decoding, forks, swaps,
/// batch tables.
void sequences() {
  constexpr std::int32_t page_size = 16;
  growpage::PageManagerOptions options;
  options.pages = 256;
  options.page_size = page_size;
  options.host_pages = 64;
  auto cache = growpage::PageManager::create(options).value();
  std::vector<growpage::PageCopy> copies;
  std::vector<growpage::PageTransfer> transfers;
  copies.reserve(64);
  transfers.reserve(64);
  std::vector<growpage::SequenceId> ids(1);
  std::vector<std::int32_t> table(64), lengths(1);
  std::vector<TokenId> text(32 * page_size, 5);
  bool good = true;
  const auto life = [&](TokenId first) {
    text[0] = first;
    const auto size = static_cast<std::int32_t>(text.size());
    const auto id = cache.admit(text)->sequence;
    good &= cache.reserve(id, size + page_size).ok();
    good &= cache.append(id, size, text.data(), copies).ok() && cache.mark_computed(id, size).ok();
    for (std::int32_t i = 1; i <= page_size; ++i) {
      good &= cache.append(id, 1, &first, copies).ok() && cache.mark_computed(id, size + i).ok();
    }
    const auto child = *cache.fork(id);
    good &= cache.release(child).ok();
    transfers.clear();
    good &= cache.complete_fence(*cache.swap_out(id, transfers)).ok();
    transfers.clear();
    good &= cache.complete_fence(*cache.swap_in(id, transfers)).ok();
    ids[0] = id;
    good &= growpage::fill_padded_tables(cache, ids, {table, 64, -1, lengths}).ok();
    good &= cache.release(id).ok();
  };
  for (TokenId i = 0; i < 16; ++i) life(i);  // the pool is full of cached pages
  measured([&] {
    for (TokenId i = 16; i < 32; ++i) life(i);
  });
  check(good && cache.evicted_pages() > 0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view which = argc == 2 ? argv[1] : "";
  if (which == "schedule") {
    schedule();
  } else if (which == "pages") {
    pages();
  } else if (which == "prefix") {
    prefix();
  } else if (which == "sequences") {
    sequences();
  } else {
    std::fprintf(stderr, "usage: %s schedule|pages|prefix|sequences\n", argv[0]);
    return 2;
  }
  return 0;
}
