// SPDX-License-Identifier: Apache-2.0
// Random runs of the scheduler over a bare page manager with an engine that checks every promise
// (support/fake_engine.hpp), under memory pressure throughout.
#include <array>
#include <string>

#include "growpage/policy/any_policy.hpp"
#include "support/catch.hpp"
#include "support/fake_engine.hpp"

namespace growpage::test {
namespace {

#ifdef GROWPAGE_NIGHTLY
constexpr std::int64_t kItems = 200'000'000;
#elif defined(NDEBUG)
constexpr std::int64_t kItems = 6'000'000;
#else
constexpr std::int64_t kItems = 1'200'000;
#endif

Decision decide_by_hash(void*, const BoundaryContext& context) {
  return static_cast<Decision>(mix(context.request, static_cast<std::uint64_t>(context.boundary)) %
                               3);
}

/// One of the policies, its limits small enough to be met, its retention options drawn.
AnyPolicy::Variant random_policy(Random& random, std::int32_t page_size,
                                 RetentionOptions& retention) {
  retention.recent = random.below(page_size + 1);
  retention.strategy =
      random.below(2) == 0 ? CompactionStrategy::fill_holes : CompactionStrategy::in_order;
  retention.shared = random.below(3) == 0 ? SharedPages::copy : SharedPages::keep;
  retention.sinks = random.below(3) == 0 ? random.below(page_size + 1) : 0;
  retention.protect_prompt = random.below(5) == 0;
  CapacityLimits limits;
  limits.initial_pages = 1 + random.below(2) * random.below(4);
  limits.max_pages = random.below(2) == 0 ? 0 : 2 + random.below(5);
  switch (random.below(10)) {
    case 0:
    case 8:
    case 9:
      retention = {};
      return FullPolicy{};
    case 1:
      return FixedPolicy{(2 + random.below(3)) * page_size, retention};
    case 2:
      return ZipagePolicy{2 + random.below(4), retention};
    case 3:
      return GrowPagePolicy{0.0, limits, retention};
    case 4:
      return RandomPolicy{0.7, random.bits(), limits, retention};
    case 5:
      return InversePolicy{limits, retention};
    case 6:
      return ShrinkPolicy{-0.1, page_size, limits, retention};
    default:
      return UserPolicy{decide_by_hash, nullptr, random.below(2) == 0, limits, retention};
  }
}

/// A whole life of a small serving system; returns the number of plan entries it saw.
std::int64_t random_run(std::uint64_t seed, Counters& total) {
  Random random(seed);
  PageManagerOptions pages;
  pages.page_size = 16 << random.below(3);
  pages.pages = 3 + random.below(16);
  pages.max_pages_per_sequence = 2 + random.below(7);
  pages.max_sequences = 4 + random.below(12);
  pages.prefix_caching = random.below(4) != 0;
  pages.host_pages = random.below(3) == 0 ? 1 + random.below(8) : 64;
  pages.max_fences = 1 + random.below(8);
  pages.event_capacity = random.below(64);

  RetentionOptions retention;
  AnyPolicy policy(random_policy(random, pages.page_size, retention));
  SchedulerOptions options;
  options.max_batched_tokens = 1 + random.below(4) * pages.page_size + random.below(40);
  options.max_running = 1 + random.below(pages.max_sequences);
  options.summary_slots = 1 + random.below(16);
  options.max_prefill_chunk = random.below(2) == 0 ? 0 : 1 + random.below(40);
  options.preemption = random.below(2) == 0 ? Preemption::recompute : Preemption::swap;
  options.overcommit = random.below(2) == 0;
  options.max_compacting_pages = 1 + random.below(20);
  options.early_slots = random.below(policy.retention().recent + 1);
  options.aging_steps = random.below(3) * 50;
  options.decision_capacity = 16;

  INFO("seed " << seed << " policy " << policy.name() << " page size " << pages.page_size
               << " pages " << pages.pages << " preemption " << static_cast<int>(options.preemption)
               << " strategy " << static_cast<int>(retention.strategy) << " shared "
               << static_cast<int>(retention.shared));
  auto manager = PageManager::create(pages);
  REQUIRE(manager.ok());
  auto scheduler = Scheduler<AnyPolicy, PageManager>::create(*manager, policy, options);
  REQUIRE(scheduler.ok());
  FakeEngine<AnyPolicy>::Options engine_options;
  const bool alike = random.below(2) == 0;  // everybody's text is the same, ends apart
  engine_options.seed = seed;
  engine_options.one_text = alike;
  engine_options.max_fence_delay = random.below(5);
  engine_options.abort_probability = random.below(3) == 0 ? 0.05 : 0.0;
  engine_options.fail_probability = random.below(4) == 0 ? 0.01 : 0.0;
  engine_options.cancel_probability = random.below(4) == 0 ? 0.1 : 0.0;
  FakeEngine<AnyPolicy> engine(*scheduler, options, engine_options);

  const std::array<ExtraKey, 4> keys = {
      {{}, {"X", "", "", 0}, {"", "X", "", 0}, {"", "", "X", pages.page_size + 3}}};
  const std::int32_t requests = 4 + random.below(20);
  std::int64_t tokens = 0;
  for (std::int32_t i = 0; i < requests; ++i) {
    // A few families of prompts, so that prefixes are shared.
    const auto family = static_cast<std::uint64_t>(random.below(alike ? 1 : 3));
    const std::int32_t length = 1 + random.below((1 + random.below(4)) * pages.page_size);
    const std::vector<TokenId> prompt = FakeEngine<AnyPolicy>::prompt_of(family, length);
    const std::int64_t most = 1 + random.below(8 * pages.page_size);
    const std::int64_t output =
        random.below(2) == 0 ? most : 1 + random.below(static_cast<std::int32_t>(most));
    RequestSpec probe;
    probe.prompt = prompt;
    probe.max_new_tokens = most;
    const std::int64_t needed = (length + most - 1 + pages.page_size - 1) / pages.page_size;
    const std::int64_t there = std::min<std::int64_t>(pages.pages, pages.max_pages_per_sequence);
    const std::int64_t least = std::max<std::int64_t>(
        {(length + pages.page_size - 1) / pages.page_size + 1, 2,
         policy.retention().protect_prompt || policy.retention().sinks > 0
             ? (std::max<std::int64_t>(policy.retention().protect_prompt ? length : 0,
                                       policy.retention().sinks) +
                pages.page_size - 1) /
                       pages.page_size +
                   2
             : 0});
    if ((policy.may_compact() ? std::min(needed, least) : needed) > there) {
      REQUIRE(scheduler->submit(probe).code() == StatusCode::request_too_large);
      continue;
    }
    engine.submit(static_cast<std::uint64_t>(i) + 1000 * seed, prompt, output, most,
                  random.below(3) - 1, keys[static_cast<std::size_t>(alike ? 0 : random.below(4))]);
    tokens += length + output;
    for (std::int32_t n = random.below(3) * random.below(5); n > 0; --n) engine.step();
  }
  engine.run(200 + 60 * tokens);
  engine.expect_no_leak();
  const Counters& c = scheduler->counters();
  total.grow += c.grow;
  total.compact += c.compact;
  total.shrink += c.shrink;
  total.fallback += c.fallback;
  total.swap_in += c.swap_in;
  total.swap_out += c.swap_out;
  total.recompute += c.recompute;
  total.aborted += c.aborted;
  total.finished += c.finished;
  total.copied_pages += c.copied_pages;
  total.evicted_pages += c.evicted_pages;
  total.prefix_hit_tokens += c.prefix_hit_tokens;
  return engine.items();
}

TEST_CASE("scheduler and page manager keep every promise in random runs") {
  Counters total;
  std::int64_t items = 0;
  for (std::uint64_t seed = 1; items < kItems; ++seed) items += random_run(seed, total);
  INFO(items << " plan entries");
  // Nothing of what was to be met was missed.
  CHECK(total.finished > 0);
  CHECK(total.grow > 1000);
  CHECK(total.compact > 1000);
  CHECK(total.shrink > 100);
  CHECK(total.fallback > 100);
  CHECK(total.swap_in > 100);
  CHECK(total.recompute > 100);
  CHECK(total.aborted > 100);
  CHECK(total.copied_pages > 20);
  CHECK(total.evicted_pages > 100);
  CHECK(total.prefix_hit_tokens > 1000);
}

}  // namespace
}  // namespace growpage::test
