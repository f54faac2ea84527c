// SPDX-License-Identifier: Apache-2.0
// Compaction: begin, apply, cancel, and what waits for the fence.
#include <cstdint>
#include <vector>

#include "growpage/cache/page_manager.hpp"
#include "support/catch.hpp"
#include "support/manager_engine.hpp"

using namespace growpage;
using test::Engine;
using test::text;
using test::operator+;

namespace {

constexpr auto fill_holes = CompactionStrategy::fill_holes;
constexpr auto in_order = CompactionStrategy::in_order;
constexpr auto keep = SharedPages::keep;
constexpr auto copy = SharedPages::copy;

CompactionPlan plan_of(CompactionStrategy strategy, int victim, int second = -1) {
  CompactionPlan plan;
  plan.strategy = strategy;
  plan.victims = second < 0 ? 1 : 2;
  plan.victim[0] = victim;
  plan.victim[1] = second;
  return plan;
}

}  // namespace

TEST_CASE("Compress & Hold frees one page of slots and keeps the pages") {
  Engine e(8);
  const SequenceId id = e.prefill(text(64));
  const std::vector<int> before = e.table(id);
  const auto ticket = e.m.begin_compaction(id, 1, fill_holes, keep, e.copies);
  REQUIRE(ticket.ok());
  CHECK(e.view(id).busy);
  CHECK(e.view(id).slots == 64);
  const std::vector<std::int32_t> kept = {10, 14, 8, 16};
  REQUIRE(e.m.apply_compaction(*ticket, plan_of(fill_holes, 1), kept, 16).ok());
  e.check();
  CHECK(e.table(id) == std::vector<int>{before[0], before[2], before[3], before[1]});
  CHECK(e.view(id).slots == 48);
  CHECK(e.view(id).length == 64);
  CHECK(e.view(id).computed == 48);
  CHECK(e.view(id).compactions == 1);
  CHECK(e.view(id).busy);
  REQUIRE(e.m.complete_fence(ticket->fence).ok());
  CHECK_FALSE(e.view(id).busy);
  CHECK(e.m.complete_fence(ticket->fence) == StatusCode::stale_id);
  CHECK(e.m.counts().referenced == 4);
}

TEST_CASE("Shrink returns a second page, in flight until the fence") {
  Engine e(4);
  const SequenceId id = e.prefill(text(64));
  const std::vector<int> before = e.table(id);
  const auto ticket = e.m.begin_compaction(id, 2, fill_holes, keep, e.copies);
  REQUIRE(ticket.ok());
  REQUIRE(e.m.apply_compaction(*ticket, plan_of(fill_holes, 0, 2), {}, 16).ok());
  e.check();
  CHECK(e.table(id) == std::vector<int>{before[1], before[3], before[0]});
  CHECK(e.view(id).slots == 32);
  CHECK(e.m.counts().in_flight == 1);
  const SequenceId other = e.admit({});
  CHECK(e.m.grow(other) == StatusCode::out_of_pages);
  REQUIRE(e.m.complete_fence(ticket->fence).ok());
  REQUIRE(e.m.grow(other).ok());
  CHECK(e.table(other) == std::vector<int>{before[2]});
}

TEST_CASE("the position after two compactions is the true length") {
  Engine e(8);
  const SequenceId id = e.prefill(text(64));
  e.compact(id, 0);
  CHECK(e.view(id).length == 64);
  CHECK(e.view(id).slots == 48);
  e.append(id, text(16, 64));
  CHECK(e.view(id).length == 80);
  CHECK(e.view(id).slots == 64);
  e.compact(id, 1);
  CHECK(e.view(id).length == 80);
  CHECK(e.view(id).slots == 48);
  CHECK(e.view(id).compactions == 2);
  e.append(id, text(3, 80));
  CHECK(e.view(id).length == 83);
  CHECK(e.view(id).slots == 51);
  CHECK(e.view(id).pages.size() == 4);
}

