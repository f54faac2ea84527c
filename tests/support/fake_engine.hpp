// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "growpage/schedule/scheduler.hpp"
#include "support/catch.hpp"
#include "support/engine_compaction.hpp"
#include "support/engine_memory.hpp"

namespace growpage::test {

/// An engine without kernels that drives a scheduler over a bare PageManager and checks everything
/// an engine relies on, in every step. A row of K/V is one word: the chained hash of the text up to
/// it (what a causal model's K/V is a function of) until the request is compacted, then a word of
/// that request and position alone. Fails the running Catch test at the first thing that is wrong.
template <CapacityPolicy Policy>
class FakeEngine {
 public:
  using EngineScheduler = Scheduler<Policy, PageManager>;

  struct Options {
    std::uint64_t seed = 1;
    std::int32_t max_fence_delay = 0;  ///< fences complete 0 … this many steps later
    double abort_probability = 0;      ///< per step, for one request
    double fail_probability = 0;       ///< per planned request
    double cancel_probability = 0;     ///< per compaction
    /// All texts of one family of prompts go on alike, as greedy decoding of one prompt does.
    bool one_text = false;
    bool check_invariants = true;
    std::function<double(std::uint64_t tag)> delta;  ///< Δ to report; null = random
  };
  /// What the engine knows of a request.
  struct Live {
    std::uint64_t tag = 0;
    std::vector<TokenId> text;
    std::uint64_t voice = 0;  ///< what its tokens are a function of, with their position
    std::int64_t prompt = 0;
    std::int64_t output = 0;  ///< exact number of tokens it is to generate
    std::int64_t max_new_tokens = 0;
    std::uint64_t key = 0;            ///< hash of salt and LoRA
    std::uint64_t modality = 0;       ///< enters at position …
    std::int64_t modality_from = -1;  ///< … this one; −1 = none
    SequenceId sequence;
    std::vector<std::uint64_t> rows;  ///< [slot] the words its block table must lead to
    std::int64_t length = 0;
    bool compacted = false;
    std::uint64_t summary = 0;  ///< what its summary row must hold; 0 = nothing
    bool decoded = false;       ///< since it (re)started
    SummarySlot slot;
    std::int32_t compacting_pages = 0;
    std::int64_t submitted_step = 0;
  };

  FakeEngine(EngineScheduler& scheduler, const SchedulerOptions& limits, const Options& options)
      : scheduler_(scheduler),
        cache_(scheduler.cache()),
        limits_(limits),
        options_(options),
        random_(options.seed),
        page_size_(cache_.options().page_size),
        memory_(cache_.options(), limits.summary_slots) {}

  /// Submits a prompt that is to generate `output` ≤ max_new_tokens tokens.
  RequestId submit(std::uint64_t tag, const std::vector<TokenId>& prompt, std::int64_t output,
                   std::int64_t max_new_tokens, std::int32_t priority = 0, ExtraKey key = {}) {
    RequestSpec spec;
    spec.tag = tag;
    spec.prompt = prompt;
    spec.max_new_tokens = max_new_tokens;
    spec.priority = priority;
    spec.key = key;
    const Result<RequestId> id = scheduler_.submit(spec);
    expect(id.ok(), "submit accepted: " + id.status().message());
    Live live;
    live.tag = tag;
    live.text = prompt;
    live.voice = options_.one_text ? mix(0, 77) : tag;
    live.prompt = static_cast<std::int64_t>(prompt.size());
    live.output = output;
    live.max_new_tokens = max_new_tokens;
    const std::hash<std::string_view> hash;
    live.key = mix(hash(key.salt), mix(hash(key.lora), 1));
    live.modality = hash(key.modality);
    live.modality_from = key.modality.empty() ? -1 : key.modality_from;
    live.submitted_step = step_;
    live_.emplace(id->bits(), std::move(live));
    return *id;
  }
  RequestId submit(std::uint64_t tag, std::int32_t prompt, std::int64_t output) {
    return submit(tag, prompt_of(tag, prompt), output, output);
  }
  /// A prompt of `length` tokens that shares nothing with another tag's.
  static std::vector<TokenId> prompt_of(std::uint64_t tag, std::int32_t length) {
    std::vector<TokenId> prompt;
    for (std::int32_t i = 0; i < length; ++i) prompt.push_back(token_of(mix(tag, 77), i));
    return prompt;
  }

