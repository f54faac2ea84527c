// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "kernel_signal.hpp"
#include "mixed_workload.hpp"
#include "process_signal.hpp"
#include "replayer.hpp"

namespace growpage::replay {
namespace {

constexpr std::int64_t decisions_per_step = 4096;  // drained after each

RunResult failed(const Status& status) {
  RunResult result;
  result.failure = status.message();
  return result;
}

/// The policy with what the options say of it.
Result<AnyPolicy> make_policy(std::string_view name, const ReplayOptions& options) {
  Result<AnyPolicy> policy = AnyPolicy::named(name);
  if (!policy.ok()) return policy;
  std::visit(
      [&](auto& p) {
        using P = std::remove_reference_t<decltype(p)>;
        if constexpr (requires { p.capacity.initial_pages; }) {
          p.capacity.initial_pages = options.initial_pages;
        }
        if constexpr (std::is_same_v<P, FixedPolicy>) p.budget_tokens = options.budget;
        if constexpr (std::is_same_v<P, ZipagePolicy>) {
          p.pages = options.budget / options.shape.page_size;
        }
        if constexpr (std::is_same_v<P, GrowPagePolicy>) p.threshold = options.threshold;
        if constexpr (std::is_same_v<P, RandomPolicy>) p.seed = options.seed;
        // The paper's 1024 tokens are four of its pages.
        if constexpr (std::is_same_v<P, ShrinkPolicy>) p.min_tokens = 4 * options.shape.page_size;
      },
      policy->variant());
  return policy;
}

PageManagerOptions page_options(const ReplayOptions& options,
                                std::span<const TraceRequest> workload) {
  PageManagerOptions pages;
  pages.pages = options.pages;
  pages.page_size = options.shape.page_size;
  pages.host_pages = options.preemption == Preemption::swap ? options.host_pages : 0;
  // Swapped requests keep their sequences.
  pages.max_sequences = 2 * options.max_running;
  pages.max_fences = 2 * options.max_running;
  const std::int64_t longest = totals(workload).longest / options.shape.page_size + 2;
  pages.max_pages_per_sequence = static_cast<std::int32_t>(std::min(longest, options.pages));
  return pages;
}

template <Signal S>
RunResult replay(S& signal, typename S::Cache& cache, AnyPolicy policy,
                 const ReplayOptions& options, std::span<const TraceRequest> workload,
                 const RunHooks& hooks) {
  SchedulerOptions scheduling;
  scheduling.max_batched_tokens = options.max_batched_tokens;
  scheduling.max_running = options.max_running;
  scheduling.summary_slots = options.max_running;
  scheduling.preemption = options.preemption;
  scheduling.overcommit = options.overcommit;
  scheduling.decision_capacity = hooks.on_decision ? decisions_per_step : 0;
  using Sched = typename Replayer<S>::Sched;
  Result<Sched> scheduler = Sched::create(cache, std::move(policy), scheduling);
  if (!scheduler.ok()) return failed(scheduler.status());
  ReplayerOptions replaying;
  replaying.rate_scale = options.rate_scale;
  replaying.fence_delay = options.fence_delay;
  replaying.check_every = options.check_every;
  replaying.timeline = hooks.timeline;
  replaying.on_decision = hooks.on_decision;
  replaying.on_progress = hooks.on_progress;
  return Replayer<S>(signal, *scheduler, workload, replaying).run();
}

RunResult run_process(const ReplayOptions& options, std::span<const TraceRequest> workload,
                      AnyPolicy policy, const RunHooks& hooks) {
  Result<PageManager> cache = PageManager::create(page_options(options, workload));
  if (!cache.ok()) return failed(cache.status());
  DemandProcess process;
  process.seed = options.seed;
  ProcessSignal signal(*cache, options.shape, process, options.costs);
  return replay(signal, *cache, std::move(policy), options, workload, hooks);
}

RunResult run_kernels(const ReplayOptions& options, std::span<const TraceRequest> workload,
                      AnyPolicy policy, const RunHooks& hooks) {
  if (Status s = TensorGenerator::validate(options.shape); !s.ok()) return failed(s);
  const TensorGenerator generator(options.shape, options.seed);
  PagedKVCacheOptions caching;
  caching.shape = options.shape;
  caching.pages = page_options(options, workload);
  caching.dtype = DType::bf16;
  caching.summary.slots = options.max_running;
  caching.rope = generator.rope();
  caching.retention = policy.retention();
  if (caching.retention.score == ScoreKind::window) {
    caching.summary.window = caching.retention.window;
  }
  Result<KernelSignal::Cache> cache = KernelSignal::Cache::create(caching);
  if (!cache.ok()) return failed(cache.status());
  KernelSignal signal(*cache, generator);
  return replay(signal, *cache, std::move(policy), options, workload, hooks);
}

}  // namespace

Trace make_workload(const ReplayOptions& options) {
  Trace trace;
  if (!options.trace.empty()) {
    trace = read_trace(options.trace, options.format, options.requests);
  } else {
    MixedWorkloadOptions generating;
    generating.seed = options.seed;
    const bool mixed = options.workload == Workload::mixed;
    trace.requests = mixed ? mixed_workload(mixed_benchmarks, generating)
                           : mixed_workload(std::span(&amc23_benchmark, 1), generating);
  }
  if (!trace.error) reshape(trace.requests, options.requests, options.scale);
  return trace;
}

RunResult run_policy(const ReplayOptions& options, std::span<const TraceRequest> workload,
                     std::string_view policy, const RunHooks& hooks) {
  Result<AnyPolicy> made = make_policy(policy, options);
  Status status = made.status();
  if (status.ok()) status = options.shape.validate();
  RunResult result;
  if (!status.ok()) {
    result = failed(status);
  } else if (options.signal == SignalKind::process) {
    result = run_process(options, workload, *std::move(made), hooks);
  } else {
    result = run_kernels(options, workload, *std::move(made), hooks);
  }
  result.policy = policy;
  return result;
}

}  // namespace growpage::replay
