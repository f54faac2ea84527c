// SPDX-License-Identifier: Apache-2.0
// Pages in and out of the pool, in batches of 16 as an engine's prompts take them, beside a free
// list that does nothing else.
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "growpage/detail/splitmix.hpp"
#include "growpage/memory/page_pool.hpp"
#include "support/check.hpp"
#include "support/host.hpp"

namespace growpage::bench {
namespace {

constexpr std::size_t batch = 16;

/// How little it can cost: a stack of ids, no reference counts, no checks.
class PlainPool {
 public:
  explicit PlainPool(std::int64_t pages) : free_(static_cast<std::size_t>(pages)) {
    std::iota(free_.begin(), free_.end(), 0);
  }
  PageId allocate() {
    const PageId page{free_.back()};
    free_.pop_back();
    return page;
  }
  void release(PageId page) { free_.push_back(page.value); }

 private:
  std::vector<std::int32_t> free_;
};

PlainPool make(std::type_identity<PlainPool>, std::int64_t pages) { return PlainPool(pages); }
PagePool make(std::type_identity<PagePool>, std::int64_t pages) {
  return PagePool::create(pages).value();
}

/// Takes half the pool and gives it back in random order.
template <class Pool>
void shuffle(Pool& pool, std::int64_t pages) {
  std::vector<PageId> taken(static_cast<std::size_t>(pages / 2));
  for (PageId& page : taken) page = pool.allocate();
  for (std::size_t i = taken.size(); i > 1; --i) {
    std::swap(taken[i - 1], taken[detail::splitmix64(i) % i]);
  }
  for (const PageId page : taken) (void)pool.release(page);
}

/// A batch is taken and given back at once: the pages stay in the cache.
template <class Pool>
void same_pages(benchmark::State& state) {
  Pool pool = make(std::type_identity<Pool>(), state.range(0));
  shuffle(pool, state.range(0));
  std::vector<PageId> taken(batch);
  measure_host(state, batch, timed([&] {
                 for (PageId& page : taken) page = pool.allocate();
                 benchmark::DoNotOptimize(taken.data());
                 for (const PageId page : taken) (void)pool.release(page);
                 benchmark::ClobberMemory();
               }));
}

/// A batch is given back when a quarter of the pool has been taken since: pages that nobody touched
/// for long, in random order.
template <class Pool>
void other_pages(benchmark::State& state) {
  Pool pool = make(std::type_identity<Pool>(), state.range(0));
  shuffle(pool, state.range(0));
  std::vector<PageId> held(static_cast<std::size_t>(state.range(0) / 4));
  for (PageId& page : held) page = pool.allocate();
  std::size_t at = 0;
  std::uint64_t step = 0;
  measure_host(state, batch, timed([&] {
                 for (std::size_t i = 0; i < batch; ++i) (void)pool.release(held[at + i]);
                 for (std::size_t i = 0; i < batch; ++i) held[at + i] = pool.allocate();
                 benchmark::ClobberMemory();
                 at = detail::splitmix64(step++) % (held.size() / batch) * batch;
               }));
}

/// Taken, guarded by a fence as device work does, released, and the fence completed.
void guarded(benchmark::State& state) {
  PagePool pool = PagePool::create(state.range(0)).value();
  shuffle(pool, state.range(0));
  std::vector<PageId> taken(batch);
  std::size_t freed = 0;
  measure_host(state, batch, timed([&] {
                 for (PageId& page : taken) page = pool.allocate();
                 const FenceId fence = pool.open_fence().value();
                 for (const PageId page : taken) {
                   (void)pool.guard(fence, page);
                   (void)pool.release(page);
                 }
                 (void)pool.complete_fence(fence, [&](PageId, PageFate fate) {
                   freed += fate == PageFate::freed ? 1 : 0;
                 });
               }));
  check(freed > 0 && freed % batch == 0 && pool.guards() == 0);
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgName("pages")->Arg(1 << 10)->Arg(1 << 13)->Arg(1 << 16)->Arg(1 << 20);
  bench->Apply(in_short_rounds);
}

BENCHMARK_TEMPLATE(same_pages, PagePool)->Name("memory/page_pool/alloc_free")->Apply(sizes);
BENCHMARK_TEMPLATE(same_pages, PlainPool)->Name("memory/plain_pool/alloc_free")->Apply(sizes);
BENCHMARK_TEMPLATE(other_pages, PagePool)->Name("memory/page_pool/alloc_free_cold")->Apply(sizes);
BENCHMARK_TEMPLATE(other_pages, PlainPool)->Name("memory/plain_pool/alloc_free_cold")->Apply(sizes);
BENCHMARK(guarded)->Name("memory/page_pool/alloc_guard_free")->Apply(sizes);

}  // namespace
}  // namespace growpage::bench
