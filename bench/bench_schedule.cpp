// SPDX-License-Identifier: Apache-2.0
// schedule() + complete() per running request and step, for each policy: host time only, no kernel.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/scheduler.hpp"

namespace {

using namespace growpage;  // NOLINT(google-build-using-namespace)

constexpr std::int32_t kPageSize = 256;
constexpr std::int64_t kOutput = 60000;  // no request ends while it is measured

/// An engine that does nothing but answer.
template <class Policy>
class Engine {
 public:
  Engine(const Policy& policy, std::int32_t requests)
      : cache_(PageManager::create(pages(requests)).value()),
        scheduler_(
            Scheduler<Policy, PageManager>::create(cache_, policy, options(requests)).value()),
        marks_(512),
        page_kept_(512) {
    tokens_.reserve(static_cast<std::size_t>(requests));
    demand_.reserve(static_cast<std::size_t>(requests));
    fences_.reserve(static_cast<std::size_t>(requests));
    std::vector<TokenId> prompt;
    for (std::int32_t i = 0; i < requests; ++i) {
      prompt.assign(static_cast<std::size_t>(1 + i % kPageSize), i);  // boundaries spread out
      RequestSpec spec;
      spec.tag = static_cast<std::uint64_t>(i);
      spec.prompt = prompt;
      spec.max_new_tokens = kOutput;
      (void)scheduler_.submit(spec);
    }
    while (scheduler_.running() < requests) step();
    for (int i = 0; i < 2 * kPageSize; ++i) step();  // past the free pages
  }

  std::size_t step() {
    const StepPlan& plan = **scheduler_.schedule();
    tokens_.clear();
    demand_.clear();
    fences_.clear();
    for (const CompactionItem& item : plan.compactions) {
      fences_.push_back(item.ticket.fence);
      const std::size_t held = cache_.view(item.ticket.sequence)->pages.size();
      const std::span<std::uint8_t> marks(marks_.data(), held);
      (void)cache_.page_marks(item.ticket.sequence, 0, marks);
      const std::span<const std::int32_t> kept(page_kept_.data(), held);
      const auto made =
          plan_compaction(marks, kept, item.ticket.victims, CompactionStrategy::fill_holes);
      (void)cache_.apply_compaction(item.ticket, *made, kept, kPageSize);
    }
    for (const PrefillChunk& chunk : plan.prefills) {
      if (chunk.last) tokens_.push_back({chunk.request, 1, false});
    }
    for (const DecodeItem& item : plan.decodes) tokens_.push_back({item.request, 1, false});
    for (const DemandItem& item : plan.demand) {
      const double delta =
          (item.tag + static_cast<std::uint64_t>(item.position) / 256) % 8 == 0 ? 0.1 : -0.1;
      demand_.push_back({item.request, {0.5 + delta, 0.5, 1}});
    }
    (void)scheduler_.complete({tokens_, demand_, fences_, {}});
    return plan.decodes.size();
  }

 private:
  static PageManagerOptions pages(std::int32_t requests) {
    PageManagerOptions options;
    options.pages = std::int64_t{requests} * 256;
    options.page_size = kPageSize;
    options.max_sequences = requests;
    options.max_pages_per_sequence = 256;
    return options;
  }
  static SchedulerOptions options(std::int32_t requests) {
    SchedulerOptions options;
    options.max_running = options.summary_slots = requests;
    options.max_batched_tokens = std::max(8192, 2 * requests);
    return options;
  }

  PageManager cache_;
  Scheduler<Policy, PageManager> scheduler_;
  std::vector<SampledToken> tokens_;
  std::vector<MeasuredDemand> demand_;
  std::vector<FenceId> fences_;
  std::vector<std::uint8_t> marks_;
  std::vector<std::int32_t> page_kept_;
};

template <class Policy>
void schedule_and_complete(benchmark::State& state) {
  Engine<Policy> engine(Policy{}, static_cast<std::int32_t>(state.range(0)));
  std::size_t decoded = 0;
  for (auto _ : state) decoded += engine.step();
  state.SetItemsProcessed(static_cast<std::int64_t>(decoded));
  state.counters["ns/request"] =
      benchmark::Counter(static_cast<double>(decoded) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void requests(benchmark::internal::Benchmark* bench) {
  bench->Arg(1)->Arg(64)->Arg(512)->Iterations(8000);
}
void many_requests(benchmark::internal::Benchmark* bench) { bench->Arg(10000)->Iterations(400); }

#define GROWPAGE_BENCH(Policy)                                        \
  BENCHMARK_TEMPLATE(schedule_and_complete, Policy)->Apply(requests); \
  BENCHMARK_TEMPLATE(schedule_and_complete, Policy)->Apply(many_requests)

GROWPAGE_BENCH(FullPolicy);
GROWPAGE_BENCH(FixedPolicy);
GROWPAGE_BENCH(ZipagePolicy);
GROWPAGE_BENCH(GrowPagePolicy);
GROWPAGE_BENCH(RandomPolicy);
GROWPAGE_BENCH(InversePolicy);
GROWPAGE_BENCH(ShrinkPolicy);

}  // namespace
