// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/execute.hpp"
#include "growpage/schedule/scheduler.hpp"
#include "support/tiny_model.hpp"
#include "support/tiny_sequence.hpp"

namespace growpage::test {

/// Serves the tiny model through the scheduler and a PagedKVCache, and compares with the double
/// reference: rows in memory, attention, demand, what each compaction keeps.
class TinyEngine {
 public:
  using EngineScheduler = Scheduler<AnyPolicy, CpuCache>;

  TinyEngine(CpuCache& cache, EngineScheduler& scheduler) : model_(cache), scheduler_(scheduler) {}

  RequestId submit(std::uint64_t tag, const std::vector<TokenId>& prompt, std::int64_t output) {
    RequestSpec spec;
    spec.tag = tag;
    spec.prompt = prompt;
    spec.max_new_tokens = output;
    const Result<RequestId> id = scheduler_.submit(spec);
    REQUIRE(id.ok());
    return *id;
  }

  const StepPlan& step() {
    const StepPlan& plan = **planned(scheduler_.schedule());
    fences_.clear();
    demand_.clear();
    tokens_.clear();
    CpuCache& cache = model_.cache();
    // What each compaction should do, while the rows are still there (copies make them private).
    struct Expected {
      reference::BoundaryAnswer before;
      std::int32_t shared_slots;
    };
    std::vector<Expected> expected;
    for (const CompactionItem& item : plan.compactions) {
      std::vector<std::uint8_t> marks(cache.view(item.ticket.sequence)->pages.size());
      REQUIRE(cache.page_marks(item.ticket.sequence, item.protected_slots, marks).ok());
      std::int32_t shared = 0;
      while ((marks[static_cast<std::size_t>(shared)] & page_private) == 0) ++shared;
      expected.push_back({ranking(item.request, item.ticket.sequence),
                          std::max(shared * model_.shape().page_size, item.protected_slots)});
    }
    REQUIRE(run_before_forward(cache, plan, fences_).ok());
    for (std::size_t i = 0; i < plan.compactions.size(); ++i) {
      const CompactionItem& item = plan.compactions[i];
      at(item.request, item.ticket.sequence)
          .adopt_compaction(model_, item.ticket.sequence, expected[i].before,
                            expected[i].shared_slots, tolerance());
      ++compactions_;
    }
    for (const PrefillChunk& chunk : plan.prefills) prefill(chunk);
    for (const DecodeItem& item : plan.decodes) decode(item);
    REQUIRE(run_after_forward(cache, plan, demand_).ok());
    REQUIRE(demand_.size() == plan.demand.size());
    for (std::size_t i = 0; i < demand_.size(); ++i) check_demand(plan.demand[i], demand_[i]);
    REQUIRE(scheduler_.complete({tokens_, demand_, fences_, {}}).ok());
    REQUIRE(cache.check_invariants().ok());
    REQUIRE(scheduler_.check_invariants().ok());
    return plan;
  }
  void run(int most) {
    for (int i = 0; !scheduler_.idle(); ++i) {
      REQUIRE(i < most);
      step();
    }
    model_.cache().clear_prefix_cache();
    CHECK(model_.cache().counts().free == model_.cache().counts().total);
    CHECK(model_.cache().host_counts().free == model_.cache().host_counts().total);
  }
  [[nodiscard]] std::int64_t compactions() const { return compactions_; }
  [[nodiscard]] std::int64_t demands() const { return demands_; }
  [[nodiscard]] TinySequence& at(RequestId id, SequenceId sequence) {
    auto& entry = live_.try_emplace(id.bits(), sequence, model_.shape()).first->second;
    if (!(entry.first == sequence)) entry = {sequence, TinySequence(model_.shape())};
    return entry.second;
  }

