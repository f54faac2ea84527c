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

  // Runs a batch of tokens, one per sequence, through the model: K and V into their slots,
  // attention over each sequence's pages, summaries where a slot is given.
  struct Token {
    gp::SequenceId sequence;
    gp::TokenId token;
    std::int64_t position;   // true position, for RoPE
    std::int32_t kv_length;  // used slots with this token
    gp::SummaryEntry summary;
  };
  const auto forward = [&](const std::vector<Token>& batch) {
    std::vector<gp::SequenceId> ids;
    std::vector<std::int64_t> slots;
    std::vector<std::int32_t> lengths;
    std::vector<gp::SummaryEntry> entries;
    std::vector<float> q, k, v, summary_q;
    const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    for (const Token& t : batch) {
      ids.push_back(t.sequence);
      lengths.push_back(t.kv_length);
      slots.push_back(cache->physical_slot(t.sequence, t.kv_length - 1));
      append(q, project(t.token, t.position, 1, kQueryHeads));
      append(k, project(t.token, t.position, 2, kKvHeads));
      append(v, project(t.token, t.position, 3, kKvHeads));
      if (t.summary.slot < 0) continue;
      entries.push_back(t.summary);
      append(summary_q, project(t.token, t.position, 1, kQueryHeads));
    }
    const std::int64_t stride = *gp::padded_stride(*cache, ids);
    std::vector<std::int32_t> table(ids.size() * static_cast<std::size_t>(stride));
    std::vector<float> out(q.size());
    check(gp::fill_padded_tables(*cache, ids, {table, stride, 0, {}}));
    check(cache->append_kv(0, slots, k.data(), v.data()));
    check(cache->update_summaries(entries, {summary_q.data()}, 0, 1));
    check(cache->attention(0, table, stride, lengths, q.data(), out.data()));
    std::vector<gp::TokenId> next;
    for (std::size_t i = 0; i < batch.size(); ++i) {  // "sampling"
      const float logit = std::abs(out[i * kQueryHeads * kDim]) * 1e6F;
      next.push_back(static_cast<gp::TokenId>(logit) % kVocabulary);
    }
    return next;
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
        next = forward({{chunk.sequence,
                         (*text)[static_cast<std::size_t>(position)],
                         position,
                         chunk.first_slot + i + 1,
                         {starts ? chunk.summary.value : -1, 1}}})[0];
      }
      if (chunk.last) tokens.push_back({chunk.request, next});
    }
    std::vector<Token> batch;
    batch.reserve(plan.decodes.size());
    for (const gp::DecodeItem& item : plan.decodes) {
      batch.push_back({item.sequence,
                       item.token,
                       item.position,
                       item.kv_length,
                       {item.summary.value, item.summary_first ? 1 : 0}});
    }
    const std::vector<gp::TokenId> sampled = forward(batch);
    for (std::size_t i = 0; i < sampled.size(); ++i) {
      tokens.push_back({plan.decodes[i].request, sampled[i], /*stop=*/false});
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
  const bool good = finished == 6 && c.decode_tokens == 900 && c.compact > 0 &&
                    cache->counts().free == cache->counts().total;
  return good ? 0 : 1;
}
