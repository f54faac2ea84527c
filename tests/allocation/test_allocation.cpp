// SPDX-License-Identifier: Apache-2.0
// Nothing is allocated once a scheduler and a cache are warm.
#include <memory>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "growpage/cache/paged_kv_cache.hpp"
#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/execute.hpp"
#include "growpage/schedule/scheduler.hpp"
#include "support/allocation_counter.hpp"
#include "support/catch.hpp"
#include "support/malloc_counter.hpp"

namespace growpage::test {
namespace {

/// Allocations of any kind since construction.
class Allocations {
 public:
  [[nodiscard]] std::int64_t count() const { return news_.count() + malloc_count - mallocs_; }

 private:
  std::int64_t mallocs_ = malloc_count;
  AllocationCounter news_;
};

TEST_CASE("the counters count") {
  const Allocations allocations;
  const auto number = std::make_unique<int>(3);
  CHECK(*number == 3);
  CHECK(allocations.count() >= 1);
  if (!kMallocCounted) return;
  const Allocations plain;
  void* volatile memory = std::malloc(10);
  std::free(memory);
  CHECK(plain.count() == 1);
}

/// Drives plans without tensors: every fence is done at once, Δ goes up and down.
struct Driver {
  Scheduler<AnyPolicy, PageManager>& scheduler;
  std::vector<SampledToken> tokens;
  std::vector<MeasuredDemand> demand;
  std::vector<FenceId> fences;
  std::vector<std::uint8_t> marks = std::vector<std::uint8_t>(256);
  std::vector<std::int32_t> page_kept = std::vector<std::int32_t>(256);

