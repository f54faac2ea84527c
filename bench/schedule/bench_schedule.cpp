// SPDX-License-Identifier: Apache-2.0
// schedule() and complete() per running request and step, under each policy: host time, no kernel.
// Only the two calls are timed, less the cost of the clock; the engine's answer is not.
#include <algorithm>
#include <vector>

#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/scheduler.hpp"
#include "support/check.hpp"
#include "support/host.hpp"

namespace growpage::bench {
namespace {

constexpr std::int32_t page_size = 256;
constexpr std::int64_t output = 32768;  // the paper's cap: no request ends while it is measured

/// A policy that decides at every boundary from the third page on: what is measured is to hold
/// decisions, not the pages that requests are given before the first one.
template <class Policy>
Policy deciding() {
  Policy policy;
  if constexpr (requires { policy.capacity; }) policy.capacity.initial_pages = 2;
  if constexpr (requires { policy.budget_tokens; }) policy.budget_tokens = 2 * page_size;
  if constexpr (requires { policy.pages; }) policy.pages = 2;
  return policy;
}

/// An engine that does nothing but answer. Prompts of all lengths up to a page: in every step about
/// one request in 256 is at a boundary.
template <class Policy>
class Engine {
 public:
  explicit Engine(std::int32_t requests)
      : by_thread_(requests >= 512),
        cache_(PageManager::create(pages(requests)).value()),
        scheduler_(
            Scheduler<Policy, PageManager>::create(cache_, deciding<Policy>(), options(requests))
                .value()),
        marks_(512),
        page_kept_(512) {
    tokens_.reserve(static_cast<std::size_t>(requests));
    demand_.reserve(static_cast<std::size_t>(requests));
    fences_.reserve(static_cast<std::size_t>(requests));
    std::vector<TokenId> prompt;
    for (std::int32_t i = 0; i < requests; ++i) {
      prompt.assign(static_cast<std::size_t>(1 + i % page_size), i);
      RequestSpec spec;
      spec.tag = static_cast<std::uint64_t>(i);
      spec.prompt = prompt;
      spec.max_new_tokens = output;
      check(scheduler_.submit(spec).ok());
    }
    while (scheduler_.running() < requests) step();
    for (int i = 0; i < 2 * page_size; ++i) step();  // past the prefills and the free pages
    schedule_seconds = complete_seconds = 0;
    decoded = 0;
    compacted_ = scheduler_.counters().compact;
  }

  void step() {
    const double start = clock();
    const StepPlan& plan = **scheduler_.schedule();
    schedule_seconds += clock() - start;
    answer(plan);
    decoded += plan.decodes.size();
    const double answered = clock();
    const Status status = scheduler_.complete({tokens_, demand_, fences_, {}});
    complete_seconds += clock() - answered;
    check(status.ok());
  }

  /// Short steps are timed by the wall clock, which costs less to read than the thread's.
  [[nodiscard]] double clock() const { return by_thread_ ? thread_now() : now(); }

  /// Whether compactions were among what was timed, where the policy has them.
  [[nodiscard]] bool decided() const {
    return !Policy().may_compact() || scheduler_.counters().compact > compacted_;
  }

  double schedule_seconds = 0;
  double complete_seconds = 0;
  std::size_t decoded = 0;

