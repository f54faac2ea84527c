// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "growpage/memory/page_pool.hpp"
#include "support/allocation_counter.hpp"
#include "support/catch.hpp"
#include "support/sanitizer.hpp"

using namespace growpage;

namespace {

void check_counts(const PagePool& pool, std::int64_t free, std::int64_t cached,
                  std::int64_t referenced, std::int64_t in_flight) {
  CHECK(pool.counts().free == free);
  CHECK(pool.counts().cached == cached);
  CHECK(pool.counts().referenced == referenced);
  CHECK(pool.counts().in_flight == in_flight);
  CHECK(free + cached + referenced + in_flight == pool.size());
}

std::vector<std::pair<int, PageFate>> complete(PagePool& pool, FenceId fence) {
  std::vector<std::pair<int, PageFate>> fates;
  CHECK(pool.complete_fence(
                fence, [&](PageId page, PageFate fate) { fates.emplace_back(page.value, fate); })
            .ok());
  return fates;
}

}  // namespace

TEST_CASE("a pool's size and fences are checked") {
  CHECK(PagePool::create(0).code() == StatusCode::invalid_argument);
  CHECK(PagePool::create(-5).code() == StatusCode::invalid_argument);
  CHECK(PagePool::create(std::int64_t{1} << 31).code() == StatusCode::invalid_argument);
  CHECK(PagePool::create(4, 0).code() == StatusCode::invalid_argument);
  const auto refused = PagePool::create(0);
  REQUIRE(refused.status().detail() != nullptr);
  CHECK(refused.status().message() == "invalid_argument: pages is 0; allowed: 1 to 2147483647");
}

TEST_CASE("pages are given out in order, then last freed first") {
  PagePool pool = PagePool::create(4).value();
  check_counts(pool, 4, 0, 0, 0);
  for (int i = 0; i < 4; ++i) CHECK(pool.allocate() == PageId{i});
  CHECK_FALSE(pool.allocate().valid());
  check_counts(pool, 0, 0, 4, 0);
  CHECK(pool.release(PageId{1}) == PageFate::freed);
  CHECK(pool.release(PageId{3}) == PageFate::freed);
  CHECK(pool.is_free(PageId{1}));
  CHECK_FALSE(pool.is_free(PageId{2}));
  CHECK(pool.refcount(PageId{1}) == 0);
  check_counts(pool, 2, 0, 2, 0);
  CHECK(pool.allocate() == PageId{3});
  CHECK(pool.allocate() == PageId{1});
  CHECK_FALSE(pool.allocate().valid());
}

TEST_CASE("contains is exactly the pool's ids") {
  const PagePool pool = PagePool::create(3).value();
  CHECK(pool.contains(PageId{0}));
  CHECK(pool.contains(PageId{2}));
  CHECK_FALSE(pool.contains(PageId{3}));
  CHECK_FALSE(pool.contains(PageId{-1}));
}

TEST_CASE("a page is freed with its last reference") {
  PagePool pool = PagePool::create(2).value();
  const PageId page = pool.allocate();
  pool.retain(page);
  pool.retain(page);
  CHECK(pool.refcount(page) == 3);
  CHECK(pool.release(page) == PageFate::referenced);
  CHECK(pool.release(page) == PageFate::referenced);
  check_counts(pool, 1, 0, 1, 0);
  CHECK(pool.release(page) == PageFate::freed);
  check_counts(pool, 2, 0, 0, 0);
}

TEST_CASE("a published page is cached, not freed, and not given out") {
  PagePool pool = PagePool::create(1).value();
  const PageId page = pool.allocate();
  CHECK(pool.set_published(page, true) == PageFate::referenced);
  CHECK(pool.release(page) == PageFate::cached);
  check_counts(pool, 0, 1, 0, 0);
  CHECK_FALSE(pool.allocate().valid());

  SECTION("a hit takes it back") {
    pool.retain(page);
    check_counts(pool, 0, 0, 1, 0);
    CHECK(pool.published(page));
  }
  SECTION("unpublished, it is free") {
    CHECK(pool.set_published(page, false) == PageFate::freed);
    check_counts(pool, 1, 0, 0, 0);
    CHECK(pool.allocate() == page);
  }
  SECTION("reclaimed, it is somebody's and unpublished") {
    pool.reclaim(page);
    check_counts(pool, 0, 0, 1, 0);
    CHECK_FALSE(pool.published(page));
    CHECK(pool.refcount(page) == 1);
    CHECK(pool.release(page) == PageFate::freed);
  }
}

TEST_CASE("a pin holds an unreferenced page back") {
  PagePool pool = PagePool::create(1).value();
  const PageId page = pool.allocate();
  pool.pin(page);
  pool.pin(page);
  CHECK(pool.release(page) == PageFate::in_flight);
  check_counts(pool, 0, 0, 0, 1);
  CHECK_FALSE(pool.allocate().valid());
  CHECK(pool.unpin(page) == PageFate::in_flight);
  CHECK_FALSE(pool.allocate().valid());

  SECTION("until the last pin is gone") {
    CHECK(pool.unpin(page) == PageFate::freed);
    CHECK(pool.allocate() == page);
  }
  SECTION("published, it becomes cached") {
    CHECK(pool.set_published(page, true) == PageFate::in_flight);
    CHECK(pool.unpin(page) == PageFate::cached);
    pool.pin(page);
    check_counts(pool, 0, 0, 0, 1);
    CHECK(pool.set_published(page, false) == PageFate::in_flight);
    CHECK(pool.unpin(page) == PageFate::freed);
  }
  SECTION("or a new reference comes") {
    pool.retain(page);
    check_counts(pool, 0, 0, 1, 0);
    CHECK(pool.unpin(page) == PageFate::referenced);
    CHECK(pool.release(page) == PageFate::freed);
  }
}

