// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "growpage/policy/any_policy.hpp"
#include "support/fake_engine.hpp"

namespace growpage::test {

/// A policy whose answers a test writes, and which remembers what it was asked.
struct Script {
  std::function<Decision(const BoundaryContext&)> answer = [](const BoundaryContext&) {
    return Decision::grow;
  };
  std::vector<BoundaryContext> asked;

  AnyPolicy policy(CapacityLimits limits, bool demand = false, RetentionOptions retention = {}) {
    const auto call = [](void* self, const BoundaryContext& context) {
      auto* script = static_cast<Script*>(self);
      script->asked.push_back(context);
      return script->answer(context);
    };
    return AnyPolicy(UserPolicy{call, this, demand, limits, retention});
  }
};

/// A page manager, a scheduler and an engine, with a test's settings: pages of 16 tokens.
class Serving {
 public:
  using Engine = FakeEngine<AnyPolicy>;
  struct Setup {
    PageManagerOptions pages{.pages = 64,
                             .page_size = 16,
                             .max_sequences = 32,
                             .max_pages_per_sequence = 32,
                             .prefix_caching = true};
    SchedulerOptions scheduler{.max_batched_tokens = 256, .max_running = 16, .summary_slots = 16};
    Engine::Options engine;
  };

  Serving(const Setup& setup, AnyPolicy policy)
      : manager_(PageManager::create(setup.pages).value()),
        scheduler_(
            Scheduler<AnyPolicy, PageManager>::create(manager_, std::move(policy), setup.scheduler)
                .value()),
        engine_(scheduler_, setup.scheduler, setup.engine) {}
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  [[nodiscard]] PageManager& manager() { return manager_; }
  [[nodiscard]] Scheduler<AnyPolicy, PageManager>& scheduler() { return scheduler_; }
  [[nodiscard]] Engine& engine() { return engine_; }
  [[nodiscard]] const Counters& counters() const { return scheduler_.counters(); }
  [[nodiscard]] RequestState state(RequestId id) const { return scheduler_.state(id).value(); }
  [[nodiscard]] SequenceView view(RequestId id) const {
    return manager_.view(engine_.live(id).sequence).value();
  }
  [[nodiscard]] std::size_t pages(RequestId id) const { return view(id).pages.size(); }

  /// Steps until the plan satisfies `wanted`; returns that plan.
  template <class F>
  const StepPlan& step_until(F&& wanted, int most = 2000) {
    for (int i = 0; i < most; ++i) {
      const StepPlan& plan = engine_.step();
      if (wanted(plan)) return plan;
    }
    FAIL("it never happened");
    return engine_.plan();
  }
  /// Steps until the first decode is at `position`; returns that plan.
  const StepPlan& decode_position(std::int64_t position) {
    return step_until([position](const StepPlan& plan) {
      return !plan.decodes.empty() && plan.decodes[0].position == position;
    });
  }
  void finish() {
    engine_.run(20000);
    engine_.expect_no_leak();
  }

 private:
  PageManager manager_;
  Scheduler<AnyPolicy, PageManager> scheduler_;
  Engine engine_;
};

}  // namespace growpage::test
