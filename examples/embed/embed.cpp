// SPDX-License-Identifier: Apache-2.0
// The smallest honest engine loop: a toy one-layer model served through GrowPage's scheduler and
// paged cache, with real K/V, real attention over the pages, and real decisions at capacity
// boundaries. The model takes one token at a time; an engine gives it the whole step at once.
#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "growpage/growpage.hpp"

namespace gp = growpage;
using Cache = gp::PagedKVCache<gp::CpuBackend>;

// Stands for a model's projections: a fixed pseudo-random vector per (token, position, role).
std::vector<float> project(gp::TokenId token, std::int64_t position, int role, int size) {
  std::vector<float> out(static_cast<std::size_t>(size));
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

// One token through the model, its row going to `slot` of the sequence; the next token. `position`
// is the true one, for RoPE: after an eviction it is not the slot. `summary` names the row that
// follows the request's queries; slot −1 = none.
gp::TokenId forward(Cache& cache, gp::SequenceId id, gp::TokenId token, std::int64_t position,
                    std::int32_t slot, gp::SummaryEntry summary) {
  const gp::CacheShape& s = cache.shape();
  const std::vector<float> q = project(token, position, 1, s.query_heads * s.head_dim);
  const std::vector<float> k = project(token, position, 2, s.kv_heads * s.head_dim);
  const std::vector<float> v = project(token, position, 3, s.kv_heads * s.head_dim);
  const std::int64_t row = cache.physical_slot(id, slot);
  check(cache.append_kv(0, {&row, 1}, k.data(), v.data()));
  if (summary.slot >= 0) check(cache.update_summaries({&summary, 1}, {q.data()}, 0, 1));

  const std::int64_t stride = *gp::padded_stride(cache, {&id, 1});
  std::vector<std::int32_t> table(static_cast<std::size_t>(stride));
  check(gp::fill_padded_tables(cache, {&id, 1}, {table, stride, 0, {}}));
  std::vector<float> out(q.size());
  const std::int32_t length = slot + 1;
  check(cache.attention(0, table, stride, {&length, 1}, q.data(), out.data()));
  return static_cast<gp::TokenId>(std::abs(out[0]) * 1e6F) % 1000;  // "sampling"
}

int main() {
  // 1. The cache: 24 pages of 16 tokens, shared by all requests, and the policy that governs them.
  gp::GrowPagePolicy policy;
  policy.capacity.initial_pages = 4;
  gp::PagedKVCacheOptions config;
  config.shape = {1, /*query_heads=*/4, /*kv_heads=*/2, /*head_dim=*/32, 0, /*page_size=*/16};
  config.pages.pages = 24;
  config.dtype = gp::DType::f32;
  config.retention = policy.retention();
  auto cache = Cache::create(config);
  check(cache.status());

  // 2. The scheduler, and some requests.
  auto scheduler = gp::Scheduler<gp::GrowPagePolicy, Cache>::create(*cache, policy, {});
  check(scheduler.status());
  for (std::uint64_t tag = 0; tag < 6; ++tag) {
    const std::vector<gp::TokenId> prompt(20 + 7 * tag, static_cast<gp::TokenId>(tag + 1));
    gp::RequestSpec spec;
    spec.prompt = prompt;
    spec.max_new_tokens = 150;
    check(scheduler->submit(spec).status());
  }

  // 3. The loop.
  std::size_t finished = 0;
  while (!scheduler->idle()) {
    std::vector<gp::FenceId> fences;
    std::vector<gp::MeasuredDemand> demand;
    std::vector<gp::SampledToken> tokens;
    const gp::Result<const gp::StepPlan*> planned = scheduler->schedule();
    check(planned.status());
    const gp::StepPlan& plan = **planned;
    check(gp::run_before_forward(*cache, plan, fences));  // swaps, page copies, compactions
    for (const gp::PrefillChunk& chunk : plan.prefills) {
      const auto text = *scheduler->text(chunk.request);
      gp::TokenId next = 0;
      for (std::int32_t i = 0; i < chunk.tokens; ++i) {
        const std::int64_t position = chunk.first_position + i;
        // The summaries begin with the last token of the prompt.
        const bool summarised = chunk.summary.valid() && i + 1 == chunk.tokens;
        next = forward(*cache, chunk.sequence, text[static_cast<std::size_t>(position)], position,
                       chunk.first_slot + i, {summarised ? chunk.summary.value : -1, 1});
      }
      if (chunk.last) tokens.push_back({chunk.request, next});
    }
    for (const gp::DecodeItem& item : plan.decodes) {
      const gp::SummaryEntry summary{item.summary.value, item.summary_first ? 1 : 0};
      tokens.push_back({item.request, forward(*cache, item.sequence, item.token, item.position,
                                              item.kv_length - 1, summary)});
    }
    check(gp::run_after_forward(*cache, plan, demand));  // Δ of requests at a boundary
    check(scheduler->complete({tokens, demand, fences, {}}));
    finished += scheduler->finished().size();
  }

  const gp::Counters& c = scheduler->counters();
  cache->clear_prefix_cache();
  fmt::print("{} requests, {} tokens, {} steps: {} grow, {} compact, {} fallback, {} preempt; ",
             finished, c.decode_tokens, c.steps, c.grow, c.compact, c.fallback, c.preempt);
  fmt::print("{} of {} pages free\n", cache->counts().free, cache->counts().total);
  const bool good = finished == 6 && c.decode_tokens == 900 && c.compact > 0 &&
                    cache->counts().free == cache->counts().total;
  return good ? 0 : 1;
}
