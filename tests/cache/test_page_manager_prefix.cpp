// SPDX-License-Identifier: Apache-2.0
// The prefix cache: what is matched, published, evicted and reported.
#include <cstdint>
#include <utility>
#include <vector>

#include "growpage/cache/page_manager.hpp"
#include "support/catch.hpp"
#include "support/manager_engine.hpp"

using namespace growpage;
using test::Engine;
using test::text;
using test::operator+;

TEST_CASE("a full hit at a page multiple still computes one token") {
  Engine e(8);
  e.run(text(32));
  CHECK(e.m.match_length(text(32)) == 16);
  CHECK(e.m.match_length(text(33)) == 32);
  CHECK(e.m.match_length(text(16)) == 0);
  CHECK(e.m.match_length({}) == 0);
  e.run(text(32), {}, 16);
}

TEST_CASE("a reused page's stale hash does not hit") {
  Engine e(3);
  const auto a = text(16, 100), b = text(16, 200), last = text(1, 7);
  e.run(b + a + last);  // pages: b, a below b, rest
  e.run(b + last, {}, 16);
  e.run(a + last, {}, 0);  // takes a page of the pool's three: a below b, the older one
  CHECK(e.m.match_length(b + a + last) == 16);  // b is there, a below b is not
  e.run(b + a + last, {}, 16);
}

TEST_CASE("salt, LoRA and modality never share") {
  Engine e(16);
  const auto tokens = text(40);
  ExtraKey salt, lora, image;
  salt.salt = lora.lora = image.modality = "X";
  image.modality_from = 0;
  e.run(tokens);
  CHECK(e.m.match_length(tokens, salt) == 0);
  e.run(tokens, salt, 0);
  CHECK(e.m.match_length(tokens, lora) == 0);
  e.run(tokens, lora, 0);
  CHECK(e.m.match_length(tokens, image) == 0);
  e.run(tokens, image, 0);
  for (const ExtraKey& key : {ExtraKey{}, salt, lora, image}) {
    CHECK(e.m.match_length(tokens, key) == 32);
  }
}

TEST_CASE("pages wholly before the modality are shared without it") {
  Engine e(16);
  ExtraKey image, other;
  image.modality = "image";
  other.modality = "other";
  image.modality_from = other.modality_from = 40;  // in the third page
  const auto tokens = text(65);
  e.run(tokens, image, 0);
  CHECK(e.m.match_length(tokens, image) == 64);
  CHECK(e.m.match_length(tokens) == 32);
  CHECK(e.m.match_length(tokens, other) == 32);
  e.run(tokens, other, 32);
  CHECK(e.m.match_length(tokens, other) == 64);
  CHECK(e.m.match_length(tokens, image) == 64);
  image.modality_from = -1;
  CHECK(e.m.admit(tokens, image).code() == StatusCode::invalid_argument);
}

TEST_CASE("identical prompts admitted in one step share only what has been computed") {
  Engine e(8);
  const auto tokens = text(40);
  const SequenceId a = e.admit(tokens, {}, 0);
  e.append(a, tokens, false);
  const SequenceId b = e.admit(tokens, {}, 0);  // a's pages hold nothing yet
  REQUIRE(e.m.mark_computed(a, 20).ok());
  const SequenceId c = e.admit(tokens, {}, 16);  // of a's pages one is complete
  REQUIRE(e.m.mark_computed(a, 40).ok());
  const SequenceId d = e.admit(tokens, {}, 32);
  CHECK(e.table(c)[0] == e.table(a)[0]);
  CHECK(e.table(d) == std::vector<int>{e.table(a)[0], e.table(a)[1]});
  CHECK(e.table(b).empty());
}

TEST_CASE("two pages with one hash: the removed event comes with the last") {
  Engine e(4);
  const auto tokens = text(17);
  const SequenceId a = e.admit(tokens, {}, 0), b = e.admit(tokens, {}, 0);
  e.append(a, tokens);
  e.append(b, tokens);
  KvEvent event;
  REQUIRE(e.m.events().pop(event));
  CHECK(event.kind == KvEvent::Kind::stored);
  CHECK(event.page == PageId{e.table(a)[0]});
  CHECK(event.hash == hash_page(prefix_root({}).hash, text(16)));
  CHECK(event.parent == prefix_root({}).hash);
  CHECK(event.tokens == 16);
  CHECK_FALSE(e.m.events().pop(event));  // b's page added nothing
  const int first = e.table(a)[0];
  e.release(a);
  e.release(b);
  const SequenceId c = e.admit({});
  REQUIRE(e.m.reserve(c, 3 * 16).ok());  // evicts the first of the two
  CHECK(e.m.evicted_pages() == 1);
  CHECK_FALSE(e.m.events().pop(event));
  CHECK(e.m.match_length(tokens) == 16);
  REQUIRE(e.m.grow(c).ok());
  REQUIRE(e.m.events().pop(event));
  CHECK(event.kind == KvEvent::Kind::removed);
  CHECK(event.page != PageId{first});
  CHECK(e.m.match_length(tokens) == 0);
  CHECK(e.m.grow(c) == StatusCode::out_of_pages);
  CHECK_FALSE(e.m.events().pop(event));
}