  void abort(RequestId id) {
    expect(scheduler_.abort(id).ok(), "abort of a live request");
    forget_finished();
  }

  /// One step: plan, execute, complete. The plan stays readable until the next one.
  const StepPlan& step() {
    maybe_abort();
    start_step();
    maybe_abort();
    execute();
    maybe_abort();
    complete();
    return *plan_;
  }
  /// Steps until everything submitted has ended; at most `most` steps.
  void run(std::int64_t most) {
    for (std::int64_t i = 0; !scheduler_.idle(); ++i) {
      expect(i < most, "everything ends in time");
      step();
    }
    expect(live_.empty(), "everyone is told to have ended");
  }
  /// After run(): nothing leaks.
  void expect_no_leak() {
    expect(memory_.pending() == 0, "no fence open");
    cache_.clear_prefix_cache();
    const PageCounts counts = cache_.counts();
    expect(counts.free == counts.total, "every page is free");
    const PageCounts host = cache_.host_counts();
    expect(host.free == host.total, "every host page is free");
    expect(cache_.live_sequences() == 0, "no sequence left");
  }

  // The three parts of step(), for tests that look between them.
  void start_step();
  void execute();
  void complete();

  [[nodiscard]] const StepPlan& plan() const { return *plan_; }
  [[nodiscard]] const Live& live(RequestId id) const { return live_.at(id.bits()); }
  [[nodiscard]] bool ended(RequestId id) const { return !live_.contains(id.bits()); }
  [[nodiscard]] std::int64_t items() const { return items_; }
  [[nodiscard]] std::int64_t finished() const { return finished_; }
  [[nodiscard]] std::int64_t longest_wait() const { return longest_wait_; }
  [[nodiscard]] std::vector<SampledToken>& tokens() { return tokens_; }
  [[nodiscard]] std::vector<MeasuredDemand>& demand() { return demand_; }
  [[nodiscard]] std::vector<FenceId>& fences() { return fences_; }
  [[nodiscard]] std::vector<RequestId>& failed() { return failed_; }
  [[nodiscard]] Random& random() { return random_; }

  static TokenId token_of(std::uint64_t tag, std::int64_t index) {
    return static_cast<TokenId>(mix(tag, static_cast<std::uint64_t>(index)) % 1000);
  }

 private:
  void expect(bool good, const std::string& what) const {
    if (!good) FAIL(what << " (seed " << options_.seed << ", step " << step_ << ")");
  }
  void expect(bool good, const char* what) const {
    if (!good) FAIL(what << " (seed " << options_.seed << ", step " << step_ << ")");
  }
  [[nodiscard]] Live* find(RequestId id) {
    const auto found = live_.find(id.bits());
    return found == live_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::int64_t due() { return step_ + random_.below(options_.max_fence_delay + 1); }

  void maybe_abort();
  void forget_finished();
  void check_plan();
  void check_accounting(std::int64_t kv_before, std::int64_t running_before);
  void check_progress();
  void check_rows(const Live& live, RequestId id);
  void take_slot(Live& live, SummarySlot slot);
  void begin(Live& live, SequenceId sequence, std::int64_t matched);
  [[nodiscard]] std::uint64_t next_word(const Live& live) const;
  void append(Live& live, RequestId id, std::int64_t position);
  void start_summary(Live& live, std::int64_t position, bool first);
  void swap_out(const SwapItem& item);
  void swap_in(const SwapItem& item);
  void compact(const CompactionItem& item);
  void prefill(const PrefillChunk& chunk);
  void decode(const DecodeItem& item);
  void sample(const Live& live, RequestId id);
  void measure(const DemandItem& item);

  EngineScheduler& scheduler_;
  PageManager& cache_;
  SchedulerOptions limits_;
  Options options_;
  Random random_;
  std::int32_t page_size_;
  EngineMemory memory_;
  std::unordered_map<std::uint64_t, Live> live_;
  const StepPlan* plan_ = nullptr;
  std::vector<SampledToken> tokens_;
  std::vector<MeasuredDemand> demand_;
  std::vector<FenceId> fences_;
  std::vector<RequestId> failed_;
  std::int64_t step_ = 0;
  std::int64_t items_ = 0;
  std::int64_t finished_ = 0;
  std::int64_t idle_steps_ = 0;
  std::int64_t longest_wait_ = 0;
};

}  // namespace growpage::test

#include "support/fake_engine_checks.hpp"
#include "support/fake_engine_steps.hpp"