TEST_CASE("rollback ends at the last compaction") {
  Engine e(8);
  const SequenceId id = e.prefill(text(64));
  e.compact(id, 0);
  e.append(id, text(20, 64));
  CHECK(e.view(id).pages.size() == 5);
  const Status behind = e.m.truncate(id, 63);
  CHECK(behind == StatusCode::behind_compaction);
  REQUIRE(behind.detail() != nullptr);
  CHECK(
      behind.message() ==
      "behind_compaction: length is 63; allowed: at least the length at the last compaction (64)");
  REQUIRE(e.m.truncate(id, 64).ok());
  CHECK(e.view(id).slots == 48);
  CHECK(e.view(id).pages.size() == 4);  // those of the compaction, the empty one included
  e.check();
}

TEST_CASE("only pages that lost rows are withdrawn, and later ones are not published") {
  Engine e(8);
  const SequenceId id = e.prefill(text(80));
  CHECK(e.m.match_length(text(81)) == 80);
  const auto ticket = e.m.begin_compaction(id, 1, fill_holes, keep, e.copies);
  REQUIRE(ticket.ok());
  const std::vector<std::int32_t> kept = {16, 16, 9, 7, 16};
  REQUIRE(e.m.apply_compaction(*ticket, plan_of(fill_holes, 3), kept, 16).ok());
  REQUIRE(e.m.complete_fence(ticket->fence).ok());
  e.check();
  CHECK(e.m.match_length(text(81)) == 32);
  e.append(id, text(16, 80));
  CHECK(e.m.match_length(text(97)) == 32);
  e.release(id);
  CHECK(e.m.match_length(text(97)) == 32);
  CHECK(e.m.counts().cached == 3);  // pages 0 and 1, and 4, whose parent is gone
}

TEST_CASE("in_order also withdraws full pages behind a hole") {
  Engine e(8);
  const SequenceId id = e.prefill(text(80));
  const auto ticket = e.m.begin_compaction(id, 1, in_order, keep, e.copies);
  REQUIRE(ticket.ok());
  const std::vector<std::int32_t> kept = {16, 0, 16, 16, 16};
  REQUIRE(e.m.apply_compaction(*ticket, plan_of(in_order, 4), kept, 16).ok());
  REQUIRE(e.m.complete_fence(ticket->fence).ok());
  e.check();
  e.release(id);
  CHECK(e.m.match_length(text(97)) == 16);
  CHECK(e.m.counts().cached == 1);
}

TEST_CASE("keep: shared pages are not private and too few private ones refuse") {
  Engine e(16);
  const SequenceId a = e.prefill(text(64));
  const SequenceId b = e.prefill(text(48) + text(16, 900), {}, 48);
  const int tail = e.table(b)[3];
  CHECK(e.m.private_pages(b) == 1);
  CHECK(e.m.begin_compaction(b, 1, fill_holes, keep, e.copies).code() == StatusCode::at_capacity);
  std::vector<std::uint8_t> marks(4);
  REQUIRE(e.m.page_marks(b, 17, marks).ok());
  CHECK(marks == std::vector<std::uint8_t>{page_protected, page_protected, 0, page_private});
  std::vector<std::uint8_t> few(3);
  CHECK(e.m.page_marks(b, 17, few) == StatusCode::invalid_argument);

  SECTION("copy replaces them") {
    const auto ticket = e.m.begin_compaction(b, 1, fill_holes, copy, e.copies);
    REQUIRE(ticket.ok());
    e.check();
    REQUIRE(e.copies.size() == 3);
    for (std::size_t k = 0; k < 3; ++k) {
      CHECK(e.copies[k].source == PageId{e.table(a)[k]});
      CHECK(e.copies[k].target == PageId{e.table(b)[k]});
    }
    CHECK(e.table(b)[3] == tail);
    CHECK(e.m.private_pages(b) == 4);
    // The sources are guarded, though nobody but a has them now.
    e.release(a);
    CHECK(e.m.counts().in_flight == 4 - 1);
    SECTION("and the cancelled sequence goes on publishing") {
      REQUIRE(e.m.cancel_compaction(*ticket).ok());
      e.check();
      CHECK_FALSE(e.view(b).busy);
      CHECK(e.m.cancel_compaction(*ticket) == StatusCode::protocol_error);
      e.append(b, text(16, 916));
      CHECK(e.m.match_length(text(48) + text(33, 900)) == 80);
    }
    SECTION("and the compacted one does not") {
      REQUIRE(e.m.apply_compaction(*ticket, plan_of(fill_holes, 0), {}, 16).ok());
      REQUIRE(e.m.complete_fence(ticket->fence).ok());
      e.check();
      CHECK(e.m.match_length(text(65)) == 64);  // a's pages, cached
    }
  }
  SECTION("copy without the pages for it changes nothing") {
    const SequenceId c = e.admit({});
    REQUIRE(e.m.reserve(c, 16 * (e.m.allocatable() - 2)).ok());
    const std::vector<int> before = e.table(b);
    CHECK(e.m.begin_compaction(b, 1, fill_holes, copy, e.copies).code() ==
          StatusCode::out_of_pages);
    CHECK(e.table(b) == before);
    CHECK(e.copies.empty());
    CHECK_FALSE(e.view(b).busy);
    e.check();
  }
}

