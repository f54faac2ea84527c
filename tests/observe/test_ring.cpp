// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <deque>

#include "growpage/observe/kv_events.hpp"
#include "growpage/observe/ring.hpp"
#include "support/catch.hpp"
#include "support/random_cache.hpp"

namespace growpage {
namespace {

TEST_CASE("EventRing: first in, first out; the oldest goes when it is full") {
  EventRing<int> ring(3);
  int out = -1;
  CHECK(ring.capacity() == 3);
  CHECK_FALSE(ring.pop(out));
  CHECK(out == -1);
  for (int i = 1; i <= 5; ++i) ring.push(i);
  CHECK(ring.size() == 3);
  CHECK(ring.dropped() == 2);
  for (int want = 3; want <= 5; ++want) {
    REQUIRE(ring.pop(out));
    CHECK(out == want);
  }
  CHECK_FALSE(ring.pop(out));
  CHECK(ring.size() == 0);
  CHECK(ring.dropped() == 2);  // since construction, draining does not reset it
}

TEST_CASE("EventRing: without capacity everything is dropped and counted") {
  EventRing<int> ring(0);
  int out = 0;
  ring.push(1);
  ring.push(2);
  CHECK(ring.dropped() == 2);
  CHECK(ring.size() == 0);
  CHECK_FALSE(ring.pop(out));
}

TEST_CASE("EventRing: behaves like a bounded deque") {
  for (const std::size_t capacity : {1u, 2u, 7u}) {
    CAPTURE(capacity);
    test::Random random(capacity);
    EventRing<int> ring(capacity);
    std::deque<int> model;
    std::int64_t dropped = 0;
    std::int64_t wrong = 0;
    for (int step = 0; step < 5000; ++step) {
      if (random.below(5) < 3) {
        ring.push(step);
        model.push_back(step);
        if (model.size() > capacity) {
          model.pop_front();
          ++dropped;
        }
      } else {
        int out = -1;
        const bool got = ring.pop(out);
        if (got != !model.empty()) ++wrong;
        if (got && !model.empty()) {
          wrong += out == model.front() ? 0 : 1;
          model.pop_front();
        }
      }
      wrong += ring.size() == model.size() ? 0 : 1;
    }
    CHECK(wrong == 0);
    CHECK(ring.dropped() == dropped);
    CHECK(dropped > 0);
  }
}

TEST_CASE("KvEventRing: carries events whole") {
  KvEventRing ring(2);
  ring.push({KvEvent::Kind::removed, PageId{7}, {1, 2}, {3, 4}, 16});
  KvEvent e;
  REQUIRE(ring.pop(e));
  CHECK(e.kind == KvEvent::Kind::removed);
  CHECK(e.page == PageId{7});
  CHECK(e.hash == Hash128{1, 2});
  CHECK(e.parent == Hash128{3, 4});
  CHECK(e.tokens == 16);
}

}  // namespace
}  // namespace growpage
