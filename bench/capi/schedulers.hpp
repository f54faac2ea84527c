// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capi/caches.hpp"
#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/scheduler.hpp"

/// Engines that decode 64 requests. Both write their answers into rows that are there already,
/// field by field: a row put together elsewhere and copied waits for its own stores, which would
/// be measured in place of the library.
namespace growpage::bench {

namespace capi {
inline constexpr std::int64_t unlimited = 1 << 19;  // more tokens than are timed
inline constexpr int prefill_steps = 10;
}  // namespace capi

class CppScheduler {
 public:
  CppScheduler()
      : cache_(capi::cpp_cache()),
        scheduler_(Scheduler<AnyPolicy, PageManager>::create(cache_, *AnyPolicy::named("full"), {})
                       .value()),
        tokens_(capi_requests) {
    for (std::int32_t tag = 0; tag < capi_requests; ++tag) {
      const std::vector<TokenId> prompt = capi::prompt(300, tag * 1000);
      RequestSpec spec;
      spec.prompt = prompt;
      spec.max_new_tokens = capi::unlimited;
      check(scheduler_.submit(spec).ok());
    }
    for (int i = 0; i < capi::prefill_steps; ++i) step();
    check(count_ == capi_requests);
  }
  void step() {
    const StepPlan& plan = **scheduler_.schedule();
    count_ = 0;
    for (const PrefillChunk& prefill : plan.prefills) {
      if (prefill.last) answer(prefill.request);
    }
    for (const DecodeItem& decode : plan.decodes) answer(decode.request);
    check(scheduler_.complete({{tokens_.data(), count_}, {}, {}, {}}).ok());
  }

 private:
  void answer(RequestId request) {
    SampledToken& row = tokens_[count_++];
    row.request = request;
    row.token = 1;
    row.stop = false;
  }

  PageManager cache_;
  Scheduler<AnyPolicy, PageManager> scheduler_;
  std::vector<SampledToken> tokens_;
  std::size_t count_ = 0;
};

class CScheduler {
 public:
  CScheduler() : cache_(capi::c_cache()), tokens_(capi_requests) {
    growpage_policy* policy = nullptr;
    capi::ok(growpage_policy_create("full", nullptr, &policy));
    policy_.reset(policy);
    growpage_scheduler* scheduler = nullptr;
    capi::ok(growpage_scheduler_create(cache_.get(), policy, nullptr, nullptr, &scheduler));
    scheduler_.reset(scheduler);
    for (std::int32_t tag = 0; tag < capi_requests; ++tag) {
      const std::vector<TokenId> prompt = capi::prompt(300, tag * 1000);
      growpage_request request;
      growpage_request_init(&request, sizeof request);
      request.prompt = prompt.data();
      request.prompt_tokens = prompt.size();
      request.max_new_tokens = capi::unlimited;
      std::uint64_t id = 0;
      capi::ok(growpage_scheduler_submit(scheduler_.get(), &request, &id));
    }
    plan_.struct_size = sizeof plan_;
    growpage_step_result_init(&result_, sizeof result_);
    for (int i = 0; i < capi::prefill_steps; ++i) step();
    check(count_ == capi_requests);
  }
  void step() {
    capi::ok(growpage_scheduler_schedule(scheduler_.get(), &plan_));
    count_ = 0;
    for (std::size_t i = 0; i < plan_.prefill_count; ++i) {
      if (plan_.prefills[i].last != 0) answer(plan_.prefills[i].request);
    }
    for (std::size_t i = 0; i < plan_.decode_count; ++i) answer(plan_.decodes[i].request);
    result_.tokens = tokens_.data();
    result_.token_count = count_;
    capi::ok(growpage_scheduler_complete(scheduler_.get(), &result_));
  }

 private:
  void answer(std::uint64_t request) {
    growpage_sampled_token& row = tokens_[count_++];
    row.request = request;
    row.token = 1;
    row.stop = 0;
  }

  capi::Handle<growpage_cache> cache_;
  capi::Handle<growpage_policy> policy_;
  capi::Handle<growpage_scheduler> scheduler_;
  std::vector<growpage_sampled_token> tokens_;
  std::size_t count_ = 0;
  growpage_plan plan_{};
  growpage_step_result result_{};
};

}  // namespace growpage::bench