TEST_CASE("what a compaction needs is checked") {
  Engine e(8);
  const SequenceId id = e.prefill(text(63));
  CHECK(e.m.begin_compaction(id, 1, fill_holes, keep, e.copies).code() ==
        StatusCode::invalid_argument);  // a slot is free
  e.append(id, text(1, 63), false);
  CHECK(e.m.begin_compaction(id, 1, fill_holes, keep, e.copies).code() ==
        StatusCode::invalid_argument);  // not computed
  REQUIRE(e.m.mark_computed(id, 64).ok());
  CHECK(e.m.begin_compaction(id, 0, fill_holes, keep, e.copies).code() ==
        StatusCode::invalid_argument);
  CHECK(e.m.begin_compaction(id, 3, fill_holes, keep, e.copies).code() ==
        StatusCode::invalid_argument);
  const auto ticket = e.m.begin_compaction(id, 1, fill_holes, keep, e.copies);
  REQUIRE(ticket.ok());

  // Everything else waits for the fence.
  CHECK(e.m.append(id, 1, nullptr, e.copies) == StatusCode::busy);
  CHECK(e.m.grow(id) == StatusCode::busy);
  CHECK(e.m.reserve(id, 1) == StatusCode::busy);
  CHECK(e.m.mark_computed(id, 1) == StatusCode::busy);
  CHECK(e.m.truncate(id, 64) == StatusCode::busy);
  CHECK(e.m.fork(id).code() == StatusCode::busy);
  CHECK(e.m.swap_out(id, e.transfers).code() == StatusCode::busy);
  CHECK(e.m.swap_in(id, e.transfers).code() == StatusCode::busy);
  CHECK(e.m.guard(id).code() == StatusCode::busy);
  CHECK(e.m.begin_compaction(id, 1, fill_holes, keep, e.copies).code() == StatusCode::busy);

  const auto apply = [&](const CompactionPlan& plan, std::span<const std::int32_t> kept = {}) {
    return e.m.apply_compaction(*ticket, plan, kept, 16);
  };
  CHECK(apply(plan_of(fill_holes, 0, 1)) == StatusCode::invalid_argument);
  CHECK(apply(plan_of(fill_holes, 4)) == StatusCode::invalid_argument);
  CompactionPlan none = plan_of(fill_holes, 0);
  none.victim[0] = -1;
  CHECK(apply(none) == StatusCode::invalid_argument);
  const std::vector<std::int32_t> three(3, 16);
  CHECK(apply(plan_of(fill_holes, 0), three) == StatusCode::invalid_argument);
  CompactionTicket forged = *ticket;
  forged.fence.generation += 1;
  CHECK(e.m.apply_compaction(forged, plan_of(fill_holes, 0), {}, 16) == StatusCode::protocol_error);
  CHECK(e.m.cancel_compaction(forged) == StatusCode::protocol_error);
  e.check();
  CHECK(apply(plan_of(fill_holes, 0)).ok());
  CHECK(apply(plan_of(fill_holes, 0)) == StatusCode::protocol_error);
  CHECK(e.m.cancel_compaction(*ticket) == StatusCode::protocol_error);
}

