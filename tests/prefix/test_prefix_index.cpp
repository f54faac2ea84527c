// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <utility>
#include <vector>

#include "growpage/prefix/prefix_index.hpp"
#include "support/allocation_counter.hpp"
#include "support/catch.hpp"
#include "support/sanitizer.hpp"

using namespace growpage;

namespace {

constexpr std::int32_t page_size = 16;

PrefixIndex make(std::int64_t pages) { return PrefixIndex::create(pages, page_size).value(); }

std::vector<TokenId> text(TokenId first) {
  std::vector<TokenId> tokens(page_size);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

const PrefixLink root = prefix_root({});

}  // namespace

TEST_CASE("a published page is found under its parent only") {
  PrefixIndex index = make(4);
  CHECK_FALSE(index.lookup(root, text(0)).page.valid());
  const auto published = index.publish(PageId{2}, root, text(0));
  CHECK(published.first);
  CHECK(published.link.hash == hash_page(root.hash, text(0)));
  CHECK(published.link.id != 0);
  CHECK((published.link.id >> 63) == 0);
  CHECK(index.published(PageId{2}));
  CHECK_FALSE(index.published(PageId{1}));
  CHECK(index.size() == 1);
  CHECK(index.link(PageId{2}).id == published.link.id);
  CHECK(index.parent_id(PageId{2}) == root.id);
  CHECK(std::vector<TokenId>(index.tokens(PageId{2}).begin(), index.tokens(PageId{2}).end()) ==
        text(0));

  const auto hit = index.lookup(root, text(0));
  CHECK(hit.page == PageId{2});
  CHECK(hit.link.id == published.link.id);
  CHECK(hit.link.hash == published.link.hash);
  CHECK_FALSE(index.lookup(root, text(1)).page.valid());
  CHECK_FALSE(index.lookup(published.link, text(0)).page.valid());
  const std::vector<TokenId> shorter(8, 0);
  CHECK_FALSE(index.lookup(root, shorter).page.valid());

  const auto gone = index.withdraw(PageId{2});
  CHECK(gone.last);
  CHECK(gone.hash == published.link.hash);
  CHECK_FALSE(index.lookup(root, text(0)).page.valid());
  CHECK(index.size() == 0);
}

TEST_CASE("a child of a withdrawn and republished parent does not match a stale identity") {
  PrefixIndex index = make(4);
  const PrefixLink parent = index.publish(PageId{0}, root, text(0)).link;
  index.publish(PageId{1}, parent, text(100));
  CHECK(index.lookup(parent, text(100)).page == PageId{1});
  index.withdraw(PageId{0});
  const PrefixLink again = index.publish(PageId{2}, root, text(0)).link;
  CHECK(again.hash == parent.hash);
  CHECK(again.id != parent.id);
  CHECK_FALSE(index.lookup(again, text(100)).page.valid());
}

TEST_CASE("one digest, two identities: a hand-made parent link reaches nobody's pages") {
  PrefixIndex index = make(4);
  index.publish(PageId{0}, root, text(0));
  const PrefixLink forged{root.hash, root.id ^ 1};
  CHECK_FALSE(index.lookup(forged, text(0)).page.valid());
  const auto other = index.publish(PageId{1}, forged, text(0));
  CHECK_FALSE(other.first);  // routers know it by its hash
  CHECK(other.link.hash == index.link(PageId{0}).hash);
  CHECK(other.link.id != index.link(PageId{0}).id);
  CHECK(index.lookup(forged, text(0)).page == PageId{1});
  CHECK(index.lookup(root, text(0)).page == PageId{0});
  CHECK_FALSE(index.withdraw(PageId{0}).last);
  CHECK_FALSE(index.lookup(root, text(0)).page.valid());
  CHECK(index.lookup(forged, text(0)).page == PageId{1});
  CHECK(index.withdraw(PageId{1}).last);
}

TEST_CASE("a crafted collision of the digest itself does not match") {
  // XXH3 is no cryptographic hash: these two (parent digest, tokens) have one digest.
  const PrefixLink p{{0xbe4ba423396cfeb8ULL, 0x955e8614a4aeac53ULL}, 7};
  const PrefixLink q{{0xbe4ba423396cfeb9ULL, 0x24950774290d287bULL}, 7};
  std::vector<TokenId> a(64), b(64);
  std::iota(a.begin(), a.end(), 0);
  std::iota(b.begin(), b.end(), 100);
  REQUIRE(hash_page(p.hash, a) == hash_page(q.hash, b));
  PrefixIndex index = PrefixIndex::create(2, 64).value();
  const auto published = index.publish(PageId{0}, p, a);
  CHECK_FALSE(index.lookup(q, b).page.valid());
  const auto other = index.publish(PageId{1}, q, b);
  CHECK(other.link.hash == published.link.hash);
  CHECK(other.link.id != published.link.id);
  CHECK(index.lookup(q, b).page == PageId{1});
  CHECK(index.lookup(p, a).page == PageId{0});
}

TEST_CASE("a run of pages is found as page after page is") {
  PrefixIndex index = make(64);
  std::vector<TokenId> tokens(36 * page_size);
  std::iota(tokens.begin(), tokens.end(), 0);
  std::vector<PrefixLink> links = {root};
  for (int k = 0; k < 34; ++k) {
    links.push_back(index.publish(PageId{63 - k}, links.back(), text(k * page_size)).link);
  }
  std::vector<PrefixIndex::Match> out(36);
  const auto run = [&](std::size_t from, std::size_t pages) {
    return index.lookup_run(links[from],
                            std::span(tokens).subspan(from * page_size, pages * page_size), out);
  };
  CHECK(run(0, 36) == 32);  // as many as one call takes
  CHECK(out[31].page == PageId{32});
  CHECK(out[31].link.id == links[32].id);
  CHECK(out[31].link.hash == links[32].hash);
  CHECK(run(4, 32) == 30);  // to the end of what is there
  CHECK(out[29].page == PageId{30});
  CHECK(run(0, 3) == 3);
  CHECK(run(34, 2) == 0);
  CHECK(run(3, 0) == 0);
  index.withdraw(PageId{61});
  CHECK(run(0, 8) == 2);
  CHECK(index.lookup_run(links[1], tokens, out) == 0);
}

TEST_CASE("two pages with one hash: removed only with the last") {
  PrefixIndex index = make(8);
  const auto first = index.publish(PageId{5}, root, text(0));
  const auto second = index.publish(PageId{1}, root, text(0));
  const auto third = index.publish(PageId{3}, root, text(0));
  CHECK(first.first);
  CHECK_FALSE(second.first);
  CHECK_FALSE(third.first);
  CHECK(second.link.id == first.link.id);
  CHECK(third.link.id == first.link.id);
  std::vector<int> order = {5, 1, 3};
  const std::size_t last = static_cast<std::size_t>(GENERATE(0, 1, 2));
  std::swap(order[last], order[2]);
  CHECK_FALSE(index.withdraw(PageId{order[0]}).last);
  CHECK(index.lookup(root, text(0)).page.valid());
  CHECK_FALSE(index.withdraw(PageId{order[1]}).last);
  CHECK(index.lookup(root, text(0)).page == PageId{order[2]});
  CHECK(index.withdraw(PageId{order[2]}).last);
  CHECK_FALSE(index.lookup(root, text(0)).page.valid());
}

TEST_CASE("chains of a bucket stay whole") {
  // A pool of 2 has 4 buckets: with duplicates of few texts the chains mix.
  PrefixIndex index = make(64);
  std::vector<std::uint64_t> ids(64);
  for (int round = 0; round < 50; ++round) {
    for (int p = 0; p < 64; ++p) {
      const int key = (p * 7 + round) % 24;
      ids[static_cast<std::size_t>(p)] = index.publish(PageId{p}, root, text(key)).link.id;
    }
    for (int key = 0; key < 24; ++key) {
      const auto hit = index.lookup(root, text(key));
      REQUIRE(hit.page.valid());
      REQUIRE((hit.page.value * 7 + round) % 24 == key);
    }
    std::vector<int> left(24, 0);
    for (int p = 0; p < 64; ++p) ++left[static_cast<std::size_t>((p * 7 + round) % 24)];
    for (int i = 0; i < 64; ++i) {
      const int p = (i * 37 + round * 11) % 64;  // a permutation
      const int key = (p * 7 + round) % 24;
      const bool last = --left[static_cast<std::size_t>(key)] == 0;
      REQUIRE(index.withdraw(PageId{p}).last == last);
      REQUIRE(index.lookup(root, text(key)).page.valid() == !last);
    }
    REQUIRE(index.size() == 0);
  }
}

TEST_CASE("the LRU is in the order of pushes, whatever leaves") {
  PrefixIndex index = make(5);
  for (int p = 0; p < 5; ++p) index.publish(PageId{p}, root, text(p));
  CHECK_FALSE(index.lru_oldest().valid());
  for (const int p : {3, 1, 4, 0}) index.lru_push(PageId{p});
  CHECK(index.lru_size() == 4);
  CHECK(index.in_lru(PageId{4}));
  CHECK_FALSE(index.in_lru(PageId{2}));
  index.lru_remove(PageId{2});  // not in it: nothing happens
  index.lru_remove(PageId{1});
  index.lru_remove(PageId{1});
  index.withdraw(PageId{4});
  CHECK(index.lru_size() == 2);
  CHECK(index.lru_oldest() == PageId{3});
  CHECK(index.lru_newer(PageId{3}) == PageId{0});
  CHECK_FALSE(index.lru_newer(PageId{0}).valid());
  index.lru_remove(PageId{3});
  index.lru_push(PageId{3});
  CHECK(index.lru_oldest() == PageId{0});
  index.withdraw(PageId{0});
  index.withdraw(PageId{3});
  CHECK_FALSE(index.lru_oldest().valid());
  CHECK(index.lru_size() == 0);
  index.publish(PageId{3}, root, text(9));
  CHECK_FALSE(index.in_lru(PageId{3}));
}

TEST_CASE("an index's sizes are checked") {
  CHECK(PrefixIndex::create(0, 16).code() == StatusCode::invalid_argument);
  CHECK(PrefixIndex::create(std::int64_t{1} << 31, 16).code() == StatusCode::invalid_argument);
  CHECK(PrefixIndex::create(4, 0).code() == StatusCode::invalid_argument);
}

TEST_CASE("pages with the highest ids can be published") {
  // As many pages as the machine grants address space for.
  for (const std::int64_t pages : {0x7fffffffLL, 0x3fffffffLL, 0xfffffffLL, 0xffffffLL}) {
    if (test::shadow_memory && pages > 0xffffff) continue;
    Result<PrefixIndex> index = PrefixIndex::create(pages, page_size);
    if (!index.ok()) {
      CHECK(index.code() == StatusCode::out_of_memory);
      continue;
    }
    const PageId top{static_cast<std::int32_t>(pages - 1)};
    const PageId below{top.value - 1};
    const PrefixLink link = index->publish(top, root, text(0)).link;
    CHECK(index->publish(below, root, text(0)).link.id == link.id);
    CHECK(index->lookup(root, text(0)).page == top);
    index->lru_push(top);
    index->lru_push(below);
    CHECK(index->lru_oldest() == top);
    CHECK_FALSE(index->withdraw(top).last);
    CHECK(index->lookup(root, text(0)).page == below);
    CHECK(index->lru_oldest() == below);
    CHECK(index->withdraw(below).last);
    return;
  }
  FAIL("not even 2^24 pages");
}

TEST_CASE("the index allocates no memory after its creation") {
  PrefixIndex index = make(8);
  const std::vector<TokenId> tokens = text(3);
  const test::AllocationCounter allocations;
  for (int p = 0; p < 8; ++p) index.publish(PageId{p}, root, tokens);
  const bool hit = index.lookup(root, tokens).page.valid();
  for (int p = 0; p < 8; ++p) index.lru_push(PageId{p});
  for (int p = 0; p < 8; ++p) index.withdraw(PageId{p});
  const std::int64_t count = allocations.count();
  CHECK(hit);
  CHECK(count == 0);
}
