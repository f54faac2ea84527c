// SPDX-License-Identifier: Apache-2.0
// What happens when a request's pages are full. Pages of 16 tokens; a prompt of 5 tokens is
// prefilled in step 1, position p is decoded in step p − 3 as long as nothing holds it up.
#include <array>

#include "support/catch.hpp"
#include "support/serving.hpp"

namespace growpage::test {
namespace {

const auto kCompact = [](const BoundaryContext&) { return Decision::compact; };
const auto kShrink = [](const BoundaryContext&) { return Decision::shrink; };

TEST_CASE("pages up to initial_pages are taken freely") {
  Script script;
  script.answer = kCompact;
  Serving serving({}, script.policy({3, 0}));
  const RequestId id = serving.engine().submit(1, 5, 60);
  serving.engine().step();
  CHECK(serving.pages(id) == 1);
  CHECK(serving.decode_position(15).step == 12);
  CHECK(serving.pages(id) == 1);
  CHECK(serving.decode_position(16).step == 13);
  CHECK(serving.pages(id) == 2);
  CHECK(serving.decode_position(47).step == 44);
  CHECK(serving.pages(id) == 3);
  CHECK(serving.counters().free_growth == 3);
  CHECK(script.asked.empty());
  serving.finish();
  CHECK(script.asked.size() == 1);
  CHECK(serving.counters().free_growth == 3);
}

TEST_CASE("a request grows freely to its prompt and one page") {
  Script script;
  script.answer = kCompact;
  Serving serving({}, script.policy({1, 0}));
  const RequestId id = serving.engine().submit(1, 40, 40);
  serving.decode_position(63);
  CHECK(serving.pages(id) == 4);
  CHECK(script.asked.empty());
  serving.engine().step();
  REQUIRE(script.asked.size() == 1);
  CHECK(script.asked[0].pages == 4);
  serving.finish();
}

TEST_CASE("one boundary after another, compacted: n = P b - 1, P b, P b + 1 and the step after") {
  Script script;
  script.answer = kCompact;
  Serving serving({}, script.policy({2, 0}));
  const RequestId id = serving.engine().submit(1, 5, 80);
  const StepPlan& before = serving.decode_position(30);
  CHECK(before.decodes[0].kv_length == 31);
  const StepPlan& full = serving.decode_position(31);
  CHECK(full.step == 28);
  CHECK(full.decodes[0].kv_length == 32);
  CHECK(script.asked.empty());

  const StepPlan& boundary = serving.engine().step();
  CHECK(boundary.decodes.empty());
  REQUIRE(boundary.compactions.size() == 1);
  CHECK(boundary.compactions[0].position == 31);
  CHECK(boundary.compactions[0].ticket.victims == 1);
  CHECK(boundary.compactions[0].protected_slots == 0);
  REQUIRE(script.asked.size() == 1);
  CHECK(script.asked[0].request == 1);
  CHECK(script.asked[0].boundary == 0);
  CHECK(script.asked[0].length == 32);
  CHECK(script.asked[0].pages == 2);
  CHECK(script.asked[0].page_size == 16);
  CHECK_FALSE(script.asked[0].measured);
  CHECK(script.asked[0].pressure == Approx(2.0 / 64));
  CHECK(serving.pages(id) == 2);
  CHECK(serving.view(id).slots == 16);
  CHECK(serving.view(id).length == 32);

  const StepPlan& after = serving.engine().step();
  REQUIRE(after.decodes.size() == 1);
  CHECK(after.decodes[0].position == 32);
  CHECK(after.decodes[0].kv_length == 17);
  CHECK_FALSE(after.decodes[0].summary_first);
  // The second compaction is a page later, and positions stay true.
  CHECK(serving.decode_position(47).decodes[0].kv_length == 32);
  CHECK(serving.engine().step().compactions.size() == 1);
  CHECK(serving.decode_position(48).decodes[0].kv_length == 17);
  CHECK(script.asked.back().boundary == 1);
  CHECK(script.asked.back().length == 48);
  serving.finish();
  CHECK(serving.counters().compact == 4);  // at 32, 48, 64 and 80; the text ends at 84
  CHECK(serving.counters().fallback == 0);
}

TEST_CASE("growth by decision is one page, at once") {
  Script script;
  Serving serving({}, script.policy({2, 0}));
  const RequestId id = serving.engine().submit(1, 5, 60);
  serving.decode_position(31);
  const StepPlan& plan = serving.engine().step();
  REQUIRE(plan.decodes.size() == 1);
  CHECK(plan.decodes[0].position == 32);
  CHECK(plan.decodes[0].kv_length == 33);
  CHECK(serving.pages(id) == 3);
  CHECK(serving.counters().grow == 1);
  serving.finish();
  CHECK(serving.counters().grow == 2);  // at 32 and 48
  CHECK(serving.counters().free_growth == 2);
  CHECK(script.asked.size() == 2);
}

TEST_CASE("shrink evicts two pages, gives one back and leaves one to fill") {
  Script script;
  script.answer = kShrink;
  Serving serving({}, script.policy({4, 0}));
  const RequestId id = serving.engine().submit(1, 5, 100);
  serving.decode_position(63);
  const StepPlan& plan = serving.engine().step();
  REQUIRE(plan.compactions.size() == 1);
  CHECK(plan.compactions[0].ticket.victims == 2);
  CHECK(serving.pages(id) == 3);
  CHECK(serving.manager().counts().referenced == 3);
  CHECK(serving.decode_position(64).decodes[0].kv_length == 33);
  CHECK(serving.counters().shrink == 1);
  // With two pages left there is nothing to give back: held.
  serving.finish();
  CHECK(serving.counters().shrink == 2);
  CHECK(serving.counters().compact == 1);
}

TEST_CASE("max_pages turns growth into Compress & Hold") {
  Script script;
  Serving serving({}, script.policy({1, 3}));
  const RequestId id = serving.engine().submit(1, 5, 80);
  serving.decode_position(60);
  CHECK(serving.pages(id) == 3);
  serving.finish();
  CHECK(serving.counters().grow == 1);
  CHECK(serving.counters().compact == 3);  // at 48, 64, 80
}

TEST_CASE("growth without a page falls back to Compress & Hold") {
  Serving::Setup setup;
  setup.pages.pages = 3;
  setup.scheduler.decision_capacity = 8;
  Script script;
  Serving serving(setup, script.policy({1, 0}));
  serving.engine().submit(1, 5, 60);
  serving.decode_position(47);
  CHECK(serving.counters().grow == 1);
  CHECK(serving.engine().step().compactions.size() == 1);
  CHECK(serving.counters().fallback == 1);
  CHECK(serving.counters().compact == 1);
  DecisionRecord record;
  REQUIRE(serving.scheduler().decisions().pop(record));
  CHECK(record.kind == DecisionKind::grow);
  CHECK(record.pages_before == 2);
  CHECK(record.pages_after == 3);
  CHECK(record.length == 32);
  REQUIRE(serving.scheduler().decisions().pop(record));
  CHECK(record.kind == DecisionKind::fallback);
  CHECK(record.tag == 1);
  CHECK(record.pages_before == 3);
  CHECK(record.pages_after == 3);
  CHECK(record.length == 48);
  CHECK(record.pressure == 1.0);
  serving.finish();
}

TEST_CASE("each policy at its boundaries") {
  struct Expected {
    AnyPolicy::Variant policy;
    double delta;
    std::int64_t grow, compact, shrink;
  };
  CapacityLimits four{4, 0};
  // A text of 128 tokens; free pages until 64 or until the policy's own budget.
  const std::array<Expected, 11> table = {
      {{FullPolicy{}, 0, 6, 0, 0},  // free up to prompt + 1 = 2 pages, 6 by decision
       {FixedPolicy{64, {}}, 0, 0, 4, 0},
       {ZipagePolicy{3, {}}, 0, 0, 5, 0},
       {GrowPagePolicy{0, four, {}}, 0.01, 4, 0, 0},
       {GrowPagePolicy{0, four, {}}, 0.0, 0, 4, 0},  // strict
       {GrowPagePolicy{0.02, four, {}}, 0.01, 0, 4, 0},
       {RandomPolicy{0.0, 1, four, {}}, 0, 4, 0, 0},
       {RandomPolicy{1.0, 1, four, {}}, 0, 0, 4, 0},
       {InversePolicy{four, {}}, 0.0, 4, 0, 0},
       {ShrinkPolicy{-0.005, 48, four, {}}, -0.004, 0, 4, 0},
       {ShrinkPolicy{-0.005, 48, four, {}}, -0.01, 0, 3, 1}}};  // one, then at its floor
  for (const Expected& e : table) {
    AnyPolicy policy(e.policy);
    INFO(policy.name() << " delta " << e.delta);
    Serving::Setup setup;
    setup.engine.delta = [&e](std::uint64_t) { return e.delta; };
    Serving serving(setup, policy);
    serving.engine().submit(1, 5, 124);  // 128 K/V rows: boundaries at 64, 80, 96, 112
    serving.finish();
    CHECK(serving.counters().grow == e.grow);
    CHECK(serving.counters().compact == e.compact);
    CHECK(serving.counters().shrink == e.shrink);
  }
}

TEST_CASE("demand is asked for once a boundary, exactly early_slots before it") {
  Serving::Setup setup;
  setup.scheduler.early_slots = GENERATE(0, 3, 16);
  const std::int32_t early = setup.scheduler.early_slots;
  setup.engine.delta = [](std::uint64_t) { return 0.25; };
  Script script;
  Serving serving(setup, script.policy({2, 0}, /*demand=*/true));
  const RequestId id = serving.engine().submit(1, 5, 60);
  std::vector<std::int64_t> asked_at;
  while (!serving.engine().ended(id)) {
    for (const DemandItem& item : serving.engine().step().demand) asked_at.push_back(item.position);
  }
  // Full at 31 and 47; at 63 the text ends, no boundary follows. With 16 slots early it is asked
  // for as soon as growth is not free any more and there is a candidate page.
  CHECK(asked_at == std::vector<std::int64_t>{31 - std::min(early, 15), 47 - std::min(early, 15)});
  REQUIRE(script.asked.size() == 2);
  CHECK(script.asked[0].measured);
  CHECK(script.asked[0].demand.delta() == Approx(0.25));
  CHECK(script.asked[1].boundary == 1);
  CHECK(script.asked[1].measured);
}

TEST_CASE("demand is not asked for when no decision follows") {
  Script script;
  SECTION("the text ends at the boundary") {
    Serving serving({}, script.policy({1, 0}, true));
    serving.engine().submit(1, 5, 28);  // 32 K/V rows would be the end: the last needs none
    bool asked = false;
    while (!serving.scheduler().idle()) asked |= !serving.engine().step().demand.empty();
    CHECK_FALSE(asked);
    CHECK(script.asked.empty());
  }
  SECTION("growth is free") {
    Serving serving({}, script.policy({6, 0}, true));
    serving.engine().submit(1, 5, 80);
    bool asked = false;
    while (!serving.scheduler().idle()) asked |= !serving.engine().step().demand.empty();
    CHECK_FALSE(asked);
  }
}

}  // namespace
}  // namespace growpage::test
