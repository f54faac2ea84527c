// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "forward.hpp"
#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/scheduler.hpp"
#include "model.hpp"
#include "paged_memory.hpp"
#include "sampler.hpp"
#include "thread_pool.hpp"

namespace growpage::runtime {

struct EngineOptions {
  std::int64_t pages = 256;      ///< of the pool, for all requests
  std::int64_t host_pages = 0;   ///< of swap space
  std::int32_t page_size = 256;  ///< tokens
  DType kv_dtype = DType::f32;
  bool prefix_caching = true;
  AnyPolicy policy{FullPolicy{}};
  SummaryOptions summary;  ///< `slots` and `window` follow from the scheduling and the policy
  DemandOptions demand;
  /// `summary_slots` is set to `max_running`.
  SchedulerOptions scheduling{.max_batched_tokens = 512, .max_running = 64};
  std::int64_t max_length = 0;  ///< of a request, prompt and output; 0 = the model's positions
  std::int32_t threads = 1;
  bool library_attention = false;  ///< see PagedMemory
};

struct GenerationRequest {
  std::uint64_t tag = 0;  ///< the caller's name for it; part of every random draw
  std::vector<TokenId> prompt;
  std::int64_t max_new_tokens = 0;
  SamplingOptions sampling;
  bool ignore_eos = false;
};

struct Generation {
  std::uint64_t tag = 0;
  std::vector<TokenId> tokens;  ///< generated, with the end-of-text token if it came
  bool stopped = false;         ///< ended by an end-of-text token
};

/// A model served by continuous batching under a capacity policy: growpage's Scheduler says what
/// each step holds, the cache keeps K and V, this class runs the model in between.
class Engine {
 public:
  /// Sees the logits of every output token and may name the token instead of the sampler: teacher
  /// forcing, scoring, tests. (tag, index in the output, logits `[vocab]`).
  using TokenHook =
      std::function<std::optional<TokenId>(std::uint64_t, std::int64_t, std::span<const float>)>;

  /// Looks at the cache, or measures on it, after the forward pass of every step.
  using StepHook = std::function<Status(const StepPlan&)>;

  /// `model` is borrowed. invalid_argument for an option out of range, out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> create(const Model& model,
                                                              const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// invalid_argument for tokens outside the vocabulary, a request longer than max_length, …;
  /// request_too_large when it could never run to its end.
  Status submit(const GenerationRequest& request);
  /// One step of every running request. Errors are final.
  Status step();
  [[nodiscard]] bool idle() const noexcept { return scheduler_->idle(); }
  /// What finished since the last call, in the order of finishing.
  [[nodiscard]] std::vector<Generation> take_finished();

  void set_token_hook(TokenHook hook) { hook_ = std::move(hook); }
  void set_step_hook(StepHook hook) { step_hook_ = std::move(hook); }
  [[nodiscard]] const Counters& counters() const noexcept { return scheduler_->counters(); }
  [[nodiscard]] DecisionLog& decisions() noexcept { return scheduler_->decisions(); }
  [[nodiscard]] Cache& cache() noexcept { return *cache_; }

 private:
  using Sched = Scheduler<AnyPolicy, Cache>;
  struct Active {
    GenerationRequest request;
    Generation output;
  };

  Engine(const Model& model, const EngineOptions& options, std::int64_t positions);
  Status open(const EngineOptions& options);
  Status gather_batch(const StepPlan& plan);
  void sample(RequestId id, std::size_t logits_row);
  void collect_finished();

  const Model& model_;
  ThreadPool pool_;
  RopeTables rope_;
  std::optional<Cache> cache_;
  std::optional<PagedMemory> memory_;
  ForwardPass forward_;
  std::optional<Sched> scheduler_;
  Sampler sampler_;
  TokenHook hook_;
  StepHook step_hook_;
  std::unordered_map<RequestId, Active> active_;
  std::vector<Generation> finished_;

  // Of the current step.
  std::vector<TokenId> tokens_;
  std::vector<std::int32_t> logit_rows_;
  std::vector<RequestId> logit_requests_;  // [logit row]
  std::vector<SampledToken> sampled_;
  std::vector<FenceId> fences_;
  std::vector<MeasuredDemand> demand_;
};

}  // namespace growpage::runtime
