// SPDX-License-Identifier: Apache-2.0
// What the scheduler refuses, with which code and detail, and that nothing has changed then.
#include <string>

#include "support/catch.hpp"
#include "support/serving.hpp"

namespace growpage::test {
namespace {

TEST_CASE("schedule() and complete() alternate") {
  Serving serving({}, AnyPolicy(FullPolicy{}));
  CHECK(serving.scheduler().complete({}).code() == StatusCode::protocol_error);
  REQUIRE(serving.scheduler().schedule().ok());
  const auto again = serving.scheduler().schedule();
  CHECK(again.code() == StatusCode::protocol_error);
  CHECK(again.status().detail()->argument == "schedule()");
  CHECK(serving.counters().steps == 1);
  CHECK(serving.scheduler().complete({}).ok());
}

TEST_CASE("complete() refuses what does not belong to the plan, then takes what does") {
  Serving::Setup setup;
  Script script;
  Serving serving(setup, script.policy({1, 0}, /*demand=*/true));
  const RequestId a = serving.engine().submit(1, 5, 60);
  const RequestId b = serving.engine().submit(2, 5, 60);
  for (int i = 0; i < 27; ++i) serving.engine().step();
  const RequestId waiting = serving.engine().submit(3, 5, 1);
  serving.engine().start_step();
  serving.engine().execute();
  auto& tokens = serving.engine().tokens();
  auto& demand = serving.engine().demand();
  auto& fences = serving.engine().fences();
  auto& failed = serving.engine().failed();
  REQUIRE(tokens.size() == 3);
  REQUIRE(demand.size() == 2);
  const auto good_tokens = tokens;
  const auto good_demand = demand;

  const auto refused = [&](StatusCode code, const std::string& argument) {
    const Status status = serving.scheduler().complete({tokens, demand, fences, failed});
    CHECK(status.code() == code);
    REQUIRE(status.detail() != nullptr);
    CHECK(status.detail()->argument == argument);
    CHECK_FALSE(status.detail()->allowed.empty());
    CHECK(serving.scheduler().text(a)->size() == serving.engine().live(a).text.size());
    CHECK(serving.counters().finished == 0);
    CHECK(serving.scheduler().check_invariants().ok());
    tokens = good_tokens;
    demand = good_demand;
    fences.clear();
    failed.clear();
  };
  tokens.pop_back();  // missing
  refused(StatusCode::invalid_argument, "StepResult::tokens");
  tokens.push_back(tokens[0]);  // doubled
  refused(StatusCode::invalid_argument, "StepResult::tokens");
  tokens[0].request = tokens[1].request;  // doubled instead of another
  refused(StatusCode::invalid_argument, "StepResult::tokens");
  tokens.push_back({RequestId{7, 1}, 0, false});  // of no request
  refused(StatusCode::invalid_argument, "StepResult::tokens");
  tokens.push_back({RequestId{a.index, a.generation + 1}, 0, false});
  refused(StatusCode::invalid_argument, "StepResult::tokens");
  demand.pop_back();
  refused(StatusCode::invalid_argument, "StepResult::demand");
  demand.push_back(demand[0]);
  refused(StatusCode::invalid_argument, "StepResult::demand");
  demand[0].request = waiting;  // planned, but not asked for
  refused(StatusCode::invalid_argument, "StepResult::demand");
  demand.push_back({RequestId{7, 1}, {}});
  refused(StatusCode::invalid_argument, "StepResult::demand");
  fences.push_back(FenceId{0, 1});
  refused(StatusCode::stale_id, "StepResult::fences");
  failed.push_back(a);  // failed, and yet with a token
  refused(StatusCode::invalid_argument, "StepResult::tokens");
  failed = {a, a};
  refused(StatusCode::invalid_argument, "StepResult::failed");
  failed.push_back(RequestId{7, 1});
  refused(StatusCode::invalid_argument, "StepResult::failed");

  REQUIRE(serving.scheduler().complete({tokens, demand, fences, failed}).ok());
  CHECK(serving.scheduler().text(a)->size() == serving.engine().live(a).text.size() + 1);
  CHECK(serving.counters().finished == 1);
  CHECK(serving.state(b) == RequestState::decoding);
}

TEST_CASE("a fence is reported once") {
  Script script;
  script.answer = [](const BoundaryContext&) { return Decision::compact; };
  Serving serving({}, script.policy({2, 0}));
  const RequestId a = serving.engine().submit(1, 5, 60);
  for (int i = 0; i < 28; ++i) serving.engine().step();
  serving.engine().start_step();
  serving.engine().execute();
  const FenceId fence = serving.engine().plan().compactions.at(0).ticket.fence;
  const std::vector<FenceId> twice = {fence, fence};
  CHECK(serving.scheduler().complete({{}, {}, twice, {}}).code() == StatusCode::stale_id);
  REQUIRE(serving.scheduler().complete({{}, {}, {&fence, 1}, {}}).ok());
  REQUIRE(serving.scheduler().schedule().ok());
  const SampledToken token{a, 5, false};
  CHECK(serving.scheduler().complete({{&token, 1}, {}, {&fence, 1}, {}}).code() ==
        StatusCode::stale_id);
}

TEST_CASE("planned requests that failed are aborted; a demand asked for is not expected then") {
  Script script;
  Serving serving({}, script.policy({1, 0}, /*demand=*/true));
  const RequestId a = serving.engine().submit(1, 5, 60);
  for (int i = 0; i < 27; ++i) serving.engine().step();
  serving.engine().start_step();
  REQUIRE(serving.engine().plan().demand.size() == 1);
  CHECK(serving.scheduler().complete({{}, {}, {}, {&a, 1}}).ok());
  CHECK(serving.counters().aborted == 1);
  CHECK(serving.scheduler().idle());
  CHECK(serving.manager().live_sequences() == 0);
}

TEST_CASE("submit() refuses what can never run to its end") {
  Serving::Setup setup;
  setup.pages.pages = 10;
  setup.pages.max_pages_per_sequence = 6;
  const auto prompt = Serving::Engine::prompt_of(1, 81);  // six pages
  RequestSpec spec;
  const auto with = [&](std::size_t length, std::int64_t output) {
    spec.prompt = std::span(prompt).first(length);
    spec.max_new_tokens = output;
    return spec;
  };
  SECTION("a policy that never evicts needs room for the whole text") {
    Serving serving(setup, AnyPolicy(FullPolicy{}));
    CHECK(serving.scheduler().submit(with(40, 57)).ok());  // 96 rows: the last token needs none
    const auto refused = serving.scheduler().submit(with(40, 58));
    CHECK(refused.code() == StatusCode::request_too_large);
    REQUIRE(refused.status().detail() != nullptr);
    CHECK(refused.status().detail()->argument == "RequestSpec::prompt");
    CHECK(refused.status().detail()->value == "7 pages at the least");
    CHECK(refused.status().detail()->allowed ==
          "at most 6 (PageManagerOptions::pages, max_pages_per_sequence)");
    CHECK(serving.counters().refused == 1);
    CHECK(serving.counters().submitted == 1);
  }
  SECTION("others need the prompt and a page") {
    Serving serving(setup, AnyPolicy(GrowPagePolicy{}));
    CHECK(serving.scheduler().submit(with(80, 10000)).ok());
    CHECK(serving.scheduler().submit(with(81, 16)).ok());  // the whole text: six pages
    CHECK(serving.scheduler().submit(with(81, 17)).code() == StatusCode::request_too_large);
  }
  SECTION("protected pages count") {
    GrowPagePolicy policy;
    policy.retention_options.protect_prompt = true;
    Serving serving(setup, AnyPolicy(policy));
    CHECK(serving.scheduler().submit(with(64, 10000)).ok());
    CHECK(serving.scheduler().submit(with(65, 10000)).code() == StatusCode::request_too_large);
  }
  SECTION("bad arguments") {
    Serving serving(setup, AnyPolicy(FullPolicy{}));
    CHECK(serving.scheduler().submit(with(0, 4)).code() == StatusCode::invalid_argument);
    CHECK(serving.scheduler().submit(with(4, 0)).code() == StatusCode::invalid_argument);
    spec = with(4, 4);
    spec.key.modality_from = -1;
    CHECK(serving.scheduler().submit(spec).code() == StatusCode::invalid_argument);
    CHECK(serving.counters().submitted == 0);
    CHECK(serving.scheduler().idle());
  }
}

TEST_CASE("max_new_tokens may mean no limit") {
  Serving serving({}, AnyPolicy(GrowPagePolicy{}));
  const auto prompt = Serving::Engine::prompt_of(1, 5);
  const RequestId id = serving.engine().submit(1, prompt, 300, std::int64_t{1} << 40);
  serving.step_until([&](const StepPlan&) { return serving.engine().ended(id); });
  serving.finish();
}

TEST_CASE("create() refuses options that contradict each other") {
  const auto code = [](auto&& change) {
    Serving::Setup setup;
    change(setup);
    auto manager = PageManager::create(setup.pages).value();
    return Scheduler<AnyPolicy, PageManager>::create(manager, AnyPolicy(GrowPagePolicy{}),
                                                     setup.scheduler)
        .code();
  };
  CHECK(code([](Serving::Setup&) {}) == StatusCode::ok);
  CHECK(code([](Serving::Setup& s) { s.scheduler.early_slots = 17; }) ==
        StatusCode::invalid_argument);
  CHECK(code([](Serving::Setup& s) { s.scheduler.max_running = 33; }) ==
        StatusCode::invalid_argument);
  CHECK(code([](Serving::Setup& s) { s.scheduler.preemption = Preemption::swap; }) ==
        StatusCode::invalid_argument);
  CHECK(code([](Serving::Setup& s) { s.scheduler.max_batched_tokens = 0; }) ==
        StatusCode::invalid_argument);
  CHECK(code([](Serving::Setup& s) { s.scheduler.summary_slots = 0; }) ==
        StatusCode::invalid_argument);
  CHECK(code([](Serving::Setup& s) { s.scheduler.max_prefill_chunk = -1; }) ==
        StatusCode::invalid_argument);
  CHECK(code([](Serving::Setup& s) { s.scheduler.max_compacting_pages = 0; }) ==
        StatusCode::invalid_argument);
  CHECK(code([](Serving::Setup& s) { s.scheduler.aging_steps = -1; }) ==
        StatusCode::invalid_argument);
  CHECK(code([](Serving::Setup& s) { s.scheduler.decision_capacity = -1; }) ==
        StatusCode::invalid_argument);
  auto manager = PageManager::create({.pages = 8, .page_size = 16}).value();
  SchedulerOptions options;
  FixedPolicy odd;
  odd.budget_tokens = 100;
  CHECK(Scheduler<FixedPolicy, PageManager>::create(manager, odd, options).code() ==
        StatusCode::invalid_argument);
}

}  // namespace
}  // namespace growpage::test
