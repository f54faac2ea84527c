// SPDX-License-Identifier: Apache-2.0
// Sequences: growth, append, fork, rollback, release.
#include <cstdint>
#include <vector>

#include "growpage/cache/page_manager.hpp"
#include "support/allocation_counter.hpp"
#include "support/catch.hpp"
#include "support/manager_engine.hpp"
#include "support/sanitizer.hpp"

using namespace growpage;
using test::Engine;
using test::text;
using test::operator+;

TEST_CASE("options of a page manager are checked") {
  const auto code = [](auto change) {
    PageManagerOptions options;
    options.pages = 4;
    options.page_size = 16;
    options.max_sequences = 2;
    options.max_pages_per_sequence = 4;
    change(options);
    return PageManager::create(options).code();
  };
  CHECK(code([](auto&) {}) == StatusCode::ok);
  CHECK(code([](auto& o) { o.pages = 0; }) == StatusCode::invalid_argument);
  CHECK(code([](auto& o) { o.pages = std::int64_t{1} << 31; }) == StatusCode::invalid_argument);
  CHECK(code([](auto& o) { o.page_size = 8; }) == StatusCode::invalid_argument);
  CHECK(code([](auto& o) { o.page_size = 48; }) == StatusCode::invalid_argument);
  CHECK(code([](auto& o) { o.max_sequences = 0; }) == StatusCode::invalid_argument);
  CHECK(code([](auto& o) { o.max_pages_per_sequence = 0; }) == StatusCode::invalid_argument);
  if (!test::shadow_memory) {
    CHECK(code([](auto& o) { o.max_pages_per_sequence = 0x7ffffff; }) == StatusCode::ok);
  }
  CHECK(code([](auto& o) { o.max_pages_per_sequence = 0x8000000; }) ==
        StatusCode::invalid_argument);
  CHECK(code([](auto& o) { o.host_pages = -1; }) == StatusCode::invalid_argument);
  CHECK(code([](auto& o) { o.max_fences = 0; }) == StatusCode::invalid_argument);
  CHECK(code([](auto& o) { o.event_capacity = -1; }) == StatusCode::invalid_argument);
}

TEST_CASE("the ends of pages: P*b - 1, P*b and P*b + 1 tokens") {
  Engine e(8);
  const int extra = GENERATE(-1, 0, 1);
  const auto tokens = text(static_cast<std::size_t>(3 * 16 + extra));
  const SequenceId id = e.admit(tokens, {}, 0);
  CHECK(e.m.append(id, 1, tokens.data(), e.copies) == StatusCode::at_capacity);
  e.append(id, tokens);
  CHECK(e.view(id).slots == 48 + extra);
  CHECK(e.view(id).length == 48 + extra);
  CHECK(e.view(id).computed == 48 + extra);
  CHECK(e.view(id).pages.size() == (extra == 1 ? 4 : 3));
  CHECK(e.m.physical_slot(id, 47 + extra) == e.table(id).back() * 16 + (47 + extra) % 16);
  // One more token fits unless the last page is full.
  const Status one = e.m.append(id, 1, tokens.data(), e.copies);
  CHECK((extra == 0 ? one == StatusCode::at_capacity : one.ok()));
  e.release(id);
  // A later equal prompt finds every full page, but one token is left to compute.
  CHECK(e.m.match_length(tokens) == (extra == 1 ? 48 : 32));
}

TEST_CASE("a prefill that fails after a prefix match gives every reference back") {
  Engine e(8);
  e.run(text(33));
  const PageCounts before = e.m.counts();
  const SequenceId failed = e.admit(text(60), {}, 32);
  CHECK(e.m.counts().referenced == 2);
  e.append(failed, text(28, 32), false);
  e.release(failed);
  CHECK(e.m.counts().free == before.free);
  CHECK(e.m.counts().cached == before.cached);
  CHECK(e.m.match_length(text(60)) == 32);  // nothing more than before
  CHECK(e.m.live_sequences() == 0);
}

TEST_CASE("fork, then append on both sides: one copy") {
  Engine e(8);
  const SequenceId a = e.prefill(text(20));
  const SequenceId b = e.m.fork(a).value();
  e.check();
  CHECK(e.table(b) == e.table(a));
  CHECK(e.m.private_pages(a) == 0);
  CHECK(e.m.counts().referenced == 2);
  const int tail = e.table(a)[1];

  e.append(a, text(1, 77));
  REQUIRE(e.copies.size() == 1);
  CHECK(e.copies[0].source == PageId{tail});
  CHECK(e.copies[0].target == PageId{e.table(a)[1]});
  CHECK(e.table(a)[1] != tail);
  CHECK(e.table(b)[1] == tail);
  CHECK(e.m.copied_pages() == 1);
  CHECK(e.m.private_pages(a) == 1);

  e.append(b, text(1, 88));
  CHECK(e.copies.size() == 1);  // b owns the page now
  CHECK(e.table(b)[1] == tail);
  CHECK(e.m.counts().referenced == 3);
  e.release(a);
  e.release(b);
  CHECK(e.m.counts().referenced == 0);
}