TEST_CASE("no page is reused before its fence") {
  PagePool pool = PagePool::create(3).value();
  const PageId a = pool.allocate(), b = pool.allocate(), c = pool.allocate();
  const FenceId fence = pool.open_fence().value();
  CHECK(pool.guard(fence, a).ok());
  CHECK(pool.guard(fence, b).ok());
  CHECK(pool.guard(fence, b).ok());
  CHECK(pool.guards() == 3);
  CHECK(pool.pins(b) == 2);
  pool.release(a);
  pool.set_published(b, true);
  pool.release(b);
  check_counts(pool, 0, 0, 1, 2);
  CHECK_FALSE(pool.allocate().valid());

  using Fates = std::vector<std::pair<int, PageFate>>;
  CHECK(complete(pool, fence) == Fates{{b.value, PageFate::in_flight},
                                       {b.value, PageFate::cached},
                                       {a.value, PageFate::freed}});
  check_counts(pool, 1, 1, 1, 0);
  CHECK(pool.guards() == 0);
  CHECK(pool.allocate() == a);
  CHECK(pool.refcount(c) == 1);
}

TEST_CASE("a completed fence is stale, whoever has its slot now") {
  PagePool pool = PagePool::create(2, 2).value();
  const PageId page = pool.allocate();
  const FenceId first = pool.open_fence().value();
  const FenceId second = pool.open_fence().value();
  CHECK(pool.open_fences() == 2);
  CHECK(pool.open_fence().code() == StatusCode::out_of_fences);
  CHECK(pool.is_open(first));
  complete(pool, first);
  CHECK_FALSE(pool.is_open(first));
  CHECK(pool.complete_fence(first, [](PageId, PageFate) {}) == StatusCode::stale_id);
  CHECK(pool.guard(first, page) == StatusCode::stale_id);
  const FenceId third = pool.open_fence().value();
  CHECK(third.index == first.index);
  CHECK(third != first);
  CHECK_FALSE(pool.is_open(first));
  CHECK(pool.complete_fence(first, [](PageId, PageFate) {}) == StatusCode::stale_id);
  CHECK(pool.is_open(third));
  CHECK(pool.is_open(second));
  CHECK_FALSE(pool.is_open(FenceId{}));
  CHECK_FALSE(pool.is_open(FenceId{77, 1}));
}

TEST_CASE("the guard list takes two guards a page") {
  PagePool pool = PagePool::create(2, 8).value();
  const PageId page = pool.allocate();
  const FenceId fence = pool.open_fence().value();
  for (int i = 0; i < 4; ++i) CHECK(pool.guard(fence, page).ok());
  CHECK(pool.guard_room() == 0);
  CHECK(pool.guard(fence, page) == StatusCode::out_of_fences);
  CHECK(pool.pins(page) == 4);
  complete(pool, fence);
  CHECK(pool.guard_room() == 4);
  const FenceId again = pool.open_fence().value();
  for (int i = 0; i < 4; ++i) CHECK(pool.guard(again, page).ok());
  complete(pool, again);
  CHECK(pool.pins(page) == 0);
}

TEST_CASE("the largest pools cost address space only") {
  int granted = 0;
  for (const std::int64_t pages : {0x7fffffffLL, 0x40000000LL, 0x1000000LL}) {
    if (test::shadow_memory && pages > 0x1000000) continue;
    Result<PagePool> pool = PagePool::create(pages);
    if (!pool.ok()) {  // more address space than this machine grants
      CHECK(pool.code() == StatusCode::out_of_memory);
      continue;
    }
    ++granted;
    const PageId top{static_cast<std::int32_t>(pages - 1)};
    CHECK(pool->counts().free == pages);
    CHECK(pool->contains(top));
    CHECK(pool->is_free(top));
    CHECK(pool->refcount(top) == 0);
    CHECK(pool->guard_room() == std::min(2 * pages, PagePool::max_guards));
    CHECK(pool->allocate() == PageId{0});
    CHECK(pool->release(PageId{0}) == PageFate::freed);
  }
  CHECK(granted > 0);
}

TEST_CASE("the pool allocates no memory after its creation") {
  PagePool pool = PagePool::create(64, 4).value();
  std::vector<PageId> pages(64);
  std::int64_t fates = 0;
  const test::AllocationCounter allocations;
  for (int round = 0; round < 3; ++round) {
    for (PageId& page : pages) page = pool.allocate();
    const Result<FenceId> fence = pool.open_fence();
    for (const PageId page : pages) {
      (void)pool.guard(*fence, page);
      pool.release(page);
    }
    (void)pool.complete_fence(*fence, [&](PageId, PageFate) { ++fates; });
  }
  const std::int64_t count = allocations.count();
  CHECK(count == 0);
  CHECK(fates == 3 * 64);
  CHECK(pool.counts().free == 64);
}
