// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <array>
#include <vector>

namespace growpage::fuzz {

void Session::create_scheduler() {
  if (schedulers_.size() == 2) return;
  growpage_scheduler_options o;
  growpage_scheduler_options_init(&o, sizeof o);
  o.max_batched_tokens = in_.value(1, 80);
  o.max_prefill_chunk = in_.value(0, 40);
  o.max_running = static_cast<std::int32_t>(in_.within(1, 4));
  o.summary_slots = static_cast<std::int32_t>(in_.within(1, max_slots));
  o.preemption = in_.small(0, 1);
  o.early_slots = static_cast<std::int32_t>(in_.within(0, 3));
  o.aging_steps = in_.value(0, 10);
  o.decision_capacity = in_.within(0, 20);
  growpage_scheduler* s = nullptr;
  if (growpage_scheduler_create(cache(), pick(policies_), &o, nullptr, &s) != GROWPAGE_OK) return;
  schedulers_.push_back(s);
}

void Session::submit() {
  growpage_request r;
  growpage_request_init(&r, sizeof r);
  std::array<std::int32_t, max_text> prompt{};
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<std::int32_t>(i / 24);
  growpage_key key;
  growpage_key_init(&key, sizeof key);
  key.salt = "salt";
  key.salt_size = static_cast<std::size_t>(in_.within(0, 4));
  key.modality_from = in_.value(0, 40);
  r.tag = in_.byte();
  r.prompt = in_.rarely() ? nullptr : prompt.data();
  r.prompt_tokens = static_cast<std::size_t>(in_.within(0, max_text));
  r.max_new_tokens = in_.value(1, 120);
  r.priority = in_.small(0, 3);
  r.key = in_.byte() & 1 ? &key : nullptr;
  std::uint64_t made = 0;
  if (growpage_scheduler_submit(scheduler(), &r, &made) == GROWPAGE_OK) requests_.push_back(made);
}

// A whole step, with mistakes now and then.
void Session::step() {
  growpage_scheduler* s = scheduler();
  growpage_plan plan{};
  plan.struct_size = sizeof plan;
  growpage_cache_info info{};
  if (growpage_scheduler_schedule(s, &plan) != GROWPAGE_OK) {
    plan = {};
    if (!in_.rarely()) return;
  }
  info.struct_size = sizeof info;
  growpage_step_result r;
  growpage_step_result_init(&r, sizeof r);
  const bool kernels = !in_.rarely() && growpage_scheduler_run_before_forward(
                                            s, nullptr, &r.fences, &r.fence_count) == GROWPAGE_OK;
  if (in_.rarely()) abort_request();
  std::vector<std::uint64_t> fences;
  std::vector<growpage_measured_demand> demand;
  if (!kernels) {
    const bool apply = !in_.rarely();
    for (std::size_t i = 0; i < plan.swap_out_count; ++i) fences.push_back(plan.swap_outs[i].fence);
    for (std::size_t i = 0; i < plan.swap_in_count; ++i) fences.push_back(plan.swap_ins[i].fence);
    for (std::size_t i = 0; i < plan.compaction_count; ++i) {
      const growpage_ticket& t = plan.compactions[i].ticket;
      if (apply) {
        for (auto* c : caches_) apply_ticket(c, t, plan.compactions[i].protected_slots);
      }
      fences.push_back(t.fence);
    }
    r.fences = fences.data();
    r.fence_count = fences.size();
  }
  std::vector<growpage_sampled_token> tokens;
  for (std::size_t i = 0; i < plan.prefill_count; ++i) {
    sequences_.push_back(plan.prefills[i].sequence);
    if (plan.prefills[i].last != 0) tokens.push_back({plan.prefills[i].request, 1, 0, {}});
  }
  for (std::size_t i = 0; i < plan.decode_count; ++i) {
    tokens.push_back(
        {plan.decodes[i].request, in_.byte(), in_.rarely() ? in_.byte() : std::uint8_t{0}, {}});
    const growpage_summary_entry entry = {plan.decodes[i].summary, plan.decodes[i].summary_first};
    for (auto* c : caches_) update(c, &entry, 1);
  }
  if (growpage_scheduler_run_after_forward(s, nullptr, &r.demand, &r.demand_count) != GROWPAGE_OK) {
    for (std::size_t i = 0; i < plan.demand_count; ++i) {
      demand.push_back({plan.demand[i].request, {in_.byte() / 8.0, in_.byte() / 8.0, 4}});
    }
    r.demand = demand.data();
    r.demand_count = demand.size();
  }
  if (in_.rarely() && !tokens.empty()) tokens.pop_back();
  if (in_.rarely() && !tokens.empty()) tokens.push_back(tokens[0]);
  if (in_.rarely() && r.fence_count > 0) --r.fence_count;
  const std::uint64_t failed = id(requests_);
  if (in_.rarely()) {
    r.failed = &failed;
    r.failed_count = 1;
  }
  r.tokens = tokens.data();
  r.token_count = tokens.size();
  (void)growpage_scheduler_complete(s, &r);
  const growpage_finished* finished = nullptr;
  std::size_t count = 0;
  std::size_t stride = 0;
  (void)growpage_scheduler_finished(s, &finished, &count, &stride);
}

void Session::abort_request() { (void)growpage_scheduler_abort(scheduler(), id(requests_)); }

}  // namespace growpage::fuzz
