// SPDX-License-Identifier: Apache-2.0
#include "scheduler.hpp"

#include <span>
#include <string>

#include "convert.hpp"
#include "defaults.hpp"
#include "growpage/schedule/execute.hpp"
#include "layouts.hpp"
#include "structs.hpp"

namespace growpage::capi {

namespace {

Status read_options(const growpage_scheduler_options* in, SchedulerOptions& out) {
  growpage_scheduler_options options = default_scheduler();
  if (Status s = read_struct("growpage_scheduler_options", in, options); !s.ok()) return s;
  Status s;
  if (!read_enum(s, "growpage_scheduler_options.preemption", options.preemption, Preemption::swap,
                 out.preemption)) {
    return s;
  }
  out.max_batched_tokens = options.max_batched_tokens;
  out.max_running = options.max_running;
  out.summary_slots = options.summary_slots;
  out.max_prefill_chunk = options.max_prefill_chunk;
  out.max_compacting_pages = options.max_compacting_pages;
  out.early_slots = options.early_slots;
  out.aging_steps = options.aging_steps;
  out.decision_capacity = options.decision_capacity;
  return {};
}

/// Views of the plan's arrays.
growpage_plan to_c_plan(const StepPlan& plan) noexcept {
  growpage_plan out{};
  out.struct_size = sizeof out;
  out.step = plan.step;
  out.batched_tokens = plan.batched_tokens;
  const auto view = [](const auto& rows, auto& pointer, std::size_t& count, std::size_t& stride) {
    using Row = std::remove_cvref_t<decltype(*pointer)>;
    pointer = twin<const Row>(rows.data());
    count = rows.size();
    stride = sizeof(Row);
  };
  view(plan.swap_outs, out.swap_outs, out.swap_out_count, out.swap_out_stride);
  view(plan.swap_ins, out.swap_ins, out.swap_in_count, out.swap_in_stride);
  view(plan.transfers_out, out.transfers_out, out.transfer_out_count, out.transfer_out_stride);
  view(plan.transfers_in, out.transfers_in, out.transfer_in_count, out.transfer_in_stride);
  view(plan.copies, out.copies, out.copy_count, out.copy_stride);
  view(plan.compactions, out.compactions, out.compaction_count, out.compaction_stride);
  view(plan.prefills, out.prefills, out.prefill_count, out.prefill_stride);
  view(plan.decodes, out.decodes, out.decode_count, out.decode_stride);
  view(plan.demand, out.demand, out.demand_count, out.demand_stride);
  view(plan.preempted, out.preempted, out.preempted_count, out.preempted_stride);
  return out;
}

Status create(growpage_cache* cache_handle, const growpage_policy* policy_handle,
              const growpage_scheduler_options* options, const growpage_hooks* hooks,
              growpage_scheduler** handle) {
  Status s;
  Cache* const cache = find<Cache>(cache_handle);
  if (cache == nullptr) return unknown_handle(cache_handle, Cache::name);
  const Policy* const policy = find<Policy>(policy_handle);
  if (policy == nullptr) return unknown_handle(policy_handle, Policy::name);
  if (!detail::require_not_null(s, "scheduler", handle)) return s;
  SchedulerOptions full;
  if (s = read_options(options, full); !s.ok()) return s;
  if (cache->kv && full.summary_slots > cache->kv->summaries().slots) {
    return Status::invalid("growpage_scheduler_options.summary_slots",
                           std::int64_t{full.summary_slots},
                           "at most growpage_summary_options.slots of the cache (" +
                               std::to_string(cache->kv->summaries().slots) + ")");
  }
  Hooks memory;
  if (s = Hooks::read(hooks, memory); !s.ok()) return s;

  Owned<SchedulerObject> made(memory);
  Result<SchedulerObject::Core> core = SchedulerObject::Core::create(
      *cache->manager, rebind(*policy, made->user, made->hooks), full);
  if (!core.ok()) return core.status();
  made->fences.reserve(static_cast<std::size_t>(cache->manager->options().max_fences));
  made->done_fences.reserve(static_cast<std::size_t>(full.max_running));
  made->demand.reserve(static_cast<std::size_t>(full.max_running));
  made->cache = cache;
  made->core.emplace(std::move(core).value());
  ++cache->schedulers;
  return made.publish(handle);
}

Status schedule(SchedulerObject& o, growpage_plan* out) {
  if (Status s = check_output("growpage_plan", out); !s.ok()) return s;
  const Result<const StepPlan*> plan = o.core->schedule();
  if (!plan.ok()) return plan.status();
  o.plan = *plan;
  o.before_done = o.after_done = false;
  o.done_fences.clear();
  o.demand.clear();
  const auto remember = [&o](FenceId fence) {
    SchedulerObject::remember(o.fences, fence.index, fence.bits());
  };
  for (const SwapItem& item : o.plan->swap_outs) remember(item.fence);
  for (const SwapItem& item : o.plan->swap_ins) remember(item.fence);
  for (const CompactionItem& item : o.plan->compactions) remember(item.ticket.fence);
  write_struct(out, to_c_plan(*o.plan));
  if (!o.plan->preempted.empty()) o.hooks.log(GROWPAGE_LOG_DEBUG, "requests were preempted");
  return {};
}

/// The open plan, whose part `done` has not been run yet, on a cache with kernels.
Status begin_run(SchedulerObject& o, bool& done) {
  if (Status s = o.cache->require_kernels(); !s.ok()) return s;
  if (o.plan == nullptr || done) {
    return Status::error(StatusCode::protocol_error, "growpage_scheduler_run",
                         o.plan == nullptr ? "called without a plan" : "called twice for a plan",
                         "once between schedule and complete");
  }
  done = true;
  return {};
}

Status complete(SchedulerObject& o, const growpage_step_result* result) {
  growpage_step_result in = default_step_result();
  Status s = read_required("growpage_step_result", result, in);
  if (!s.ok()) return s;
  if (!require_array(s, "growpage_step_result.tokens", in.tokens, in.token_count) ||
      !require_array(s, "growpage_step_result.demand", in.demand, in.demand_count) ||
      !require_array(s, "growpage_step_result.fences", in.fences, in.fence_count) ||
      !require_array(s, "growpage_step_result.failed", in.failed, in.failed_count)) {
    return s;
  }
  // Looked at together, then one by one: this runs over all requests in every step.
  std::uint32_t stops = 0;
  for (std::size_t i = 0; i < in.token_count; ++i) stops |= std::uint32_t{in.tokens[i].stop};
  for (std::size_t i = 0; stops > 1 && i < in.token_count; ++i) {
    if (!detail::require_range(s, "growpage_sampled_token.stop", in.tokens[i].stop, 0, 1)) return s;
  }
  s = o.core->complete({{twin<const SampledToken>(in.tokens), in.token_count},
                        {twin<const MeasuredDemand>(in.demand), in.demand_count},
                        {twin<const FenceId>(in.fences), in.fence_count},
                        {twin<const RequestId>(in.failed), in.failed_count}});
  if (s.ok()) o.plan = nullptr;
  return s;
}

}  // namespace

}  // namespace growpage::capi

