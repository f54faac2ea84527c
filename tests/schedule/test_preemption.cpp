// SPDX-License-Identifier: Apache-2.0
// Memory pressure: who is preempted, and how it comes back.
#include <algorithm>

#include "support/catch.hpp"
#include "support/serving.hpp"

namespace growpage::test {
namespace {

// Six pages of 16 tokens; A and B have prompts of two pages and grow alike. Position p is decoded
// in step p − 18. At position 48, in step 30, A wants its fourth page and there is none: B goes.
struct Pressed {
  explicit Pressed(Preemption preemption, std::int32_t fence_delay = 0,
                   std::int64_t host_pages = 16)
      : serving(setup(preemption, fence_delay, host_pages), AnyPolicy(FullPolicy{})),
        a(serving.engine().submit(1, 20, 40)),
        b(serving.engine().submit(2, 20, 40)) {}
  static Serving::Setup setup(Preemption preemption, std::int32_t fence_delay,
                              std::int64_t host_pages) {
    Serving::Setup s;
    s.pages.pages = 6;
    s.pages.host_pages = preemption == Preemption::swap ? host_pages : 0;
    s.scheduler.preemption = preemption;
    s.scheduler.decision_capacity = 64;
    s.engine.max_fence_delay = fence_delay;
    return s;
  }
  const StepPlan& preempting() {
    return serving.step_until([](const StepPlan& p) { return !p.preempted.empty(); });
  }

