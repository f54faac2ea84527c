// SPDX-License-Identifier: Apache-2.0
#include "defaults.hpp"

#include "convert.hpp"
#include "error.hpp"
#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/request.hpp"
#include "growpage/schedule/scheduler_options.hpp"
#include "structs.hpp"

namespace growpage::capi {

namespace {

template <class T>
T sized() noexcept {
  T value{};
  value.struct_size = sizeof(T);
  return value;
}

template <class T>
growpage_status init(const char* type, T* out, std::size_t size, const T& value) noexcept {
  return run(nullptr, [&]() -> Status {
    if (out == nullptr) return Status::invalid(type, "null", "a non-null pointer");
    if (Status s = check_struct_size(type, size); !s.ok()) return s;
    (void)write_sized(out, size, value);
    return {};
  });
}

}  // namespace

growpage_hooks default_hooks() noexcept {
  auto hooks = sized<growpage_hooks>();
  hooks.log_level = GROWPAGE_LOG_WARNING;
  return hooks;
}

growpage_tensor default_tensor() noexcept { return sized<growpage_tensor>(); }

growpage_executor default_executor() noexcept {
  auto executor = sized<growpage_executor>();
  executor.workers = Executor{}.workers;
  return executor;
}

growpage_key default_key() noexcept { return sized<growpage_key>(); }

growpage_summary_options default_summary() noexcept {
  const SummaryOptions from;
  auto to = sized<growpage_summary_options>();
  to.beta_short = from.beta_short;
  to.beta_long = from.beta_long;
  to.slots = from.slots;
  to.window = from.window;
  to.storage = static_cast<std::int32_t>(from.storage);
  to.seed = from.seed;
  return to;
}

growpage_rope default_rope() noexcept {
  auto rope = sized<growpage_rope>();
  rope.attention_scale = RopeParams{}.attention_scale;
  return rope;
}

growpage_demand_options default_demand() noexcept {
  const DemandOptions from;
  auto to = sized<growpage_demand_options>();
  to.p = from.p;
  to.metric = static_cast<std::int32_t>(from.metric);
  to.group = static_cast<std::int32_t>(from.group);
  return to;
}

growpage_retention_options default_retention() noexcept {
  return to_c_retention(RetentionOptions{});
}

growpage_cache_options default_cache() noexcept {
  const PagedKVCacheOptions from;
  auto to = sized<growpage_cache_options>();
  to.backend = GROWPAGE_BACKEND_NONE;
  to.page_size = from.shape.page_size;
  to.max_sequences = from.pages.max_sequences;
  to.host_pages = from.pages.host_pages;
  to.event_capacity = from.pages.event_capacity;
  to.max_pages_per_sequence = from.pages.max_pages_per_sequence;
  to.max_fences = from.pages.max_fences;
  to.prefix_caching = from.pages.prefix_caching ? 1 : 0;
  to.dtype = static_cast<std::int32_t>(from.dtype);
  to.layout = static_cast<std::int32_t>(from.layout);
  to.score_buffers = from.score_buffers;
  return to;
}

growpage_policy_options default_policy() noexcept {
  auto to = sized<growpage_policy_options>();
  to.threshold = GrowPagePolicy{}.threshold;
  to.low = ShrinkPolicy{}.low;
  to.compact_probability = RandomPolicy{}.compact_probability;
  to.seed = RandomPolicy{}.seed;
  to.min_tokens = ShrinkPolicy{}.min_tokens;
  to.budget_tokens = FixedPolicy{}.budget_tokens;
  to.pages = ZipagePolicy{}.pages;
  to.initial_pages = CapacityLimits{}.initial_pages;
  to.max_pages = CapacityLimits{}.max_pages;
  return to;
}

growpage_scheduler_options default_scheduler() noexcept {
  const SchedulerOptions from;
  auto to = sized<growpage_scheduler_options>();
  to.max_batched_tokens = from.max_batched_tokens;
  to.max_prefill_chunk = from.max_prefill_chunk;
  to.max_running = from.max_running;
  to.summary_slots = from.summary_slots;
  to.preemption = static_cast<std::int32_t>(from.preemption);
  to.early_slots = from.early_slots;
  to.max_compacting_pages = from.max_compacting_pages;
  to.aging_steps = from.aging_steps;
  to.decision_capacity = from.decision_capacity;
  return to;
}

growpage_request default_request() noexcept { return sized<growpage_request>(); }
growpage_step_result default_step_result() noexcept { return sized<growpage_step_result>(); }
growpage_kernel default_kernel() noexcept {
  auto kernel = sized<growpage_kernel>();
  kernel.page_size = CacheShape{}.page_size;
  return kernel;
}
growpage_query default_query() noexcept { return sized<growpage_query>(); }

}  // namespace growpage::capi

using namespace growpage::capi;

extern "C" {

growpage_status growpage_hooks_init(growpage_hooks* hooks, size_t struct_size) {
  return init("growpage_hooks", hooks, struct_size, default_hooks());
}
growpage_status growpage_tensor_init(growpage_tensor* tensor, size_t struct_size) {
  return init("growpage_tensor", tensor, struct_size, default_tensor());
}
growpage_status growpage_executor_init(growpage_executor* executor, size_t struct_size) {
  return init("growpage_executor", executor, struct_size, default_executor());
}
growpage_status growpage_key_init(growpage_key* key, size_t struct_size) {
  return init("growpage_key", key, struct_size, default_key());
}
growpage_status growpage_summary_options_init(growpage_summary_options* options,
                                              size_t struct_size) {
  return init("growpage_summary_options", options, struct_size, default_summary());
}
growpage_status growpage_rope_init(growpage_rope* rope, size_t struct_size) {
  return init("growpage_rope", rope, struct_size, default_rope());
}
growpage_status growpage_demand_options_init(growpage_demand_options* options, size_t struct_size) {
  return init("growpage_demand_options", options, struct_size, default_demand());
}
growpage_status growpage_retention_options_init(growpage_retention_options* options,
                                                size_t struct_size) {
  return init("growpage_retention_options", options, struct_size, default_retention());
}
growpage_status growpage_cache_options_init(growpage_cache_options* options, size_t struct_size) {
  return init("growpage_cache_options", options, struct_size, default_cache());
}
growpage_status growpage_policy_options_init(growpage_policy_options* options, size_t struct_size) {
  return init("growpage_policy_options", options, struct_size, default_policy());
}
growpage_status growpage_scheduler_options_init(growpage_scheduler_options* options,
                                                size_t struct_size) {
  return init("growpage_scheduler_options", options, struct_size, default_scheduler());
}
growpage_status growpage_request_init(growpage_request* request, size_t struct_size) {
  return init("growpage_request", request, struct_size, default_request());
}
growpage_status growpage_step_result_init(growpage_step_result* result, size_t struct_size) {
  return init("growpage_step_result", result, struct_size, default_step_result());
}
growpage_status growpage_kernel_init(growpage_kernel* kernel, size_t struct_size) {
  return init("growpage_kernel", kernel, struct_size, default_kernel());
}
growpage_status growpage_query_init(growpage_query* query, size_t struct_size) {
  return init("growpage_query", query, struct_size, default_query());
}
}
