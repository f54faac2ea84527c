// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "growpage/growpage.h"
#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/scheduler.hpp"
#include "support/check.hpp"

/// The same small engines twice: over the C++ API and over the C ABI.
namespace growpage::bench {

inline constexpr std::int32_t capi_requests = 64;
inline constexpr std::int64_t append_rounds = 256;

namespace capi {

inline constexpr std::int64_t unlimited = 1 << 19;  // more tokens than are timed

inline std::vector<TokenId> prompt(std::size_t size, TokenId first) {
  std::vector<TokenId> tokens(size);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}
inline PageManager cpp_cache() {
  PageManagerOptions options;
  options.pages = 1 << 15;
  options.page_size = 256;
  options.max_pages_per_sequence = 1 << 14;
  return std::move(PageManager::create(options)).value();
}

inline void ok(growpage_status status) { check(status == GROWPAGE_OK); }

struct Destroy {
  void operator()(growpage_cache* cache) const { ok(growpage_cache_destroy(cache)); }
  void operator()(growpage_policy* policy) const { ok(growpage_policy_destroy(policy)); }
  void operator()(growpage_scheduler* scheduler) const {
    ok(growpage_scheduler_destroy(scheduler));
  }
};
template <class T>
using Handle = std::unique_ptr<T, Destroy>;

inline Handle<growpage_cache> c_cache() {
  growpage_cache_options options;
  growpage_cache_options_init(&options, sizeof options);
  options.pages = 1 << 15;
  options.page_size = 256;
  options.max_pages_per_sequence = 1 << 14;
  growpage_cache* cache = nullptr;
  ok(growpage_cache_create(&options, nullptr, &cache));
  return Handle<growpage_cache>(cache);
}

}  // namespace capi

class CppScheduler {
 public:
  CppScheduler()
      : cache_(capi::cpp_cache()),
        scheduler_(Scheduler<AnyPolicy, PageManager>::create(cache_, *AnyPolicy::named("full"), {})
                       .value()) {
    for (std::int32_t tag = 0; tag < capi_requests; ++tag) {
      const std::vector<TokenId> prompt = capi::prompt(300, tag * 1000);
      RequestSpec spec;
      spec.prompt = prompt;
      spec.max_new_tokens = capi::unlimited;
      check(scheduler_.submit(spec).ok());
    }
    for (int i = 0; i < 10; ++i) step();  // past the prefills
    check(tokens_.size() == capi_requests);
  }
  void step() {
    const StepPlan& plan = **scheduler_.schedule();
    tokens_.clear();
    for (const auto& p : plan.prefills) {
      if (p.last) tokens_.push_back({p.request, 1, false});
    }
    for (const auto& d : plan.decodes) tokens_.push_back({d.request, 1, false});
    check(scheduler_.complete({tokens_, {}, {}, {}}).ok());
  }

 private:
  PageManager cache_;
  Scheduler<AnyPolicy, PageManager> scheduler_;
  std::vector<SampledToken> tokens_;
};

class CScheduler {
 public:
  CScheduler() : cache_(capi::c_cache()) {
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
    for (int i = 0; i < 10; ++i) step();
    check(tokens_.size() == capi_requests);
  }
  void step() {
    capi::ok(growpage_scheduler_schedule(scheduler_.get(), &plan_));
    tokens_.clear();
    for (std::size_t i = 0; i < plan_.prefill_count; ++i) {
      if (plan_.prefills[i].last != 0) tokens_.push_back({plan_.prefills[i].request, 1, 0, {}});
    }
    for (std::size_t i = 0; i < plan_.decode_count; ++i) {
      tokens_.push_back({plan_.decodes[i].request, 1, 0, {}});
    }
    result_.tokens = tokens_.data();
    result_.token_count = tokens_.size();
    capi::ok(growpage_scheduler_complete(scheduler_.get(), &result_));
  }