TEST_CASE("victims are ascending and two of them leave in any place") {
  Engine e(8);
  const SequenceId id = e.prefill(text(80));
  const std::vector<int> p = e.table(id);
  const auto ticket = e.m.begin_compaction(id, 2, in_order, keep, e.copies);
  REQUIRE(ticket.ok());
  CHECK(e.m.apply_compaction(*ticket, plan_of(in_order, 4, 3), {}, 16) ==
        StatusCode::invalid_argument);
  CHECK(e.m.apply_compaction(*ticket, plan_of(in_order, 3, 3), {}, 16) ==
        StatusCode::invalid_argument);
  REQUIRE(e.m.apply_compaction(*ticket, plan_of(in_order, 3, 4), {}, 16).ok());
  e.check();
  CHECK(e.table(id) == std::vector<int>{p[0], p[1], p[2], p[3]});
}

TEST_CASE("a sequence released during its compaction leaves its pages in flight") {
  Engine e(4);
  const SequenceId id = e.prefill(text(64));
  const auto ticket = e.m.begin_compaction(id, 1, fill_holes, keep, e.copies);
  REQUIRE(ticket.ok());
  const bool applied = GENERATE(false, true);
  if (applied) {
    const std::vector<std::int32_t> kept = {16, 16, 8, 8};
    REQUIRE(e.m.apply_compaction(*ticket, plan_of(fill_holes, 3), kept, 16).ok());
  }
  e.release(id);
  CHECK(e.m.counts().in_flight == 4);
  CHECK(e.m.allocatable() == 0);
  const SequenceId other = e.admit({});  // has the record of the first one
  CHECK(other.index == id.index);
  CHECK(e.m.grow(other) == StatusCode::out_of_pages);
  CHECK(e.m.cancel_compaction(*ticket) == StatusCode::stale_id);
  REQUIRE(e.m.complete_fence(ticket->fence).ok());
  e.check();
  CHECK_FALSE(e.view(other).busy);
  CHECK(e.m.counts().in_flight == 0);
  // Rows may have moved anywhere unless the plan says where.
  CHECK(e.m.match_length(text(65)) == (applied ? 32 : 0));
  CHECK(e.m.counts().cached == (applied ? 2 : 0));
}

TEST_CASE("pages that may be rewritten just now are not matched") {
  Engine e(8);
  const SequenceId id = e.prefill(text(64));
  const auto ticket = e.m.begin_compaction(id, 1, fill_holes, keep, e.copies);
  REQUIRE(ticket.ok());
  CHECK(e.m.match_length(text(65)) == 0);
  REQUIRE(e.m.cancel_compaction(*ticket).ok());
  CHECK(e.m.match_length(text(65)) == 64);
}

TEST_CASE("shared pages stay matched while a sequence that reads them is compacted") {
  Engine e(16);
  const SequenceId a = e.prefill(text(32) + text(48, 500));
  const SequenceId b = e.admit(text(48), {}, 32);
  const auto ticket = e.m.begin_compaction(a, 1, fill_holes, keep, e.copies);
  REQUIRE(ticket.ok());
  CHECK(e.m.match_length(text(48)) == 32);
  CHECK(e.m.apply_compaction(*ticket, plan_of(fill_holes, 1), {}, 16) ==
        StatusCode::invalid_argument);  // b reads that page
  REQUIRE(e.m.apply_compaction(*ticket, plan_of(fill_holes, 2), {}, 16).ok());
  e.check();
  CHECK(e.table(a)[0] == e.table(b)[0]);
  CHECK(e.m.match_length(text(48)) == 32);
}
