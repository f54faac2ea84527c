// SPDX-License-Identifier: Apache-2.0
// What goes into a batch, in which order, under the token budget.
#include "support/catch.hpp"
#include "support/serving.hpp"

namespace growpage::test {
namespace {

AnyPolicy full() { return AnyPolicy(FullPolicy{}); }

TEST_CASE("prompts are prefilled in chunks under the token budget") {
  Serving::Setup setup;
  setup.scheduler.max_batched_tokens = 40;
  Serving serving(setup, full());
  const RequestId a = serving.engine().submit(1, 100, 2);
  const RequestId b = serving.engine().submit(2, 20, 2);

  for (const std::int64_t from : {0, 40}) {
    const StepPlan& plan = serving.engine().step();
    REQUIRE(plan.prefills.size() == 1);
    CHECK(plan.prefills[0].request == a);
    CHECK(plan.prefills[0].first_position == from);
    CHECK(plan.prefills[0].first_slot == from);
    CHECK(plan.prefills[0].tokens == 40);
    CHECK_FALSE(plan.prefills[0].last);
    CHECK(plan.batched_tokens == 40);
    CHECK(serving.state(b) == RequestState::waiting);
  }
  const StepPlan& third = serving.engine().step();
  REQUIRE(third.prefills.size() == 2);
  CHECK(third.prefills[0].tokens == 20);
  CHECK(third.prefills[0].last);
  CHECK(third.prefills[1].request == b);
  CHECK(third.prefills[1].tokens == 20);
  CHECK(third.prefills[1].last);
  CHECK(third.batched_tokens == 40);
  const StepPlan& fourth = serving.engine().step();
  CHECK(fourth.decodes.size() == 2);
  CHECK(fourth.decodes[0].position == 100);
  CHECK(fourth.decodes[0].kv_length == 101);
  CHECK(fourth.decodes[1].position == 20);
  serving.finish();
  CHECK(serving.counters().prefill_tokens == 120);
  CHECK(serving.counters().decode_tokens == 4);
}

TEST_CASE("max_prefill_chunk bounds one request's chunk, not the batch") {
  Serving::Setup setup;
  setup.scheduler.max_batched_tokens = 40;
  setup.scheduler.max_prefill_chunk = 16;
  Serving serving(setup, full());
  serving.engine().submit(1, 100, 2);
  serving.engine().submit(2, 20, 2);
  const StepPlan& plan = serving.engine().step();
  REQUIRE(plan.prefills.size() == 2);
  CHECK(plan.prefills[0].tokens == 16);
  CHECK(plan.prefills[1].tokens == 16);
  CHECK(plan.batched_tokens == 32);
  serving.finish();
}

TEST_CASE("decodes come before prefills") {
  Serving::Setup setup;
  setup.scheduler.max_batched_tokens = 8;
  Serving serving(setup, full());
  // The prefilling request ranks first, yet the decoding ones keep their tokens.
  const RequestId a = serving.engine().submit(1, 4, 30);
  const RequestId b = serving.engine().submit(2, 4, 30);
  serving.engine().step();
  const RequestId c =
      serving.engine().submit(3, Serving::Engine::prompt_of(3, 50), 2, 2, /*priority=*/-1);
  for (int i = 0; i < 5; ++i) {
    const StepPlan& plan = serving.engine().step();
    REQUIRE(plan.decodes.size() == 2);
    REQUIRE(plan.prefills.size() == 1);
    CHECK(plan.prefills[0].request == c);
    CHECK(plan.prefills[0].tokens == 6);
    CHECK(plan.batched_tokens == 8);
  }
  CHECK(serving.engine().live(a).text.size() == serving.engine().live(b).text.size());
  serving.finish();
}

TEST_CASE("a batch full of decodes leaves a prompt waiting until one ends") {
  Serving::Setup setup;
  setup.scheduler.max_batched_tokens = 2;
  Serving serving(setup, full());
  serving.engine().submit(1, 2, 6);
  serving.engine().submit(2, 1, 12);
  serving.step_until([](const StepPlan& p) { return p.decodes.size() == 2; });
  const RequestId c = serving.engine().submit(3, 3, 2);
  const StepPlan& plan = serving.step_until([](const StepPlan& p) { return !p.prefills.empty(); });
  CHECK(plan.prefills[0].request == c);
  CHECK(plan.prefills[0].tokens == 1);
  CHECK(plan.decodes.size() == 1);
  serving.finish();
}

TEST_CASE("max_running and summary slots bound the running requests") {
  Serving::Setup setup;
  const bool by_slots = GENERATE(false, true);
  (by_slots ? setup.scheduler.summary_slots : setup.scheduler.max_running) = 2;
  Serving serving(setup, full());
  for (std::uint64_t tag = 1; tag <= 5; ++tag) serving.engine().submit(tag, 3, 3);
  serving.engine().step();
  CHECK(serving.scheduler().running() == 2);
  CHECK(serving.scheduler().waiting() == 3);
  serving.finish();
  CHECK(serving.engine().finished() == 5);
}

TEST_CASE("requests are admitted by priority, then by submission order") {
  Serving::Setup setup;
  setup.scheduler.max_running = 1;
  Serving serving(setup, full());
  const auto prompt = Serving::Engine::prompt_of(9, 4);
  serving.engine().submit(1, prompt, 2, 2, 0);
  serving.engine().submit(2, prompt, 2, 2, -1);
  serving.engine().submit(3, prompt, 2, 2, 1);
  serving.engine().submit(4, prompt, 2, 2, 0);
  std::vector<std::uint64_t> order;
  while (!serving.scheduler().idle()) {
    serving.engine().step();
    for (const auto& done : serving.scheduler().finished()) order.push_back(done.tag);
  }
  CHECK(order == std::vector<std::uint64_t>{2, 1, 4, 3});
}

TEST_CASE("a stream of urgent requests starves nobody when waiting ages") {
  const bool aging = GENERATE(true, false);
  Serving::Setup setup;
  setup.scheduler.max_running = 1;
  setup.scheduler.aging_steps = aging ? 10 : 0;
  Serving serving(setup, full());
  const auto prompt = Serving::Engine::prompt_of(9, 4);
  const RequestId patient = serving.engine().submit(1, prompt, 2, 2, 0);
  std::int64_t served_at = 0;
  for (int i = 0; i < 200 && served_at == 0; ++i) {
    serving.engine().submit(static_cast<std::uint64_t>(100 + i), prompt, 2, 2, -1);
    serving.engine().step();
    if (serving.engine().ended(patient)) served_at = i + 1;
  }
  // Two steps a request, a request a step: the urgent ones of the first ten steps rank before it.
  CHECK(served_at == (aging ? 22 : 0));
  serving.finish();
}

TEST_CASE("prefix hits skip computation and are counted at first admission") {
  Serving serving({}, full());
  const auto prompt = Serving::Engine::prompt_of(7, 40);
  serving.engine().submit(1, prompt, 1, 1);
  CHECK(serving.engine().step().prefills.at(0).tokens == 40);
  serving.engine().submit(2, prompt, 1, 1);
  const StepPlan& plan = serving.engine().step();
  REQUIRE(plan.prefills.size() == 1);
  CHECK(plan.prefills[0].first_position == 32);
  CHECK(plan.prefills[0].first_slot == 32);
  CHECK(plan.prefills[0].tokens == 8);
  CHECK(serving.counters().prefix_query_tokens == 80);
  CHECK(serving.counters().prefix_hit_tokens == 32);
  // A full hit at a page multiple still computes: its last page again.
  const auto whole = Serving::Engine::prompt_of(8, 48);
  serving.engine().submit(3, whole, 1, 1);
  serving.engine().step();
  serving.engine().submit(4, whole, 1, 1);
  CHECK(serving.engine().step().prefills.at(0).first_position == 32);
  serving.finish();
}

TEST_CASE("two identical prompts of one step share only what has been computed") {
  Serving::Setup setup;
  setup.scheduler.max_prefill_chunk = 20;
  Serving serving(setup, full());
  const auto prompt = Serving::Engine::prompt_of(7, 40);
  const RequestId a = serving.engine().submit(1, prompt, 2, 2);
  const RequestId b = serving.engine().submit(2, prompt, 2, 2);
  const StepPlan& first = serving.engine().step();
  REQUIRE(first.prefills.size() == 2);
  CHECK(first.prefills[1].first_position == 0);
  CHECK(serving.view(a).pages[0] != serving.view(b).pages[0]);
  // One page is computed now: a third shares it, and only it.
  const RequestId c = serving.engine().submit(3, prompt, 2, 2);
  const StepPlan& second = serving.engine().step();
  REQUIRE(second.prefills.size() == 3);
  CHECK(second.prefills[2].request == c);
  CHECK(second.prefills[2].first_position == 16);
  serving.finish();
}

TEST_CASE("salt X and LoRA X never share") {
  Serving serving({}, full());
  const auto prompt = Serving::Engine::prompt_of(7, 40);
  serving.engine().submit(1, prompt, 1, 1, 0, {"X", "", "", 0});
  serving.engine().step();
  serving.engine().submit(2, prompt, 1, 1, 0, {"", "X", "", 0});
  CHECK(serving.engine().step().prefills.at(0).first_position == 0);
  serving.engine().submit(3, prompt, 1, 1, 0, {"X", "", "", 0});
  CHECK(serving.engine().step().prefills.at(0).first_position == 32);
  serving.finish();
}

TEST_CASE("a failed prefill after a prefix match rolls back every reference") {
  Serving::Setup setup;
  setup.pages.pages = 6;
  Serving serving(setup, full());
  const auto prompt = Serving::Engine::prompt_of(7, 40);
  serving.engine().submit(1, prompt, 1, 1);
  serving.engine().step();
  const PageCounts before = serving.manager().counts();
  CHECK(before.cached == 2);
  const RequestId failing = serving.engine().submit(2, prompt, 4, 4);
  serving.engine().start_step();
  CHECK(serving.manager().counts().referenced == 3);
  const StepResult failed{.tokens = {}, .demand = {}, .fences = {}, .failed = {&failing, 1}};
  REQUIRE(serving.scheduler().complete(failed).ok());
  REQUIRE(serving.scheduler().finished().size() == 1);
  CHECK(serving.scheduler().finished()[0].aborted);
  const PageCounts after = serving.manager().counts();
  CHECK(after.cached == before.cached);
  CHECK(after.free == before.free);
  CHECK(after.referenced == 0);
  CHECK(serving.counters().aborted == 1);
  CHECK(serving.manager().live_sequences() == 0);
  CHECK(serving.scheduler().idle());
}

TEST_CASE("admission keeps the pages that running requests take without a decision") {
  // Each: one page of prompt, one more freely. Three pages are enough for one and a half.
  Serving::Setup setup;
  setup.pages.pages = 3;
  Script script;
  Serving serving(setup, script.policy({1, 0}));
  const RequestId a = serving.engine().submit(1, 10, 12);
  const RequestId b = serving.engine().submit(2, 10, 12);
  serving.engine().step();
  CHECK(serving.state(a) == RequestState::decoding);
  CHECK(serving.state(b) == RequestState::waiting);
  serving.finish();
  CHECK(serving.counters().preempt == 0);
}

TEST_CASE("two half-admitted requests that each need the rest make progress") {
  // Both prompts fit alone, not together; chunks of a page let both begin.
  Serving::Setup setup;
  setup.pages.pages = 6;
  setup.scheduler.max_prefill_chunk = 16;
  const bool swap = GENERATE(false, true);
  setup.scheduler.preemption = swap ? Preemption::swap : Preemption::recompute;
  setup.pages.host_pages = swap ? 16 : 0;
  Serving serving(setup, full());
  serving.engine().submit(1, 70, 20);
  serving.engine().submit(2, 70, 20);
  serving.finish();
  CHECK(serving.engine().finished() == 2);
}

}  // namespace
}  // namespace growpage::test
