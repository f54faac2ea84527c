// SPDX-License-Identifier: Apache-2.0
// The smallest honest engine loop: a toy one-layer model served through GrowPage's scheduler and
// paged cache, with real K/V, real attention over the pages, and real decisions at capacity
// boundaries.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "growpage/growpage.hpp"

namespace gp = growpage;

constexpr std::int32_t kQueryHeads = 4, kKvHeads = 2, kDim = 32, kVocabulary = 1000;

// Stands for a model's projections: a fixed pseudo-random vector per (token, position, role).
std::vector<float> project(gp::TokenId token, std::int64_t position, int role, std::int32_t heads) {
  std::vector<float> out(static_cast<std::size_t>(heads * kDim));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i + 1) * (token % 97 + role) +
                                         0.001 * static_cast<double>(position)));
  }
  return out;
}

void check(const gp::Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "{}\n", status.message());
  std::exit(1);
}

int main() {
  // 1. The cache: 24 pages of 16 tokens, shared by all requests, and the policy that governs them.
  gp::GrowPagePolicy policy;
  policy.capacity.initial_pages = 4;
  gp::PagedKVCacheOptions config;
  config.shape = {1, kQueryHeads, kKvHeads, kDim, 0, 16};
  config.pages.pages = 24;
  config.dtype = gp::DType::f32;
  config.summary.slots = 8;
  config.retention = policy.retention();
  auto cache = gp::PagedKVCache<gp::CpuBackend>::create(config);
  check(cache.status());

  // 2. The scheduler, and some requests.
  gp::SchedulerOptions options;
  options.summary_slots = 8;
  options.max_running = 8;
  auto scheduler = gp::Scheduler<gp::GrowPagePolicy, gp::PagedKVCache<gp::CpuBackend>>::create(
      *cache, policy, options);
  check(scheduler.status());
  for (std::uint64_t tag = 0; tag < 6; ++tag) {
    const std::vector<gp::TokenId> prompt(20 + 7 * tag, static_cast<gp::TokenId>(tag + 1));
    gp::RequestSpec spec;
    spec.tag = tag;
    spec.prompt = prompt;
    spec.max_new_tokens = 150;
    check(scheduler->submit(spec).status());
  }

  // Runs one token through the model: K and V into its slot, attention over the sequence's pages.
  const auto forward = [&](gp::SequenceId sequence, gp::TokenId token, std::int64_t position,
                           std::int32_t slot, gp::SummaryEntry summary) {
    const std::vector<float> q = project(token, position, 1, kQueryHeads);
    const std::vector<float> k = project(token, position, 2, kKvHeads);
    const std::vector<float> v = project(token, position, 3, kKvHeads);
    const std::int64_t target = cache->physical_slot(sequence, slot);
    check(cache->append_kv(0, {&target, 1}, k.data(), v.data()));
    if (summary.slot >= 0) check(cache->update_summaries({&summary, 1}, {q.data()}, 0, 1));
    std::vector<std::int32_t> table;
    for (const gp::PageId page : cache->view(sequence)->pages) table.push_back(page.value);
    const std::int32_t length = slot + 1;
    std::vector<float> out(kQueryHeads * kDim);
    check(cache->attention(0, table, static_cast<std::int64_t>(table.size()), {&length, 1},
                           q.data(), out.data()));
    return static_cast<gp::TokenId>(std::abs(out[0]) * 1e6F) % kVocabulary;  // "sampling"
  };

  // 3. The loop.
  std::vector<gp::FenceId> fences;
  std::vector<gp::MeasuredDemand> demand;
  std::vector<gp::SampledToken> tokens;
  std::int64_t finished = 0;
  while (!scheduler->idle()) {
    const gp::Result<const gp::StepPlan*> planned = scheduler->schedule();
    check(planned.status());
    const gp::StepPlan& plan = **planned;
    fences.clear();
    demand.clear();
    tokens.clear();
    check(gp::run_before_forward(*cache, plan, fences));  // swaps, page copies, compactions
    for (const gp::PrefillChunk& chunk : plan.prefills) {
      const auto text = scheduler->text(chunk.request);
      gp::TokenId next = 0;
      for (std::int32_t i = 0; i < chunk.tokens; ++i) {
        const std::int64_t position = chunk.first_position + i;
        const bool starts = chunk.summary.valid() && i + 1 == chunk.tokens;
        next = forward(chunk.sequence, (*text)[static_cast<std::size_t>(position)], position,
                       chunk.first_slot + i, {starts ? chunk.summary.value : -1, 1});
      }
      if (chunk.last) tokens.push_back({chunk.request, next});
    }
    for (const gp::DecodeItem& item : plan.decodes) {
      const gp::TokenId next = forward(item.sequence, item.token, item.position, item.kv_length - 1,
                                       {item.summary.value, item.summary_first ? 1 : 0});
      tokens.push_back({item.request, next, /*stop=*/false});
    }
    check(gp::run_after_forward(*cache, plan, demand));  // Δ of requests at a boundary
    check(scheduler->complete({tokens, demand, fences, {}}));
    finished += static_cast<std::int64_t>(scheduler->finished().size());
  }

  const gp::Counters& c = scheduler->counters();
  cache->clear_prefix_cache();
  fmt::print(
      "{} requests, {} tokens, {} steps: {} grow, {} compact, {} fallback, {} preempt; {} of {} "
      "pages free\n",
      finished, c.decode_tokens, c.steps, c.grow, c.compact, c.fallback, c.preempt,
      cache->counts().free, cache->counts().total);
  const bool good = finished == 6 && c.decode_tokens == 6 * 150 && c.compact > 0 &&
                    cache->counts().free == cache->counts().total;
  return good ? 0 : 1;
}
