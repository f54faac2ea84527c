// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/scheduler.hpp"
#include "result.hpp"
#include "signal.hpp"
#include "timeline.hpp"
#include "workload.hpp"

namespace growpage::replay {

struct ReplayerOptions {
  double rate_scale = 1;         ///< arrivals come this many times as fast
  std::int64_t fence_delay = 1;  ///< a fence is reported this many steps after its work was planned
  std::int64_t check_every = 0;  ///< steps between two invariant checks; 0 = only at the end
  Timeline* timeline = nullptr;  ///< borrowed
  std::function<void(const DecisionRecord&)> on_decision;  ///< needs a decision_capacity
  std::function<void(std::int64_t tokens)> on_progress;    ///< output tokens so far
};

/// Runs a workload through the real scheduler and cache with a signal in the place of the engine.
template <Signal S>
class Replayer {
 public:
  using Sched = Scheduler<AnyPolicy, typename S::Cache>;

  /// All borrowed; the scheduler is fresh and over the signal's cache.
  Replayer(S& signal, Sched& scheduler, std::span<const TraceRequest> workload,
           const ReplayerOptions& options)
      : signal_(signal), scheduler_(scheduler), workload_(workload), options_(options) {
    first_token_s_.assign(workload.size(), -1.0);
    kv_sum_.assign(workload.size(), 0);
    done_.assign(workload.size(), false);
  }

  /// To the end of the last request, or to the first thing that goes wrong.
  RunResult run();

 private:
  struct PendingFence {
    std::int64_t due_step;
    FenceId fence;
  };

  bool submit_arrived();
  bool step();
  void collect_tokens(const StepPlan& plan);
  bool account_finished();
  bool check(bool last);
  void check_end();
  bool fail(std::string what) {
    result_.failure = std::move(what);
    return false;
  }
  bool expect(const Status& status, const char* call) {
    return status.ok() || fail(fmt::format("{}: {}", call, status.message()));
  }
  [[nodiscard]] double arrival(std::size_t tag) const {
    return workload_[tag].arrival_s / options_.rate_scale;
  }