TEST_CASE("copy-on-write without a page to copy to changes nothing") {
  Engine e(2);
  const SequenceId a = e.prefill(text(20));
  const SequenceId b = e.m.fork(a).value();
  const TokenId token = 5;
  CHECK(e.m.append(a, 1, &token, e.copies) == StatusCode::out_of_pages);
  e.check();
  CHECK(e.copies.empty());
  CHECK(e.view(a).slots == 20);
  e.release(b);
  CHECK(e.m.append(a, 1, &token, e.copies).ok());
  CHECK(e.copies.empty());
}

TEST_CASE("an empty page that a fork shares is replaced without a copy") {
  Engine e(4);
  const SequenceId a = e.prefill(text(16));
  REQUIRE(e.m.grow(a).ok());
  const SequenceId b = e.m.fork(a).value();
  e.append(a, text(1));
  CHECK(e.copies.empty());
  CHECK(e.table(a)[0] == e.table(b)[0]);
  CHECK(e.table(a)[1] != e.table(b)[1]);
}

TEST_CASE("rolling back over page ends 1,000 times leaks nothing") {
  Engine e(8);
  const SequenceId id = e.prefill(text(30));
  const PageCounts before = e.m.counts();
  for (int round = 0; round < 1000; ++round) {
    e.append(id, text(5, 1000 * (round % 3)));  // slots 30 … 34: over the end of page 1
    REQUIRE(e.m.truncate(id, 30).ok());
    e.check();
    REQUIRE(e.m.counts().referenced == before.referenced);
    REQUIRE(e.view(id).length == 30);
    REQUIRE(e.view(id).computed == 30);
  }
  CHECK(e.copies.empty());
  e.release(id);
  CHECK(e.m.counts().referenced == 0);
  CHECK(e.m.counts().free + e.m.counts().cached == 8);
}

TEST_CASE("a rolled-back page that another sequence reads is copied, not overwritten") {
  Engine e(8);
  const SequenceId a = e.prefill(text(40));
  const SequenceId b = e.admit(text(40), {}, 32);
  REQUIRE(e.m.truncate(a, 20).ok());
  e.append(a, text(1, 900));
  REQUIRE(e.copies.size() == 1);
  CHECK(e.copies[0].source == PageId{e.table(b)[1]});
  CHECK(e.m.match_length(text(40)) == 32);
}

TEST_CASE("truncate checks its argument and drops pages without tokens") {
  Engine e(8);
  const SequenceId id = e.prefill(text(40));
  CHECK(e.m.truncate(id, 41) == StatusCode::invalid_argument);
  CHECK(e.m.truncate(id, -1) == StatusCode::invalid_argument);
  REQUIRE(e.m.truncate(id, 32).ok());
  CHECK(e.view(id).pages.size() == 2);
  REQUIRE(e.m.truncate(id, 0).ok());
  CHECK(e.view(id).pages.empty());
  e.check();
  e.append(id, text(40));
  CHECK(e.view(id).slots == 40);
}

TEST_CASE("reserve is all or nothing") {
  Engine e(4);
  const SequenceId id = e.prefill(text(10));
  CHECK(e.m.reserve(id, 64) == StatusCode::out_of_pages);
  CHECK(e.view(id).pages.size() == 1);
  CHECK(e.m.reserve(id, 54).ok());
  CHECK(e.view(id).pages.size() == 4);
  CHECK(e.m.reserve(id, 54).ok());  // there already
  CHECK(e.m.reserve(id, -1) == StatusCode::invalid_argument);
  CHECK(e.m.reserve(id, INT64_MAX) == StatusCode::invalid_argument);
  CHECK(e.m.append(id, INT64_MAX, nullptr, e.copies) == StatusCode::at_capacity);
  CHECK(e.m.append(id, -1, nullptr, e.copies) == StatusCode::invalid_argument);
  CHECK(e.m.append(id, 0, nullptr, e.copies).ok());
  CHECK(e.m.mark_computed(id, 11) == StatusCode::invalid_argument);
  CHECK(e.m.mark_computed(id, -1) == StatusCode::invalid_argument);
  CHECK(e.m.mark_computed(id, 3).ok());
  CHECK(e.view(id).computed == 10);  // never steps back
}