 private:
  /// Scores that rank the rows: those of the demand pass when there was one; rows since are recent.
  [[nodiscard]] reference::BoundaryAnswer ranking(RequestId id, SequenceId sequence) {
    const auto measured = measured_.find(id.bits());
    if (measured == measured_.end()) return at(id, sequence).boundary(model_);
    reference::BoundaryAnswer answer = std::move(measured->second);
    measured_.erase(measured);
    const auto slots = static_cast<std::size_t>(at(id, sequence).slots());
    for (reference::Rows& layer : answer.scores) {
      for (reference::Row& head : layer) head.resize(slots, 0.0);
    }
    return answer;
  }
  static const Result<const StepPlan*>& planned(const Result<const StepPlan*>& plan) {
    REQUIRE(plan.ok());
    return plan;
  }
  [[nodiscard]] double tolerance() const {
    return model_.cache().kv().k.dtype == DType::bf16 ? 0.1 : 1e-3;
  }
  [[nodiscard]] TokenId sample(std::uint64_t tag, std::int64_t position) const {
    return static_cast<TokenId>(
        detail::splitmix64(tag * 1000 + static_cast<std::uint64_t>(position)) % 500);
  }
  void prefill(const PrefillChunk& chunk) {
    TinySequence& sequence = at(chunk.request, chunk.sequence);
    const auto text = scheduler_.text(chunk.request).value();
    sequence.text.assign(text.begin(), text.end());
    while (sequence.slots() < chunk.first_slot) sequence.append(sequence.slots());  // matched
    for (std::int32_t i = 0; i < chunk.tokens; ++i) sequence.append(chunk.first_position + i);
    const auto first = static_cast<std::size_t>(chunk.first_position);
    model_.append(chunk.sequence, text.subspan(first, static_cast<std::size_t>(chunk.tokens)),
                  chunk.first_position, chunk.first_slot);
    const std::int64_t last = chunk.first_position + chunk.tokens - 1;
    if (chunk.summary.valid()) {
      model_.summarise({chunk.summary.value, 1}, sequence.token(last), last);
      sequence.summarise(model_, true, last);
    }
    sequence.check_attention(model_, chunk.sequence, last);
    if (chunk.last) tokens_.push_back({chunk.request, sample(chunk.tag, last + 1), false});
  }
  void decode(const DecodeItem& item) {
    TinySequence& sequence = at(item.request, item.sequence);
    const auto text = scheduler_.text(item.request).value();
    sequence.text.assign(text.begin(), text.end());
    REQUIRE(item.token == sequence.token(item.position));
    model_.append(item.sequence, {&item.token, 1}, item.position, item.kv_length - 1);
    sequence.append(item.position);
    REQUIRE(sequence.slots() == item.kv_length);
    model_.summarise({item.summary.value, item.summary_first ? 1 : 0}, item.token, item.position);
    sequence.summarise(model_, item.summary_first, item.position);
    sequence.check_attention(model_, item.sequence, item.position);
    tokens_.push_back({item.request, sample(item.tag, item.position + 1), false});
  }
  void check_demand(const DemandItem& item, const MeasuredDemand& measured) {
    reference::BoundaryAnswer want = at(item.request, item.sequence).boundary(model_);
    CHECK(measured.request == item.request);
    CHECK(measured.demand.count == model_.shape().layers * model_.shape().kv_heads);
    CHECK(measured.demand.short_ratio() >= want.short_ratio.low - 1e-9);
    CHECK(measured.demand.short_ratio() <= want.short_ratio.high + 1e-9);
    CHECK(measured.demand.long_ratio() >= want.long_ratio.low - 1e-9);
    CHECK(measured.demand.long_ratio() <= want.long_ratio.high + 1e-9);
    measured_[item.request.bits()] = std::move(want);
    ++demands_;
  }

  TinyModel model_;
  EngineScheduler& scheduler_;
  std::unordered_map<std::uint64_t, std::pair<SequenceId, TinySequence>> live_;
  std::unordered_map<std::uint64_t, reference::BoundaryAnswer> measured_;
  std::vector<FenceId> fences_;
  std::vector<MeasuredDemand> demand_;
  std::vector<SampledToken> tokens_;
  std::int64_t compactions_ = 0;
  std::int64_t demands_ = 0;
};

}  // namespace growpage::test