TEST_CASE("no events are recorded without capacity for them") {
  PageManagerOptions options;
  options.pages = 4;
  options.page_size = 16;
  options.max_sequences = 2;
  options.max_pages_per_sequence = 4;
  Engine e(options);
  e.run(text(40));
  e.m.clear_prefix_cache();
  CHECK(e.m.events().size() == 0);
  CHECK(e.m.events().dropped() == 0);
}

TEST_CASE("children are evicted before their parents, older prefixes before newer ones") {
  Engine e(6);
  e.run(text(49, 0));    // three cached pages
  e.run(text(33, 500));  // two
  CHECK(e.m.counts().cached == 5);
  const SequenceId id = e.admit({});
  const std::vector<std::pair<std::int64_t, std::int64_t>> left = {{48, 32}, {32, 32}, {16, 32},
                                                                   {0, 32},  {0, 16},  {0, 0}};
  for (const auto& [older, newer] : left) {
    REQUIRE(e.m.grow(id).ok());
    CHECK(e.m.match_length(text(49, 0)) == older);
    CHECK(e.m.match_length(text(33, 500)) == newer);
  }
  CHECK(e.m.evicted_pages() == 5);
  CHECK(e.m.grow(id) == StatusCode::out_of_pages);
}

TEST_CASE("tokens that are not known end what is published") {
  Engine e(8);
  const SequenceId id = e.prefill(text(20));
  REQUIRE(e.m.reserve(id, 60).ok());
  REQUIRE(e.m.append(id, 5, nullptr, e.copies).ok());
  const auto more = text(30, 25);
  REQUIRE(e.m.append(id, 30, more.data(), e.copies).ok());
  REQUIRE(e.m.mark_computed(id, 55).ok());
  e.check();
  CHECK(e.m.match_length(text(60)) == 16);
  SECTION("until they are rolled back") {
    REQUIRE(e.m.truncate(id, 20).ok());
    e.append(id, text(30, 20));
    CHECK(e.m.match_length(text(60)) == 48);
  }
}

TEST_CASE("a prompt fed without the prefix cache is not published") {
  PageManagerOptions options;
  options.pages = 8;
  options.page_size = 16;
  options.max_sequences = 2;
  options.max_pages_per_sequence = 4;
  options.prefix_caching = false;
  Engine e(options);
  e.run(text(40));
  CHECK(e.m.match_length(text(40)) == 0);
  CHECK(e.m.counts().free == 8);
  e.run(text(40), {}, 0);
}

TEST_CASE("a page that is rolled back and refilled leaves no stale hash") {
  Engine e(8);
  const SequenceId id = e.prefill(text(40));
  CHECK(e.m.match_length(text(40)) == 32);
  REQUIRE(e.m.truncate(id, 20).ok());
  e.check();
  CHECK(e.view(id).pages.size() == 2);
  CHECK(e.m.match_length(text(40)) == 32);  // nothing has been overwritten yet
  e.append(id, text(1, 900));
  CHECK(e.m.match_length(text(40)) == 16);
  e.append(id, text(20, 901));
  CHECK(e.m.match_length(text(20) + text(21, 900)) == 32);
  CHECK(e.m.match_length(text(40)) == 16);
  CHECK(e.copies.empty());
}

TEST_CASE("a cleared prefix cache matches nothing from before, of running sequences neither") {
  Engine e(16);
  e.run(text(40, 100));
  const SequenceId running = e.prefill(text(40));
  e.m.clear_prefix_cache();
  e.check();
  CHECK(e.m.counts().cached == 0);
  CHECK(e.m.match_length(text(40, 100)) == 0);
  CHECK(e.m.match_length(text(40)) == 0);
  e.append(running, text(30, 40));
  CHECK(e.m.match_length(text(70)) == 0);  // its K/V is from before
  KvEvent event, last;
  while (e.m.events().pop(event)) last = event;
  CHECK(last.kind == KvEvent::Kind::cleared);
  e.release(running);
  CHECK(e.m.counts().free == 16);
  e.run(text(40), {}, 0);
  CHECK(e.m.match_length(text(40)) == 32);
}