using namespace growpage;
using namespace growpage::capi;
using growpage::detail::require_not_null;

extern "C" {

growpage_status growpage_scheduler_create(growpage_cache* cache, const growpage_policy* policy,
                                          const growpage_scheduler_options* options,
                                          const growpage_hooks* hooks,
                                          growpage_scheduler** scheduler) {
  return run(nullptr, [&] { return create(cache, policy, options, hooks, scheduler); });
}

growpage_status growpage_scheduler_destroy(growpage_scheduler* scheduler) {
  return destroy<SchedulerObject>(scheduler, [](SchedulerObject&) -> Status { return {}; });
}

growpage_status growpage_scheduler_submit(growpage_scheduler* scheduler,
                                          const growpage_request* request, uint64_t* id) {
  return with<SchedulerObject>(scheduler, [&](SchedulerObject& o) -> Status {
    growpage_request in = default_request();
    Status s = read_required("growpage_request", request, in);
    if (!s.ok()) return s;
    RequestSpec spec;
    if (!require_not_null(s, "id", id) ||
        !require_array(s, "growpage_request.prompt", in.prompt, in.prompt_tokens)) {
      return s;
    }
    if (s = read_key(in.key, spec.key); !s.ok()) return s;
    spec.tag = in.tag;
    spec.prompt = {in.prompt, in.prompt_tokens};
    spec.max_new_tokens = in.max_new_tokens;
    spec.priority = in.priority;
    o.requests.reserve(o.requests.size() + 1);  // nothing may fail once it is submitted
    const Result<RequestId> made = o.core->submit(spec);
    if (!made.ok()) return made.status();
    SchedulerObject::remember(o.requests, made->index, made->bits());
    *id = made->bits();
    return {};
  });
}

growpage_status growpage_scheduler_abort(growpage_scheduler* scheduler, uint64_t id) {
  return with<SchedulerObject>(
      scheduler, [&](SchedulerObject& o) { return o.core->abort(RequestId::from_bits(id)); });
}

growpage_status growpage_scheduler_schedule(growpage_scheduler* scheduler, growpage_plan* plan) {
  return with<SchedulerObject>(scheduler, [&](SchedulerObject& o) { return schedule(o, plan); });
}

growpage_status growpage_scheduler_run_before_forward(growpage_scheduler* scheduler, void* stream,
                                                      const uint64_t** fences, size_t* count) {
  return with<SchedulerObject>(scheduler, [&](SchedulerObject& o) -> Status {
    Status s;
    if (!require_not_null(s, "fences", fences) || !require_not_null(s, "count", count)) return s;
    if (s = begin_run(o, o.before_done); !s.ok()) return s;
    s = run_before_forward(*o.cache->kv, *o.plan, o.done_fences, {stream});
    *fences = twin<const uint64_t>(o.done_fences.data());
    *count = o.done_fences.size();
    return s;
  });
}

growpage_status growpage_scheduler_run_after_forward(growpage_scheduler* scheduler, void* stream,
                                                     const growpage_measured_demand** demand,
                                                     size_t* count) {
  return with<SchedulerObject>(scheduler, [&](SchedulerObject& o) -> Status {
    Status s;
    if (!require_not_null(s, "demand", demand) || !require_not_null(s, "count", count)) return s;
    if (s = begin_run(o, o.after_done); !s.ok()) return s;
    s = run_after_forward(*o.cache->kv, *o.plan, o.demand, {stream});
    *demand = twin<const growpage_measured_demand>(o.demand.data());
    *count = o.demand.size();
    return s;
  });
}

growpage_status growpage_scheduler_complete(growpage_scheduler* scheduler,
                                            const growpage_step_result* result) {
  return with<SchedulerObject>(scheduler, [&](SchedulerObject& o) { return complete(o, result); });
}
}