  explicit Driver(Scheduler<AnyPolicy, PageManager>& driven) : scheduler(driven) {
    tokens.reserve(1024);
    demand.reserve(1024);
    fences.reserve(1024);
  }
  void step() {
    const StepPlan& plan = **scheduler.schedule();
    tokens.clear();
    demand.clear();
    fences.clear();
    PageManager& cache = scheduler.cache();
    for (const SwapItem& item : plan.swap_outs) fences.push_back(item.fence);
    for (const SwapItem& item : plan.swap_ins) fences.push_back(item.fence);
    for (const CompactionItem& item : plan.compactions) {
      fences.push_back(item.ticket.fence);
      const std::size_t pages = cache.view(item.ticket.sequence)->pages.size();
      const std::span<std::uint8_t> page_marks(marks.data(), pages);
      (void)cache.page_marks(item.ticket.sequence, 0, page_marks);
      std::fill_n(page_kept.begin(), pages, 8);
      const std::span<const std::int32_t> kept(page_kept.data(), pages);
      const auto compaction =
          plan_compaction(page_marks, kept, item.ticket.victims, item.ticket.strategy);
      (void)cache.apply_compaction(item.ticket, *compaction, kept, 16);
    }
    for (const PrefillChunk& chunk : plan.prefills) {
      if (chunk.last) tokens.push_back({chunk.request, 1, false});
    }
    for (const DecodeItem& item : plan.decodes) {
      tokens.push_back({item.request, static_cast<TokenId>(item.position % 97), false});
    }
    for (const DemandItem& item : plan.demand) {
      const double delta =
          (item.tag + static_cast<std::uint64_t>(item.position / 16)) % 3 == 0 ? 0.1 : -0.1;
      demand.push_back({item.request, {0.5 + delta, 0.5, 1}});
    }
    (void)scheduler.complete({tokens, demand, fences, {}});
  }
};

TEST_CASE("schedule() and complete() allocate nothing in the steady state") {
  const Preemption preemption = GENERATE(Preemption::recompute, Preemption::swap);
  const int which = GENERATE(0, 1, 2, 3);
  GrowPagePolicy grow;
  grow.capacity.initial_pages = 2;
  grow.retention_options.shared = SharedPages::copy;
  ShrinkPolicy shrink;
  shrink.min_tokens = 32;
  shrink.capacity.initial_pages = 2;
  const AnyPolicy policy = which == 0   ? AnyPolicy(grow)
                           : which == 1 ? AnyPolicy(shrink)
                           : which == 2 ? AnyPolicy(FixedPolicy{64, {}})
                                        : AnyPolicy(FullPolicy{});
  PageManagerOptions pages;
  pages.pages = which == 3 ? 1400 : 400;  // the full policy cannot let go: 64 texts of 42 pages
  pages.page_size = 16;
  pages.max_sequences = 128;
  pages.max_pages_per_sequence = 64;
  pages.host_pages = 2000;
  pages.event_capacity = 64;
  auto cache = PageManager::create(pages).value();
  SchedulerOptions options;
  options.max_running = 64;
  options.summary_slots = 64;
  options.preemption = preemption;
  options.decision_capacity = 64;
  auto scheduler = Scheduler<AnyPolicy, PageManager>::create(cache, policy, options).value();
  std::vector<TokenId> prompt(40, 7);
  for (std::uint64_t tag = 0; tag < 64; ++tag) {
    prompt[20] = static_cast<TokenId>(tag);
    RequestSpec spec;
    spec.tag = tag;
    spec.prompt = prompt;
    spec.max_new_tokens = which == 3 ? 600 : 900;
    REQUIRE(scheduler.submit(spec).ok());
  }
  Driver driver(scheduler);
  for (int i = 0; i < 400; ++i) driver.step();
  const Counters before = scheduler.counters();
  const Allocations allocations;
  for (int i = 0; i < 150; ++i) driver.step();
  const std::int64_t allocated = allocations.count();
  const Counters& after = scheduler.counters();
  CHECK(allocated == 0);
  CHECK(after.decode_tokens - before.decode_tokens > 2000);
  if (which == 0) CHECK(after.compact > before.compact);
  if (which == 1) CHECK(after.shrink > before.shrink);
  if (which == 2) CHECK(after.compact > before.compact);
  if (which == 3) CHECK(after.preempt > before.preempt);
  CHECK(cache.check_invariants().ok());
}

TEST_CASE("no call of PagedKVCache that launches a kernel allocates") {
  const CpuBackend::Isa isa = GENERATE(CpuBackend::Isa::scalar, CpuBackend::Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const bool window = GENERATE(false, true);
  PagedKVCacheOptions options;
  options.shape = {2, 4, 2, 32, 0, 16};
  options.pages.pages = 16;
  options.pages.host_pages = 16;
  options.pages.max_sequences = 4;
  options.pages.max_pages_per_sequence = 8;
  options.dtype = dtype;
  options.summary.slots = 4;
  options.retention.recent = 4;
  if (window) {
    options.summary.window = 8;
    options.retention.score = ScoreKind::window;
    options.retention.window = 8;
    options.retention.max_pool = 5;
    options.retention.global_decay = 0.8F;
    options.retention.redundancy_weight = 0.8F;
  }
  auto cache = PagedKVCache<CpuBackend>::create(options, CpuBackend({}, isa)).value();
  const std::vector<std::byte> rows(std::size_t{64} * 2 * 32 * 4);  // zeros are rows, too
  const std::vector<float> queries(std::size_t{2} * 2 * 4 * 32, 0.25F);
  std::vector<float> out(4 * 32);
  std::vector<std::int64_t> slots(64);
  std::vector<std::int32_t> table(8);
  std::vector<PageCopy> copies;
  std::vector<PageTransfer> transfers;
  copies.reserve(16);
  transfers.reserve(16);
  const std::vector<SummaryEntry> entries = {{0, 1}, {1, 1}};

  const Allocations allocations;
  bool good = true;
  const auto admission = cache.admit({});
  const SequenceId id = admission->sequence;
  good &= cache.reserve(id, 64).ok() && cache.append(id, 64, nullptr, copies).ok();
  for (std::int32_t s = 0; s < 64; ++s)
    slots[static_cast<std::size_t>(s)] = cache.physical_slot(id, s);
  for (std::int32_t l = 0; l < 2; ++l) {
    good &= cache.append_kv(l, slots, rows.data(), rows.data()).ok();
  }
  good &= cache.mark_computed(id, 64).ok();
  good &= cache.update_summaries(entries, {queries.data()}, 0, 2).ok();
  Demand demand;
  good &= cache.measure_demand(id, SummarySlot{0}, 63, demand).ok();
  const auto ticket =
      cache.begin_compaction(id, 1, CompactionStrategy::fill_holes, SharedPages::keep, copies);
  good &= cache.compact(*ticket, SummarySlot{0}, 63).ok();
  good &= cache.complete_fence(ticket->fence).ok();
  const auto view = cache.view(id);
  for (std::size_t p = 0; p < view->pages.size(); ++p) table[p] = view->pages[p].value;
  const std::int32_t length = view->slots;
  good &= cache.attention(0, table, 8, {&length, 1}, queries.data(), out.data()).ok();
  const auto fork = cache.fork(id);
  const std::int32_t before = view->slots;
  good &= cache.append(*fork, 1, nullptr, copies).ok();
  good &= cache.run_copies(copies).ok();
  const auto out_fence = cache.swap_out(id, transfers);
  good &= cache.run_swap_out(id, SummarySlot{0}, transfers).ok();
  good &= cache.complete_fence(*out_fence).ok();
  transfers.clear();
  const auto in_fence = cache.swap_in(id, transfers);
  good &= cache.run_swap_in(id, SummarySlot{2}, transfers).ok();
  good &= cache.complete_fence(*in_fence).ok();
  good &= cache.release(id).ok() && cache.release(*fork).ok();
  const std::int64_t allocated = allocations.count();
  CHECK(good);
  CHECK(allocated == 0);
  CHECK(before == 48);
  CHECK(demand.count == 4);
}

}  // namespace
}  // namespace growpage::test
