// SPDX-License-Identifier: Apache-2.0
// abort() in every state a request can be in: what it held comes back, pages under a fence with it.
#include "support/catch.hpp"
#include "support/serving.hpp"

namespace growpage::test {
namespace {

/// Ends the open step with what the engine has, completes late fences, and finds nothing left.
void expect_clean(Serving& serving) {
  while (!serving.scheduler().idle()) serving.engine().step();
  CHECK(serving.scheduler().waiting() == 0);
  CHECK(serving.scheduler().running() == 0);
  serving.engine().expect_no_leak();
  CHECK(serving.scheduler().check_invariants().ok());
}

TEST_CASE("abort while waiting, prefilling and decoding") {
  Serving::Setup setup;
  setup.scheduler.max_batched_tokens = 8;
  Serving serving(setup, AnyPolicy(FullPolicy{}));
  const RequestId a = serving.engine().submit(1, 20, 10);
  SECTION("waiting") {
    CHECK(serving.state(a) == RequestState::waiting);
    serving.engine().abort(a);
    CHECK(serving.scheduler().finished().size() == 1);
  }
  SECTION("prefilling") {
    serving.engine().step();
    CHECK(serving.state(a) == RequestState::prefilling);
    serving.engine().abort(a);
    CHECK(serving.manager().counts().referenced == 0);
  }
  SECTION("decoding") {
    serving.step_until([](const StepPlan& p) { return !p.decodes.empty(); });
    serving.engine().abort(a);
    CHECK(serving.manager().counts().referenced == 0);
  }
  SECTION("between schedule() and complete(), prefilling") {
    serving.engine().start_step();
    serving.engine().abort(a);
    serving.engine().execute();
    serving.engine().complete();
  }
  SECTION("between schedule() and complete(), decoding: its token may come or not") {
    serving.step_until([](const StepPlan& p) { return !p.decodes.empty(); });
    serving.engine().start_step();
    const SampledToken token{a, 5, false};
    serving.engine().abort(a);
    const bool comes = GENERATE(false, true);
    const StepResult result{
        .tokens = {&token, comes ? 1U : 0U}, .demand = {}, .fences = {}, .failed = {}};
    CHECK(serving.scheduler().complete(result).ok());
  }
  CHECK(serving.scheduler().abort(a).code() == StatusCode::stale_id);
  CHECK(serving.scheduler().state(a).code() == StatusCode::stale_id);
  CHECK(serving.scheduler().text(a).code() == StatusCode::stale_id);
  CHECK(serving.counters().aborted == 1);
  expect_clean(serving);
}

TEST_CASE("abort while compacting: pages come back with the fence") {
  Script script;
  script.answer = [](const BoundaryContext&) { return Decision::compact; };
  Serving serving({}, script.policy({2, 0}));
  const RequestId a = serving.engine().submit(1, 5, 60);
  for (int i = 0; i < 28; ++i) serving.engine().step();
  serving.engine().start_step();
  REQUIRE(serving.state(a) == RequestState::compacting);
  const FenceId fence = serving.engine().plan().compactions.at(0).ticket.fence;
  const bool before = GENERATE(true, false);
  if (before) serving.engine().abort(a);  // before the engine has even begun
  serving.engine().execute();
  if (!before) serving.engine().abort(a);
  REQUIRE(serving.scheduler().complete({}).ok());
  CHECK(serving.manager().counts().in_flight == 2);
  CHECK(serving.manager().allocatable() == 62);
  CHECK_FALSE(serving.scheduler().idle());
  REQUIRE(serving.scheduler().schedule().ok());
  CHECK(serving.scheduler()
            .complete({.tokens = {}, .demand = {}, .fences = {&fence, 1}, .failed = {}})
            .ok());
  CHECK(serving.manager().allocatable() == 64);
  CHECK(serving.scheduler().idle());
}

TEST_CASE("abort while swapping out, swapped and swapping in") {
  Serving::Setup setup;
  setup.pages.pages = 6;
  setup.pages.host_pages = 8;
  setup.scheduler.preemption = Preemption::swap;
  Serving serving(setup, AnyPolicy(FullPolicy{}));
  const RequestId a = serving.engine().submit(1, 20, 40);
  const RequestId b = serving.engine().submit(2, 20, 40);
  for (int i = 0; i < 29; ++i) serving.engine().step();
  serving.engine().start_step();
  FenceId fence = serving.engine().plan().swap_outs.at(0).fence;
  REQUIRE(serving.state(b) == RequestState::swapping_out);
  const int when = GENERATE(0, 1, 2);
  const StepResult with_fence{.tokens = {}, .demand = {}, .fences = {&fence, 1}, .failed = {}};
  if (when == 0) {
    serving.engine().abort(b);
    REQUIRE(serving.scheduler().complete({}).ok());
    CHECK(serving.manager().host_counts().in_flight == 3);
    REQUIRE(serving.scheduler().abort(a).ok());
    REQUIRE(serving.scheduler().schedule().ok());
    REQUIRE(serving.scheduler().complete(with_fence).ok());
  } else {
    REQUIRE(serving.scheduler().complete(with_fence).ok());
    REQUIRE(serving.state(b) == RequestState::swapped);
    if (when == 1) serving.engine().abort(b);
    REQUIRE(serving.scheduler().abort(a).ok());
    const StepPlan* plan = serving.scheduler().schedule().value();
    if (when == 2) {
      fence = plan->swap_ins.at(0).fence;
      CHECK(serving.state(b) == RequestState::swapping_in);
      serving.engine().abort(b);
      CHECK(serving.manager().counts().in_flight == 3);
      REQUIRE(serving.scheduler().complete(with_fence).ok());
    } else {
      REQUIRE(serving.scheduler().complete({}).ok());
    }
  }
  CHECK(serving.scheduler().idle());
  CHECK(serving.manager().allocatable() == 6);
  CHECK(serving.manager().host_counts().free == 8);
  CHECK(serving.manager().live_sequences() == 0);
  CHECK(serving.manager().check_invariants().ok());
  CHECK(serving.scheduler().check_invariants().ok());
}

TEST_CASE("an aborted request's index is reused under another generation") {
  Serving serving({}, AnyPolicy(FullPolicy{}));
  const RequestId a = serving.engine().submit(1, 4, 4);
  serving.engine().abort(a);
  const RequestId b = serving.engine().submit(2, 4, 4);
  CHECK(b.index == a.index);
  CHECK(b.generation != a.generation);
  CHECK(serving.scheduler().abort(a).code() == StatusCode::stale_id);
  CHECK(serving.scheduler().state(RequestId{}).code() == StatusCode::stale_id);
  CHECK(serving.scheduler().state(RequestId{1000, 1}).code() == StatusCode::stale_id);
  serving.finish();
}

}  // namespace
}  // namespace growpage::test
