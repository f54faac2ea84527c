// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "growpage/schedule/execute.hpp"

namespace growpage::runtime {
namespace {

PagedKVCacheOptions cache_options(const ModelConfig& config, const RopeTables& rope,
                                  const EngineOptions& options) {
  PagedKVCacheOptions caching;
  caching.shape = {config.layers,    config.query_heads, config.kv_heads, config.head_dim, 0,
                   options.page_size};
  caching.pages.pages = options.pages;
  caching.pages.host_pages = options.host_pages;
  caching.pages.prefix_caching = options.prefix_caching;
  // Swapped requests keep their sequences.
  caching.pages.max_sequences = 2 * options.scheduling.max_running;
  caching.pages.max_fences = 2 * options.scheduling.max_running;
  caching.pages.max_pages_per_sequence = static_cast<std::int32_t>(
      std::min(options.pages, rope.positions() / std::max(options.page_size, 1) + 2));
  caching.dtype = options.kv_dtype;
  caching.summary = options.summary;
  caching.demand = options.demand;
  caching.summary.slots = options.scheduling.max_running;
  caching.rope = rope.params();
  caching.retention = options.policy.retention();
  caching.summary.window =
      caching.retention.score == ScoreKind::window ? caching.retention.window : 0;
  return caching;
}

}  // namespace

Engine::Engine(const Model& model, const EngineOptions& options, std::int64_t positions)
    : model_(model),
      pool_(options.threads),
      rope_(model.config(), positions),
      forward_(model, rope_, pool_.executor()) {}

Result<std::unique_ptr<Engine>> Engine::create(const Model& model, const EngineOptions& options) {
  const std::int64_t limit = model.config().max_position;
  if (options.max_length < 0 || options.max_length > limit) {
    return Status::invalid("EngineOptions::max_length", options.max_length,
                           fmt::format("0 to the model's {} positions", limit));
  }
  if (options.threads < 1) {
    return Status::invalid("EngineOptions::threads", std::int64_t{options.threads}, "at least 1");
  }
  const std::int64_t positions = options.max_length > 0 ? options.max_length : limit;
  std::unique_ptr<Engine> engine(new Engine(model, options, positions));
  if (Status s = engine->open(options); !s.ok()) return s;
  return engine;
}

Status Engine::open(const EngineOptions& options) {
  Result<Cache> cache =
      Cache::create(cache_options(model_.config(), rope_, options), CpuBackend(pool_.executor()));
  if (!cache.ok()) return cache.status();
  cache_.emplace(std::move(*cache));
  memory_.emplace(*cache_, pool_.executor(), options.library_attention);
  SchedulerOptions scheduling = options.scheduling;
  scheduling.summary_slots = scheduling.max_running;
  Result<Sched> scheduler = Sched::create(*cache_, options.policy, scheduling);
  if (!scheduler.ok()) return scheduler.status();
  scheduler_.emplace(std::move(*scheduler));
  return {};
}

Status Engine::submit(const GenerationRequest& request) {
  const std::int32_t vocab = model_.config().vocab_size;
  for (const TokenId token : request.prompt) {
    if (token < 0 || token >= vocab) {
      return Status::invalid("prompt token", std::int64_t{token},
                             fmt::format("0 to {}, the vocabulary", vocab - 1));
    }
  }
  if (Status s = request.sampling.validate(); !s.ok()) return s;
  const auto length = static_cast<std::int64_t>(request.prompt.size()) + request.max_new_tokens;
  if (length > rope_.positions()) {
    return Status::invalid("prompt and max_new_tokens", length,
                           fmt::format("at most {} tokens, max_length", rope_.positions()));
  }
  RequestSpec spec;
  spec.tag = request.tag;
  spec.prompt = request.prompt;
  spec.max_new_tokens = request.max_new_tokens;
  const Result<RequestId> id = scheduler_->submit(spec);
  if (!id.ok()) return id.status();
  active_.emplace(*id, Active{request, {request.tag, {}, false}});
  return {};
}

Status Engine::gather_batch(const StepPlan& plan) {
  tokens_.clear();
  logit_rows_.clear();
  logit_requests_.clear();
  const auto want_logits = [&](RequestId id) {
    logit_rows_.push_back(static_cast<std::int32_t>(tokens_.size()) - 1);
    logit_requests_.push_back(id);
  };
  // In the order of PagedMemory::begin.
  for (const PrefillChunk& chunk : plan.prefills) {
    const Result<std::span<const TokenId>> text = scheduler_->text(chunk.request);
    if (!text.ok()) return text.status();
    const auto part = text->subspan(static_cast<std::size_t>(chunk.first_position),
                                    static_cast<std::size_t>(chunk.tokens));
    tokens_.insert(tokens_.end(), part.begin(), part.end());
    if (chunk.last) want_logits(chunk.request);
  }
  for (const DecodeItem& item : plan.decodes) {
    tokens_.push_back(item.token);
    want_logits(item.request);
  }
  return memory_->begin(plan);
}

Status Engine::step() {
  const Result<const StepPlan*> planned = scheduler_->schedule();
  if (!planned.ok()) return planned.status();
  const StepPlan& plan = **planned;
  fences_.clear();
  demand_.clear();
  sampled_.clear();
  if (Status s = run_before_forward(*cache_, plan, fences_); !s.ok()) return s;
  if (Status s = gather_batch(plan); !s.ok()) return s;
  if (!tokens_.empty()) {
    const ForwardBatch batch{tokens_, memory_->positions(), logit_rows_};
    if (Status s = forward_.run(batch, *memory_); !s.ok()) return s;
  }
  for (std::size_t i = 0; i < logit_requests_.size(); ++i) sample(logit_requests_[i], i);
  if (Status s = run_after_forward(*cache_, plan, demand_); !s.ok()) return s;
  if (step_hook_) {
    if (Status s = step_hook_(plan); !s.ok()) return s;
  }
  if (Status s = scheduler_->complete({sampled_, demand_, fences_, {}}); !s.ok()) return s;
  collect_finished();
  return {};
}

void Engine::sample(RequestId id, std::size_t logits_row) {
  Active& active = active_.at(id);
  const GenerationRequest& request = active.request;
  const auto index = static_cast<std::int64_t>(active.output.tokens.size());
  const std::span<const float> logits = forward_.logits(logits_row);
  std::optional<TokenId> token;
  if (hook_) token = hook_(request.tag, index, logits);
  if (!token) token = sampler_.sample(logits, request.sampling, request.tag, index);
  const bool stop =
      !request.ignore_eos && std::ranges::count(model_.config().eos_tokens, *token) > 0;
  active.output.tokens.push_back(*token);
  active.output.stopped = stop;
  sampled_.push_back({id, *token, stop});
}

void Engine::collect_finished() {
  for (const Sched::Finished& finished : scheduler_->finished()) {
    const auto at = active_.find(finished.request);
    finished_.push_back(std::move(at->second.output));
    active_.erase(at);
  }
}

std::vector<Generation> Engine::take_finished() { return std::exchange(finished_, {}); }

}  // namespace growpage::runtime