 private:
  capi::Handle<growpage_cache> cache_;
  capi::Handle<growpage_policy> policy_;
  capi::Handle<growpage_scheduler> scheduler_;
  std::vector<growpage_sampled_token> tokens_;
  growpage_plan plan_{};
  growpage_step_result result_{};
};

class CppAppend {
 public:
  CppAppend() : cache_(capi::cpp_cache()) {
    for (std::int32_t i = 0; i < capi_requests; ++i) ids_.push_back(cache_.admit({})->sequence);
  }
  void rewind() {
    for (const SequenceId id : ids_) {
      check(cache_.truncate(id, 0).ok() && cache_.reserve(id, append_rounds).ok());
    }
  }
  void append() {
    const TokenId token = 1;
    for (const SequenceId id : ids_) {
      copies_.clear();
      check(cache_.append(id, 1, &token, copies_).ok());
    }
  }

 private:
  PageManager cache_;
  std::vector<SequenceId> ids_;
  std::vector<PageCopy> copies_;
};

/// A call for each sequence.
class CAppend {
 public:
  CAppend() : cache_(capi::c_cache()), ids_(capi_requests) {
    for (auto& id : ids_) {
      capi::ok(growpage_cache_admit(cache_.get(), nullptr, 0, nullptr, &id, nullptr));
    }
  }
  void rewind() {
    for (const auto id : ids_) {
      capi::ok(growpage_cache_truncate(cache_.get(), id, 0));
      capi::ok(growpage_cache_reserve(cache_.get(), id, append_rounds));
    }
  }
  void append() {
    const TokenId token = 1;
    growpage_page_copy copy;
    for (const auto id : ids_) {
      capi::ok(growpage_cache_append(cache_.get(), id, 1, &token, &copy));
    }
  }

 protected:
  capi::Handle<growpage_cache> cache_;
  std::vector<std::uint64_t> ids_;
};

/// One call for the step.
class CBatchAppend : public CAppend {
 public:
  void append() {
    std::size_t count = 0;
    std::size_t done = 0;
    capi::ok(growpage_cache_append_batch(cache_.get(), ids_.data(), tokens_.data(), ids_.size(),
                                         copies_.data(), &count, &done));
  }

 private:
  std::vector<TokenId> tokens_ = std::vector<TokenId>(capi_requests, 1);
  std::vector<growpage_page_copy> copies_ = std::vector<growpage_page_copy>(capi_requests);
};

class CppMatch {
 public:
  CppMatch() : cache_(capi::cpp_cache()), prompt_(capi::prompt(8 * 256 + 1, 0)) {
    const SequenceId id = cache_.admit({})->sequence;
    const auto size = static_cast<std::int32_t>(prompt_.size());
    std::vector<PageCopy> copies;
    check(cache_.reserve(id, size).ok() && cache_.append(id, size, prompt_.data(), copies).ok() &&
          cache_.mark_computed(id, size).ok());
  }
  void match() { benchmark::DoNotOptimize(cache_.match_length(prompt_)); }

 private:
  PageManager cache_;
  std::vector<TokenId> prompt_;
};

class CMatch {
 public:
  CMatch() : cache_(capi::c_cache()), prompt_(capi::prompt(8 * 256 + 1, 0)) {
    std::uint64_t id = 0;
    growpage_page_copy copy;
    const auto size = static_cast<std::int32_t>(prompt_.size());
    capi::ok(growpage_cache_admit(cache_.get(), nullptr, 0, nullptr, &id, nullptr));
    capi::ok(growpage_cache_reserve(cache_.get(), id, size));
    capi::ok(growpage_cache_append(cache_.get(), id, size, prompt_.data(), &copy));
    capi::ok(growpage_cache_mark_computed(cache_.get(), id, size));
  }
  void match() {
    benchmark::DoNotOptimize(growpage_cache_match_length(cache_.get(), prompt_.data(),
                                                         prompt_.size(), nullptr, &matched));
  }

  std::int64_t matched = 0;

 private:
  capi::Handle<growpage_cache> cache_;
  std::vector<TokenId> prompt_;
};

}  // namespace growpage::bench
