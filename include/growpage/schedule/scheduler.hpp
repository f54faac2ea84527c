// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "growpage/cache/page_manager.hpp"
#include "growpage/detail/request_table.hpp"
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
///
/// Order and fairness: requests rank by submission step + priority × aging_steps, then submission
/// order, and keep their rank for life. A request is only ever preempted for one of better rank, or
/// for none when it is the last itself; since ranks of new requests grow with the steps, everyone
/// comes first in the end.
template <CapacityPolicy Policy, PageCache Cache>
class Scheduler {
 public:
  /// `cache` is borrowed and outlives the scheduler, and its sequences made here are touched by
  /// nobody else. invalid_argument when an option or the policy is out of range.
  [[nodiscard]] static Result<Scheduler> create(Cache& cache, Policy policy,
                                                const SchedulerOptions& options);

  /// Queues a request. request_too_large when it could never run to its end even alone (its prompt
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
  /// the plan; stale_id for a fence that is not open. All checked before anything changes.
  Status complete(const StepResult& result);

  struct Finished {
    RequestId request;
    std::uint64_t tag = 0;
    std::int64_t generated = 0;
    bool aborted = false;
  };
  /// Requests that ended in the last complete() or by abort() since; valid until the next of
  /// either.
  [[nodiscard]] std::span<const Finished> finished() const noexcept { return finished_; }

  [[nodiscard]] Result<RequestState> state(RequestId id) const;
  /// The request's text so far, prompt and generated tokens. Valid until the next complete() or
  /// submit().
  [[nodiscard]] Result<std::span<const TokenId>> text(RequestId id) const;

  /// No request waiting, running or in flight.
  [[nodiscard]] bool idle() const noexcept { return table_.live() == 0 && in_flight_.empty(); }
  [[nodiscard]] std::int64_t waiting() const noexcept {
    return table_.live() - static_cast<std::int64_t>(running_.size());
  }
  [[nodiscard]] std::int64_t running() const noexcept {
    return static_cast<std::int64_t>(running_.size());
  }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] DecisionLog& decisions() noexcept { return decisions_; }
  [[nodiscard]] const Policy& policy() const noexcept { return policy_; }
  [[nodiscard]] Cache& cache() noexcept { return *cache_; }
  /// Accounting of requests, slots and pages against the cache; O(everything). For tests.
  [[nodiscard]] Status check_invariants() const;

 private:
  using Request = detail::Request;
  /// Whether a request stays in this step's batch.
  enum class Outcome : std::uint8_t { proceed, sits_out };
  struct InFlight {
    FenceId fence;
    RequestId request;
    RequestState state;  // what the fence ends
    std::int32_t pages;  // counted against max_compacting_pages
  };

  Scheduler(Cache& cache, Policy policy, const SchedulerOptions& options);

  // One step, in scheduler_step.hpp.
  void plan_running();
  Outcome plan_decode(Request& r);
  Outcome plan_prefill(Request& r, std::int64_t& budget);
  void promise(const Request& r) noexcept;
  void plan_admissions(std::int64_t& budget);
  bool admit(Request& r);
  bool swap_in(Request& r);
  bool recompute_swapped(const Request& r);
  [[nodiscard]] bool worth_trying(const Request& r) const noexcept;

  // Boundaries and pressure, in scheduler_boundary.hpp.
  Outcome at_boundary(Request& r);
  Outcome grow(Request& r, bool decided);
  Outcome compact(Request& r, DecisionKind kind, SharedPages shared);
  [[nodiscard]] bool compactable(const Request& r, std::int32_t victims, SharedPages shared);
  static std::int64_t one_page() noexcept { return 1; }
  template <class Needed>
  Outcome make_room(Request& r, Needed&& needed);
  void preempt(Request& r);
  void drop_state(Request& r);
  void return_slot(Request& r);
  void leave_batch(Request& r, RequestState state);
  void boundary_passed(Request& r);
  void log_decision(const Request& r, DecisionKind kind, std::int32_t pages_after);
  [[nodiscard]] std::int32_t free_pages_limit(const Request& r) const noexcept;
  [[nodiscard]] std::int64_t prefill_pages(const Request& r) const noexcept;
  [[nodiscard]] std::int64_t pages_due(const Request& r) const noexcept;
  [[nodiscard]] std::int32_t protected_slots(const Request& r) const noexcept;
  [[nodiscard]] double pressure() const noexcept;

  // Results, in scheduler_results.hpp.
  Status check_result(const StepResult& result);
  void finish(Request& r, bool aborted);
  void fence_done(FenceId fence);
  void drop_from_running();

  Cache* cache_;
  Policy policy_;
  SchedulerOptions options_;
  RetentionOptions retention_;
  CapacityLimits limits_;
  std::int32_t page_size_;

  detail::RequestTable table_;
  std::vector<std::uint32_t> running_;  // indices by rank: admitted, incl. those under a fence
  std::vector<std::int32_t> free_slots_;
  std::vector<InFlight> in_flight_;
  std::vector<std::uint8_t> marks_;
  std::vector<Finished> finished_;
  StepPlan plan_;
  Counters counters_;
  DecisionLog decisions_;

  std::int64_t step_ = 0;
  std::uint64_t check_epoch_ = 0;
  std::int64_t compacting_pages_ = 0;
  std::int64_t promised_pages_ = 0;   // still due to the running requests without a decision
  std::int64_t decoding_ = 0;         // running requests that decode
  std::int64_t expected_tokens_ = 0;  // of the current plan
  std::int64_t expected_demand_ = 0;
  bool plan_open_ = false;
  bool running_dirty_ = false;  // running_ holds requests that left
  bool preempted_now_ = false;
};

}  // namespace growpage

#include "growpage/detail/scheduler.hpp"