 private:
  void answer(const StepPlan& plan) {
    tokens_.clear();
    demand_.clear();
    fences_.clear();
    for (const CompactionItem& item : plan.compactions) compact(item.ticket);
    for (const PrefillChunk& chunk : plan.prefills) {
      if (chunk.last) tokens_.push_back({chunk.request, 1, false});
    }
    for (const DecodeItem& item : plan.decodes) tokens_.push_back({item.request, 1, false});
    for (const DemandItem& item : plan.demand) {
      const auto boundary = item.tag + static_cast<std::uint64_t>(item.position) / page_size;
      demand_.push_back({item.request, {boundary % 8 == 0 ? 0.6 : 0.4, 0.5, 1}});
    }
  }
  void compact(const CompactionTicket& ticket) {
    const std::size_t held = cache_.view(ticket.sequence)->pages.size();
    const std::span<std::uint8_t> marks(marks_.data(), held);
    const std::span<const std::int32_t> kept(page_kept_.data(), held);
    check(cache_.page_marks(ticket.sequence, 0, marks).ok());
    const auto plan = plan_compaction(marks, kept, ticket.victims, CompactionStrategy::fill_holes);
    check(cache_.apply_compaction(ticket, *plan, kept, page_size).ok());
    fences_.push_back(ticket.fence);
  }
  static PageManagerOptions pages(std::int32_t requests) {
    PageManagerOptions options;
    options.pages = std::int64_t{requests} * 160;
    options.page_size = page_size;
    options.max_sequences = requests;
    options.max_pages_per_sequence = 160;
    return options;
  }
  static SchedulerOptions options(std::int32_t requests) {
    SchedulerOptions options;
    options.max_running = options.summary_slots = requests;
    options.max_batched_tokens = std::max(8192, 2 * requests);
    return options;
  }

  std::int64_t compacted_ = 0;
  bool by_thread_;
  PageManager cache_;
  Scheduler<Policy, PageManager> scheduler_;
  std::vector<SampledToken> tokens_;
  std::vector<MeasuredDemand> demand_;
  std::vector<FenceId> fences_;
  std::vector<std::uint8_t> marks_;
  std::vector<std::int32_t> page_kept_;
};

/// Seconds between two readings of the clock.
template <class Policy>
double clock_cost(const Engine<Policy>& engine) {
  std::vector<double> costs;
  for (int i = 0; i < 1001; ++i) {
    const double start = engine.clock();
    costs.push_back(engine.clock() - start);
  }
  return median(costs);
}

template <class Policy>
void steps(benchmark::State& state) {
  const auto requests = static_cast<std::int32_t>(state.range(0));
  Engine<Policy> engine(requests);
  const int steps_a_round = std::clamp(10000 / requests, 2, 512);
  const double clock = clock_cost(engine);
  std::vector<double> schedule;
  std::vector<double> complete;
  schedule.reserve(short_rounds + 2);
  complete.reserve(short_rounds + 2);
  measure_host(state, 1, [&] {
    engine.schedule_seconds = engine.complete_seconds = 0;
    engine.decoded = 0;
    for (int i = 0; i < steps_a_round; ++i) engine.step();
    const auto decoded = static_cast<double>(engine.decoded);
    schedule.push_back((engine.schedule_seconds - clock * steps_a_round) / decoded);
    complete.push_back((engine.complete_seconds - clock * steps_a_round) / decoded);
    return schedule.back() + complete.back();
  });
  check(engine.decided());
  state.counters["schedule_ns"] = median(schedule) * 1e9;
  state.counters["complete_ns"] = median(complete) * 1e9;
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgName("requests")->Arg(1)->Arg(64)->Arg(512)->Arg(10000)->Apply(in_short_rounds);
}

BENCHMARK_TEMPLATE(steps, FullPolicy)->Name("schedule/step/full")->Apply(sizes);
BENCHMARK_TEMPLATE(steps, FixedPolicy)->Name("schedule/step/fixed")->Apply(sizes);
BENCHMARK_TEMPLATE(steps, ZipagePolicy)->Name("schedule/step/zipage")->Apply(sizes);
BENCHMARK_TEMPLATE(steps, GrowPagePolicy)->Name("schedule/step/growpage")->Apply(sizes);
BENCHMARK_TEMPLATE(steps, RandomPolicy)->Name("schedule/step/random")->Apply(sizes);
BENCHMARK_TEMPLATE(steps, InversePolicy)->Name("schedule/step/inverse")->Apply(sizes);
BENCHMARK_TEMPLATE(steps, ShrinkPolicy)->Name("schedule/step/shrink")->Apply(sizes);

// Growth alone: at these sizes the state of the requests lies outside of the L2 cache at either
// end.
BENCHMARK_TEMPLATE(steps, GrowPagePolicy)
    ->Name("schedule/growth/growpage")
    ->ArgName("requests")
    ->Arg(2500)
    ->Arg(5000)
    ->Arg(10000)
    ->Apply(in_short_rounds);

}  // namespace
}  // namespace growpage::bench