  Serving serving;
  RequestId a, b;
};

TEST_CASE("preemption by recompute: the text is prefilled again, prefix hits help") {
  Pressed pressed(Preemption::recompute);
  Serving& serving = pressed.serving;
  const StepPlan& plan = pressed.preempting();
  CHECK(plan.step == 30);
  REQUIRE(plan.preempted.size() == 1);
  CHECK(plan.preempted[0] == pressed.b);
  REQUIRE(plan.decodes.size() == 1);
  CHECK(plan.decodes[0].request == pressed.a);
  CHECK(plan.decodes[0].position == 48);
  CHECK(serving.state(pressed.b) == RequestState::waiting);
  CHECK(serving.counters().preempt == 1);
  CHECK(serving.counters().recompute == 1);
  // A ends in step 40 with position 58; B comes back in step 41. One of its three published pages
  // has become A's fourth: the last one, so that the chain to the others holds.
  const StepPlan& back = serving.step_until([](const StepPlan& p) { return !p.prefills.empty(); });
  CHECK(back.step == 41);
  CHECK(back.prefills[0].request == pressed.b);
  CHECK(back.prefills[0].first_position == 32);
  CHECK(back.prefills[0].tokens == 17);
  CHECK(back.prefills[0].last);
  CHECK_FALSE(back.prefills[0].summary.valid());
  const StepPlan& decode = serving.engine().step();
  REQUIRE(decode.decodes.size() == 1);
  CHECK(decode.decodes[0].position == 49);
  CHECK(decode.decodes[0].summary_first);
  CHECK(serving.counters().prefix_query_tokens == 40);  // first admissions only
  CHECK(serving.counters().prefix_hit_tokens == 0);
  serving.finish();
  CHECK(serving.engine().finished() == 2);
  CHECK(serving.counters().evicted_pages == 2);  // the last one for B's own growth
  DecisionRecord record;
  bool logged = false;
  while (serving.scheduler().decisions().pop(record)) {
    if (record.kind != DecisionKind::recompute) continue;
    logged = true;
    CHECK(record.tag == 2);
    CHECK(record.pages_before == 3);
    CHECK(record.pages_after == 0);
    CHECK(record.length == 48);
  }
  CHECK(logged);
}

TEST_CASE("preemption by swap: pages and summaries come back as they were") {
  Pressed pressed(Preemption::swap);
  Serving& serving = pressed.serving;
  const StepPlan& plan = pressed.preempting();
  CHECK(plan.step == 30);
  REQUIRE(plan.swap_outs.size() == 1);
  CHECK(plan.swap_outs[0].request == pressed.b);
  CHECK(plan.swap_outs[0].transfers == 3);
  CHECK(plan.swap_outs[0].summary.valid());
  // Its pages are in flight in the step that takes them: A goes on in the next one.
  CHECK(plan.decodes.empty());
  CHECK(serving.state(pressed.b) == RequestState::swapped);
  CHECK(serving.engine().step().decodes.at(0).position == 48);
  const StepPlan& back = serving.step_until([](const StepPlan& p) { return !p.swap_ins.empty(); });
  CHECK(back.step == 42);
  CHECK(back.swap_ins[0].request == pressed.b);
  CHECK(back.swap_ins[0].transfers == 3);
  const StepPlan& decode = serving.engine().step();
  REQUIRE(decode.decodes.size() == 1);
  CHECK(decode.decodes[0].position == 48);
  CHECK(decode.decodes[0].kv_length == 49);
  CHECK_FALSE(decode.decodes[0].summary_first);
  serving.finish();
  CHECK(serving.counters().swap_out == 1);
  CHECK(serving.counters().swap_in == 1);
  CHECK(serving.counters().prefill_tokens == 40);
}

TEST_CASE("swap falls back to recompute when host memory is full") {
  Pressed pressed(Preemption::swap, 0, /*host_pages=*/2);
  CHECK(pressed.preempting().swap_outs.empty());
  CHECK(pressed.serving.counters().recompute == 1);
  pressed.serving.finish();
}

TEST_CASE("pages behind a fence are awaited: no reuse before it, no cascade of preemptions") {
  Serving::Setup setup = Pressed::setup(Preemption::swap, 0, 16);
  setup.pages.pages = 9;
  Serving serving(setup, AnyPolicy(FullPolicy{}));
  const RequestId a = serving.engine().submit(1, 20, 40);
  const RequestId b = serving.engine().submit(2, 20, 40);
  const RequestId c = serving.engine().submit(3, 20, 40);
  std::vector<FenceId> held;
  for (int i = 0; i < 29; ++i) serving.engine().step();
  // Step 30: A takes none, C goes to the host, and stays under its fence for five steps.
  serving.engine().start_step();
  REQUIRE(serving.engine().plan().preempted.size() == 1);
  CHECK(serving.engine().plan().preempted[0] == c);
  CHECK(serving.engine().plan().decodes.empty());
  const FenceId fence = serving.engine().plan().swap_outs.at(0).fence;
  REQUIRE(serving.scheduler().complete({}).ok());
  for (int i = 0; i < 5; ++i) {
    const StepPlan* plan = serving.scheduler().schedule().value();
    CHECK(plan->empty());  // A and B both want a page, the three of C are on their way
    CHECK(plan->preempted.empty());
    CHECK(serving.manager().counts().in_flight == 3);
    CHECK(serving.state(c) == RequestState::swapping_out);
    REQUIRE(serving.scheduler().complete({}).ok());
  }
  REQUIRE(serving.scheduler().schedule().ok());
  REQUIRE(serving.scheduler()
              .complete({.tokens = {}, .demand = {}, .fences = {&fence, 1}, .failed = {}})
              .ok());
  const StepPlan* plan = serving.scheduler().schedule().value();
  REQUIRE(plan->decodes.size() == 2);
  CHECK(plan->decodes[0].request == a);
  CHECK(plan->decodes[1].request == b);
  CHECK(serving.counters().preempt == 1);
  CHECK(serving.counters().grow == 2);  // counted once a page, however long it took
}

TEST_CASE("a summary slot is not handed on while a swap still reads it") {
  Serving::Setup setup = Pressed::setup(Preemption::swap, 0, 16);
  setup.scheduler.summary_slots = 2;
  Serving serving(setup, AnyPolicy(FullPolicy{}));
  const RequestId a = serving.engine().submit(1, 20, 40);
  const RequestId b = serving.engine().submit(2, 20, 40);
  for (int i = 0; i < 29; ++i) serving.engine().step();
  serving.engine().start_step();
  const SwapItem out = serving.engine().plan().swap_outs.at(0);
  CHECK(out.request == b);
  REQUIRE(serving.scheduler().complete({}).ok());
  // A leaves; an urgent newcomer gets A's slot, and a second one none before the fence.
  REQUIRE(serving.scheduler().abort(a).ok());
  RequestSpec spec;
  const auto prompt = Serving::Engine::prompt_of(5, 4);
  spec.prompt = prompt;
  spec.max_new_tokens = 2;
  spec.priority = -1;
  const RequestId c = serving.scheduler().submit(spec).value();
  const RequestId d = serving.scheduler().submit(spec).value();
  REQUIRE(serving.scheduler().schedule().ok());
  CHECK(serving.state(c) == RequestState::prefilling);
  CHECK(serving.state(d) == RequestState::waiting);
  REQUIRE(serving.scheduler().check_invariants().ok());
}

TEST_CASE("the preempted request is back before those that came after it") {
  const Preemption preemption = GENERATE(Preemption::recompute, Preemption::swap);
  Pressed pressed(preemption);
  Serving& serving = pressed.serving;
  pressed.preempting();
  const RequestId late = serving.engine().submit(3, 4, 4);
  while (!serving.engine().ended(pressed.a)) {
    serving.engine().step();
    // There is room for it, but B ranks before it and waits for more.
    CHECK(serving.state(late) == RequestState::waiting);
  }
  serving.finish();
  CHECK(serving.engine().finished() == 3);
}

TEST_CASE("a request is preempted itself when all others rank before it, and does not thrash") {
  const Preemption preemption = GENERATE(Preemption::recompute, Preemption::swap);
  Serving::Setup setup = Pressed::setup(preemption, 0, 16);
  Serving serving(setup, AnyPolicy(FullPolicy{}));
  // The same as above, but it is B, ranking last, whose pages are full first.
  const RequestId a = serving.engine().submit(1, 20, 40);
  const RequestId b = serving.engine().submit(2, 22, 38);
  const StepPlan& plan = serving.step_until([](const StepPlan& p) { return !p.preempted.empty(); });
  CHECK(plan.step == 28);
  CHECK(plan.preempted[0] == b);
  CHECK(plan.decodes.at(0).request == a);
  serving.finish();
  CHECK(serving.counters().preempt == 1);  // not once a step until A ends
}

TEST_CASE("a compacted request is recomputed in chunks, compacting on the way") {
  Serving::Setup setup;
  setup.pages.pages = 9;
  setup.scheduler.max_prefill_chunk = 2;
  Script script;
  // B holds two pages while A's long prompt comes in, then B grows into what A still needs.
  bool grows = false;
  script.answer = [&grows](const BoundaryContext&) {
    return grows ? Decision::grow : Decision::compact;
  };
  RetentionOptions retention;
  retention.recent = 8;
  Serving serving(setup, script.policy({2, 0}, false, retention));
  const RequestId b = serving.engine().submit(2, 5, 150);
  serving.step_until([&](const StepPlan&) { return serving.counters().compact == 2; });
  const RequestId a =
      serving.engine().submit(1, Serving::Engine::prompt_of(1, 96), 3, 3, /*priority=*/-1);
  grows = true;
  const StepPlan& plan = serving.step_until([](const StepPlan& p) { return !p.preempted.empty(); });
  CHECK(plan.preempted[0] == b);
  CHECK(serving.counters().recompute == 1);
  const std::int64_t compactions = serving.counters().compact;
  grows = false;
  serving.step_until([&](const StepPlan&) { return serving.engine().ended(a); });
  // Back: chunks of two up to the pages it had, its summaries beginning at the boundary.
  bool first = true;
  std::int64_t on_the_way = 0;
  while (serving.state(b) != RequestState::decoding) {
    const StepPlan& step = serving.engine().step();
    CHECK(step.decodes.empty());
    if (!step.compactions.empty()) ++on_the_way;
    if (step.prefills.empty()) continue;
    if (first) CHECK(step.prefills[0].first_position == 0);
    first = false;
    CHECK(step.prefills[0].tokens <= 2);
    const bool at_end = step.prefills[0].first_slot + step.prefills[0].tokens ==
                        static_cast<std::int32_t>(serving.pages(b)) * 16;
    if (step.prefills[0].summary.valid()) CHECK(at_end);
  }
  CHECK(on_the_way > 0);
  CHECK(serving.counters().compact == compactions + on_the_way);
  CHECK(serving.view(b).compactions == on_the_way);
  CHECK(serving.view(b).length > serving.view(b).slots);
  serving.finish();
  CHECK(serving.engine().finished() == 2);
}

TEST_CASE("swapped requests give their sequence up to a better-ranked one that finds none") {
  Serving::Setup setup = Pressed::setup(Preemption::swap, 0, 16);
  setup.pages.max_sequences = 2;
  setup.scheduler.max_running = 2;
  Serving serving(setup, AnyPolicy(FullPolicy{}));
  serving.engine().submit(1, 20, 40);
  const RequestId b = serving.engine().submit(2, 20, 40);
  serving.step_until([](const StepPlan& p) { return !p.preempted.empty(); });
  const RequestId urgent =
      serving.engine().submit(3, Serving::Engine::prompt_of(3, 4), 4, 4, /*priority=*/-1);
  serving.step_until([&](const StepPlan&) { return serving.engine().ended(urgent); });
  CHECK(serving.state(b) == RequestState::waiting);
  serving.finish();
  CHECK(serving.engine().finished() == 3);
  CHECK(serving.counters().swap_out == 1);
  CHECK(serving.counters().swap_in == 0);
}

TEST_CASE("finish while a spare page is reserved frees it once") {
  Script script;
  Serving serving({}, script.policy({1, 0}));
  // The page grown at position 32 holds one row when the text stops.
  const RequestId a = serving.engine().submit(1, Serving::Engine::prompt_of(1, 5), 29, 200);
  serving.step_until([&](const StepPlan&) { return serving.engine().ended(a); });
  CHECK(serving.counters().grow == 1);
  CHECK(serving.manager().counts().referenced == 0);
  serving.finish();
}

}  // namespace
}  // namespace growpage::test
