// SPDX-License-Identifier: Apache-2.0
// Requests under compaction: how many at once, what of them is kept, what of it is shared. Pages of
// 16 tokens.
#include <algorithm>
#include <array>
#include <vector>

#include "support/catch.hpp"
#include "support/serving.hpp"

namespace growpage::test {
namespace {

const auto kCompact = [](const BoundaryContext&) { return Decision::compact; };

TEST_CASE("a compacting request sits out until its fence is done") {
  Serving::Setup setup;
  Script script;
  script.answer = kCompact;
  Serving serving(setup, script.policy({2, 0}));
  const RequestId a = serving.engine().submit(1, 5, 60);
  const RequestId b = serving.engine().submit(2, 3, 60);
  serving.decode_position(31);
  serving.engine().start_step();
  REQUIRE(serving.engine().plan().compactions.size() == 1);
  CHECK(serving.state(a) == RequestState::compacting);
  CHECK(serving.engine().plan().decodes.size() == 1);
  CHECK(serving.engine().plan().decodes[0].request == b);
  CHECK(serving.scheduler().running() == 2);
  serving.engine().execute();
  serving.engine().complete();
  CHECK(serving.state(a) == RequestState::decoding);
  serving.finish();
}

TEST_CASE("max_compacting_pages bounds the pages of requests under compaction") {
  Serving::Setup setup;
  setup.scheduler.max_compacting_pages = 4;  // two requests of two pages
  Script script;
  script.answer = kCompact;
  Serving serving(setup, script.policy({2, 0}));
  for (std::uint64_t tag = 1; tag <= 5; ++tag) serving.engine().submit(tag, 5, 60);
  std::vector<std::size_t> begun;
  while (begun.size() < 3) {
    const std::size_t n = serving.engine().step().compactions.size();
    if (n > 0) begun.push_back(n);
  }
  CHECK(begun == std::vector<std::size_t>{2, 2, 1});
  CHECK(script.asked.size() == 5);  // asked once each, however long they wait
  serving.finish();
}

TEST_CASE("a request larger than max_compacting_pages is compacted alone") {
  Serving::Setup setup;
  setup.scheduler.max_compacting_pages = 1;
  Script script;
  script.answer = kCompact;
  Serving serving(setup, script.policy({2, 0}));
  serving.engine().submit(1, 5, 60);
  serving.engine().submit(2, 5, 60);
  serving.finish();
  CHECK(serving.counters().compact == 4);  // at 32 and 48, two requests
}

TEST_CASE("protected rows are announced and never evicted") {
  Serving::Setup setup;
  Script script;
  script.answer = kCompact;
  RetentionOptions retention;
  retention.protect_prompt = true;
  retention.recent = 4;
  Serving serving(setup, script.policy({1, 0}, false, retention));
  const RequestId id = serving.engine().submit(1, 20, 80);
  // At 48 the prompt's two pages and the newest are all there is: nothing to evict, it grows.
  serving.decode_position(63);
  CHECK(serving.counters().grow == 1);
  const std::vector<std::uint64_t> before = serving.engine().live(id).rows;
  const StepPlan& plan = serving.engine().step();
  REQUIRE(plan.compactions.size() == 1);
  CHECK(plan.compactions[0].protected_slots == 20);
  const std::vector<std::uint64_t>& after = serving.engine().live(id).rows;
  CHECK(after.size() == 48);
  CHECK(std::equal(before.begin(), before.begin() + 20, after.begin()));
  serving.finish();
}

TEST_CASE("pages shared with another request are kept, or copied when asked for") {
  Script script;
  script.answer = kCompact;
  const bool copy = GENERATE(false, true);
  RetentionOptions retention;
  retention.shared = copy ? SharedPages::copy : SharedPages::keep;
  Serving serving({}, script.policy({1, 0}, false, retention));
  const auto prompt = Serving::Engine::prompt_of(7, 34);
  const RequestId a = serving.engine().submit(1, prompt, 60, 60);
  serving.engine().step();
  const RequestId b = serving.engine().submit(2, prompt, 60, 60);
  serving.engine().step();
  const std::array<PageId, 2> shared = {serving.view(a).pages[0], serving.view(a).pages[1]};
  CHECK(serving.view(b).pages[1] == shared[1]);
  const StepPlan& plan =
      serving.step_until([](const StepPlan& p) { return !p.compactions.empty(); });
  CHECK(plan.compactions[0].request == a);
  CHECK(plan.copies.size() == (copy ? 2 : 0));
  CHECK(serving.counters().copied_pages == (copy ? 2 : 0));
  CHECK(serving.view(b).pages[0] == shared[0]);
  const auto pages = serving.view(a).pages;
  CHECK((std::find(pages.begin(), pages.end(), shared[0]) == pages.end()) == copy);
  serving.finish();
  CHECK(serving.engine().finished() == 2);
}

}  // namespace
}  // namespace growpage::test