TEST_CASE("a table grows to its columns and no further") {
  PageManagerOptions options;
  options.pages = 8;
  options.page_size = 16;
  options.max_sequences = 1;
  options.max_pages_per_sequence = 2;
  Engine e(options);
  const SequenceId id = e.admit({});
  CHECK(e.m.grow(id).ok());
  CHECK(e.m.grow(id).ok());
  CHECK(e.m.grow(id) == StatusCode::invalid_argument);
  CHECK(e.m.reserve(id, 33) == StatusCode::invalid_argument);
  CHECK(e.m.admit({}).code() == StatusCode::out_of_sequences);
  CHECK(e.m.fork(id).code() == StatusCode::out_of_sequences);
  e.check();
  e.append(id, text(32));
  e.release(id);
  CHECK(e.m.match_length(text(100)) == 32);  // no more than the table holds
  e.run(text(32), {}, 16);
}

TEST_CASE("ids of sequences that are gone are stale for every call") {
  Engine e(4, 4);
  const SequenceId gone = e.prefill(text(16));
  e.release(gone);
  const SequenceId now = e.admit({});
  CHECK(now.index == gone.index);
  for (const SequenceId id : {gone, SequenceId{}, SequenceId{999, 1}}) {
    CHECK_FALSE(e.m.alive(id));
    CHECK(e.m.view(id).code() == StatusCode::stale_id);
    CHECK(e.m.grow(id) == StatusCode::stale_id);
    CHECK(e.m.reserve(id, 1) == StatusCode::stale_id);
    CHECK(e.m.append(id, 1, nullptr, e.copies) == StatusCode::stale_id);
    CHECK(e.m.mark_computed(id, 0) == StatusCode::stale_id);
    CHECK(e.m.fork(id).code() == StatusCode::stale_id);
    CHECK(e.m.truncate(id, 0) == StatusCode::stale_id);
    CHECK(e.m.release(id) == StatusCode::stale_id);
    CHECK(e.m.begin_compaction(id, 1, {}, {}, e.copies).code() == StatusCode::stale_id);
    CHECK(e.m.page_marks(id, 0, {}) == StatusCode::stale_id);
    CHECK(e.m.apply_compaction({id, {}, 1, {}}, {}, {}, 0) == StatusCode::stale_id);
    CHECK(e.m.cancel_compaction({id, {}, 1, {}}) == StatusCode::stale_id);
    CHECK(e.m.swap_out(id, e.transfers).code() == StatusCode::stale_id);
    CHECK(e.m.swap_in(id, e.transfers).code() == StatusCode::stale_id);
    CHECK(e.m.guard(id).code() == StatusCode::stale_id);
    CHECK(e.m.private_pages(id) == 0);
  }
  CHECK(e.m.alive(now));
}

TEST_CASE("the manager allocates no memory after its creation") {
  Engine e(64, 16);
  e.copies.reserve(64);
  e.transfers.reserve(64);
  const auto prompt = text(70);
  bool good = true;
  const auto must = [&](bool ok) { good = good && ok; };
  const test::AllocationCounter allocations;
  for (int round = 0; round < 20; ++round) {
    e.copies.clear();
    e.transfers.clear();
    const auto admission = e.m.admit(prompt);
    must(admission.ok());
    const SequenceId id = admission->sequence;
    const std::int64_t left = 70 - admission->matched;
    must(e.m.reserve(id, left).ok());
    must(e.m.append(id, left, prompt.data() + admission->matched, e.copies).ok());
    must(e.m.mark_computed(id, 70).ok());
    const auto fork = e.m.fork(id);
    must(e.m.append(id, 10, nullptr, e.copies).ok());
    must(e.m.append(*fork, 4, prompt.data(), e.copies).ok());
    must(e.m.mark_computed(id, 80).ok());
    must(e.m.truncate(*fork, 33).ok());
    must(e.m.grow(*fork).ok());
    const auto guard = e.m.guard(id);
    must(e.m.complete_fence(*guard).ok());
    const auto out = e.m.swap_out(*fork, e.transfers);
    must(out.ok() && e.m.complete_fence(*out).ok());
    const auto in = e.m.swap_in(*fork, e.transfers);
    must(in.ok() && e.m.complete_fence(*in).ok());
    const auto ticket =
        e.m.begin_compaction(id, 1, CompactionStrategy::fill_holes, SharedPages::copy, e.copies);
    must(ticket.ok());
    CompactionPlan plan;
    plan.victims = 1;
    plan.victim[0] = 2;
    must(e.m.apply_compaction(*ticket, plan, {}, 16).ok());
    must(e.m.complete_fence(ticket->fence).ok());
    must(e.m.release(id).ok());
    must(e.m.release(*fork).ok());
  }
  const std::int64_t count = allocations.count();
  CHECK(good);
  CHECK(count == 0);
  e.check();
}
