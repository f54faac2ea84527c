// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "growpage/cache/page_manager.hpp"
#include "growpage/observe/counters.hpp"
#include "growpage/observe/decision_log.hpp"
#include "growpage/policy/capacity_policy.hpp"
#include "growpage/schedule/request.hpp"
#include "growpage/schedule/scheduler_options.hpp"
#include "growpage/schedule/step_plan.hpp"

namespace growpage {

/// Anything that keeps pages: PageManager itself, or PagedKVCache, which is one with memory.
template <class C>
concept PageCache = std::derived_from<C, PageManager>;

/// Continuous batching over a paged cache under a capacity policy. Pure host logic: it plans, the
/// engine runs kernels. One owner thread; schedule() and complete() alternate; submit() and abort()
/// may come between any two calls. In the steady state nothing is allocated and no lock is taken.
template <CapacityPolicy Policy, PageCache Cache>
class Scheduler {
 public:
  /// `cache` is borrowed and outlives the scheduler; while the scheduler lives only it admits,
  /// appends to and releases sequences it made. invalid_argument when an option or the policy is
  /// out of range.
  [[nodiscard]] static Result<Scheduler> create(Cache& cache, Policy policy,
                                                const SchedulerOptions& options);

  /// Queues a request. request_too_large when it could never run to its end, even alone (its prompt
  /// and one page, or with a policy that never evicts its whole text, exceed the pool or the block
  /// table); invalid_argument for an empty prompt, max_new_tokens < 1, …. Allocates.
  [[nodiscard]] Result<RequestId> submit(const RequestSpec& spec);
  /// Ends a request in any state; its pages and slot return (those under a fence when it
  /// completes). stale_id when it is gone already.
  Status abort(RequestId id);

  /// Decides the next step. The plan stays valid until the next schedule(). protocol_error when the
  /// previous plan was not completed.
  [[nodiscard]] Result<const StepPlan*> schedule();
  /// Takes the engine's results of the current plan. protocol_error without a plan;
  /// invalid_argument when a planned token or demand is missing, doubled, or belongs to no entry of
  /// the plan (checked before anything changes).
  Status complete(const StepResult& result);

  /// Requests that ended since the last call; newest last. The view is valid until the next
  /// complete(), abort() or submit().
  struct Finished {
    RequestId request;
    std::uint64_t tag = 0;
    std::int64_t generated = 0;
    bool aborted = false;
  };
  [[nodiscard]] std::span<const Finished> finished() const noexcept;

  [[nodiscard]] Result<RequestState> state(RequestId id) const;
  /// The request's text so far, prompt and generated tokens. Valid until the next complete() or
  /// submit().
  [[nodiscard]] Result<std::span<const TokenId>> text(RequestId id) const;

  /// No request waiting, running or in flight.
  [[nodiscard]] bool idle() const noexcept;
  [[nodiscard]] std::int64_t waiting() const noexcept;
  [[nodiscard]] std::int64_t running() const noexcept;
  [[nodiscard]] const Counters& counters() const noexcept;
  [[nodiscard]] DecisionLog& decisions() noexcept;
  [[nodiscard]] const Policy& policy() const noexcept;
  [[nodiscard]] Cache& cache() noexcept;
  /// Accounting of requests, slots and pages against the cache; O(everything). For tests.
  [[nodiscard]] Status check_invariants() const;
};

}  // namespace growpage

#include "growpage/detail/scheduler.hpp"