  S& signal_;
  Sched& scheduler_;
  std::span<const TraceRequest> workload_;
  const ReplayerOptions& options_;
  RunResult result_;
  double clock_s_ = 0;
  std::size_t next_ = 0;  // first request not submitted
  std::vector<double> first_token_s_;
  std::vector<std::int64_t> kv_sum_;  // over the decode steps of each request
  std::vector<bool> done_;
  double tpot_sum_s_ = 0;
  double kv_mean_sum_ = 0;
  std::int64_t decoded_requests_ = 0;  // that made more than their first token
  std::int64_t empty_steps_ = 0;       // since one did something
  std::deque<PendingFence> pending_;
  std::vector<FenceId> fences_;
  std::vector<MeasuredDemand> demand_;
  std::vector<SampledToken> tokens_;
  std::vector<TokenId> prompt_;
};

template <Signal S>
RunResult Replayer<S>::run() {
  const auto start = std::chrono::steady_clock::now();
  result_.policy = scheduler_.policy().name();
  result_.requests = static_cast<std::int64_t>(workload_.size());
  result_.pool_pages = scheduler_.cache().counts().total;
  bool good = true;
  while (good && (next_ < workload_.size() || !scheduler_.idle())) {
    if (scheduler_.idle()) clock_s_ = std::max(clock_s_, arrival(next_));
    good = submit_arrived() && step();
  }
  result_.counters = scheduler_.counters();
  result_.seconds = clock_s_;
  if (decoded_requests_ > 0) {
    const auto requests = static_cast<double>(decoded_requests_);
    result_.tpot_ms = 1e3 * tpot_sum_s_ / requests;
    result_.kv_per_request = kv_mean_sum_ / requests;
  }
  if (good) check_end();
  result_.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result_;
}

template <Signal S>
bool Replayer<S>::submit_arrived() {
  for (; next_ < workload_.size() && arrival(next_) <= clock_s_; ++next_) {
    make_prompt(workload_[next_], prompt_);
    RequestSpec spec;
    spec.tag = next_;
    spec.prompt = prompt_;
    spec.max_new_tokens = workload_[next_].output_tokens;
    const Result<RequestId> id = scheduler_.submit(spec);
    if (!id.ok()) return fail(fmt::format("request {}: {}", next_, id.status().message()));
  }
  return true;
}

template <Signal S>
bool Replayer<S>::step() {
  constexpr std::int64_t stalled = 10'000;  // no plan of a sound scheduler is empty this often
  const Result<const StepPlan*> planned = scheduler_.schedule();
  if (!expect(planned.status(), "schedule()")) return false;
  const StepPlan& plan = **planned;
  const bool idle_step = plan.empty() && pending_.empty();
  empty_steps_ = idle_step ? empty_steps_ + 1 : 0;
  if (empty_steps_ > stalled) {
    return fail(fmt::format("nothing planned for {} steps, {} requests waiting", stalled,
                            scheduler_.waiting()));
  }
  fences_.clear();
  demand_.clear();
  const TextOf text = [this](RequestId id) {
    const auto tokens = scheduler_.text(id);
    return tokens.ok() ? *tokens : std::span<const TokenId>();
  };
  if (!expect(signal_.before_forward(plan, fences_), "before the forward pass") ||
      !expect(signal_.forward(plan, text), "forward pass") ||
      !expect(signal_.after_forward(plan, demand_), "after the forward pass")) {
    return false;
  }
  clock_s_ += signal_.step_seconds();
  collect_tokens(plan);
  for (const FenceId fence : fences_) pending_.push_back({plan.step + options_.fence_delay, fence});
  fences_.clear();
  while (!pending_.empty() && pending_.front().due_step <= plan.step) {
    fences_.push_back(pending_.front().fence);
    pending_.pop_front();
  }
  if (options_.timeline != nullptr) {
    options_.timeline->record(clock_s_, plan, demand_, scheduler_.cache(), scheduler_.running(),
                              scheduler_.waiting());
  }
  const std::int64_t number = plan.step;
  if (!expect(scheduler_.complete({tokens_, demand_, fences_, {}}), "complete()")) return false;
  if (options_.on_decision) {
    DecisionRecord record;
    while (scheduler_.decisions().pop(record)) options_.on_decision(record);
  }
  if (options_.on_progress) options_.on_progress(scheduler_.counters().decode_tokens);
  if (!account_finished()) return false;
  return options_.check_every == 0 || number % options_.check_every != 0 || check(false);
}

template <Signal S>
void Replayer<S>::collect_tokens(const StepPlan& plan) {
  tokens_.clear();
  for (const PrefillChunk& chunk : plan.prefills) {
    if (!chunk.last) continue;
    const std::int64_t position = chunk.first_position + chunk.tokens;
    tokens_.push_back({chunk.request, generated_token(chunk.tag, position)});
    double& first = first_token_s_[chunk.tag];  // a recomputed request had its first token before
    if (first < 0) first = clock_s_;
  }
  for (const DecodeItem& item : plan.decodes) {
    tokens_.push_back({item.request, generated_token(item.tag, item.position + 1)});
    kv_sum_[item.tag] += item.kv_length;
  }
}

template <Signal S>
bool Replayer<S>::account_finished() {
  for (const auto& finished : scheduler_.finished()) {
    const std::int64_t wanted = workload_[finished.tag].output_tokens;
    if (finished.aborted || done_[finished.tag] || finished.generated != wanted) {
      return fail(fmt::format("request {} {} with {} of {} tokens", finished.tag,
                              finished.aborted      ? "was aborted"
                              : done_[finished.tag] ? "ended twice"
                                                    : "ended",
                              finished.generated, wanted));
    }
    done_[finished.tag] = true;
    if (wanted < 2) continue;
    const auto decoded = static_cast<double>(wanted - 1);
    tpot_sum_s_ += (clock_s_ - first_token_s_[finished.tag]) / decoded;
    kv_mean_sum_ += static_cast<double>(kv_sum_[finished.tag]) / decoded;
    ++decoded_requests_;
  }
  return true;
}

template <Signal S>
bool Replayer<S>::check(bool last) {
  const char* when = last ? "at the end" : "invariants";
  return expect(scheduler_.cache().check_invariants(), when) &&
         expect(scheduler_.check_invariants(), when);
}

template <Signal S>
void Replayer<S>::check_end() {
  PageManager& cache = scheduler_.cache();
  const std::int64_t output = totals(workload_).output_tokens;
  if (const auto lost = std::ranges::count(done_, false); lost > 0) {
    fail(fmt::format("{} requests were lost", lost));
    return;
  }
  if (result_.counters.decode_tokens != output) {
    fail(fmt::format("{} tokens generated, {} wanted", result_.counters.decode_tokens, output));
    return;
  }
  if (!check(true)) return;
  const PageCounts held = cache.counts();
  cache.clear_prefix_cache();
  const PageCounts counts = cache.counts();
  const PageCounts host = cache.host_counts();
  if (held.free + held.cached != held.total || counts.free != counts.total ||
      host.free != host.total || cache.live_sequences() != 0) {
    fail(fmt::format("leaked: {} of {} pages came back, {} of {} on the host, {} sequences live",
                     counts.free, counts.total, host.free, host.total, cache.live_sequences()));
  }
}

}  // namespace growpage::replay
