// SPDX-License-Identifier: Apache-2.0
#include "runner.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

namespace growpage::eval {
namespace {

constexpr std::int64_t decisions_per_step = 4096;  // drained after each

/// Of this thread.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// −log softmax(logits)[token].
float nll_of(std::span<const float> logits, TokenId token) {
  const float largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x} - double{largest});
  return static_cast<float>(std::log(sum) + double{largest} -
                            double{logits[static_cast<std::size_t>(token)]});
}

std::int64_t length_of(const Text& text) {
  return static_cast<std::int64_t>(text.problem->prompt.size()) + text.tokens;
}

}  // namespace

double RunResult::kv_tokens() const {
  return static_cast<double>(counters.kv_token_steps) /
         static_cast<double>(std::max<std::int64_t>(counters.running_steps, 1));
}

runtime::EngineOptions Runner::engine_options(const Setup& setup, std::span<const Text> texts,
                                              std::uint64_t seed) const {
  runtime::EngineOptions engine;
  for (const Text& text : texts) engine.max_length = std::max(engine.max_length, length_of(text));
  engine.page_size = options_.page_size;
  const std::int64_t longest = engine.max_length / options_.page_size + 2;
  engine.pages = options_.pages > 0 ? options_.pages : longest * options_.max_running;
  engine.kv_dtype = options_.kv_dtype;
  engine.prefix_caching = setup.prefix_caching;
  engine.policy = setup.policy;
  if (auto* random = std::get_if<RandomPolicy>(&engine.policy.variant())) random->seed = seed;
  engine.summary = setup.summary;
  engine.demand = setup.demand;
  engine.scheduling.max_running = options_.max_running;
  engine.scheduling.max_batched_tokens = 512 + options_.max_running;
  engine.scheduling.overcommit = options_.overcommit;
  engine.scheduling.decision_capacity = decisions_per_step;
  return engine;
}

Result<RunResult> Runner::run(const Setup& setup, std::span<const Text> texts,
                              const runtime::SamplingOptions& sampling,
                              const StepHook& hook) const {
  const double start = processor_seconds();
  Result<std::unique_ptr<runtime::Engine>> created =
      runtime::Engine::create(model_, engine_options(setup, texts, sampling.seed));
  if (!created.ok()) return created.status();
  runtime::Engine& engine = **created;
  RunResult run;
  run.texts.resize(texts.size());
  engine.set_token_hook([&](std::uint64_t tag, std::int64_t index,
                            std::span<const float> logits) -> std::optional<TokenId> {
    const Text& text = texts[tag];
    if (!text.forced) return std::nullopt;
    const TokenId token = text.problem->solution[static_cast<std::size_t>(index)];
    run.texts[tag].nll.push_back(nll_of(logits, token));
    return token;
  });
  engine.set_step_hook([&](const StepPlan& plan) -> Status {
    for (const DecodeItem& item : plan.decodes) {
      const std::int32_t pages = (item.kv_length + options_.page_size - 1) / options_.page_size;
      std::int32_t& most = run.texts[item.tag].most_pages;
      most = std::max(most, pages);
    }
    return hook ? hook(engine, plan) : Status();
  });
  for (std::size_t i = 0; i < texts.size(); ++i) {
    runtime::GenerationRequest request;
    request.tag = i;
    request.prompt = texts[i].problem->prompt;
    request.max_new_tokens = texts[i].tokens;
    request.sampling = sampling;
    request.ignore_eos = texts[i].forced;
    if (Status s = engine.submit(request); !s.ok()) return s;
  }
  while (!engine.idle()) {
    if (Status s = engine.step(); !s.ok()) return s;
    for (runtime::Generation& done : engine.take_finished()) {
      run.texts[done.tag].tokens = std::move(done.tokens);
      run.texts[done.tag].stopped = done.stopped;
    }
    for (DecisionRecord record; engine.decisions().pop(record);) run.decisions.push_back(record);
  }
  run.counters = engine.counters();
  run.seconds = processor_seconds() - start;
  return run;
}

std::vector<Text> forced_texts(std::span<const Problem> problems) {
  std::vector<Text> texts;
  texts.reserve(problems.size());
  for (const Problem& p : problems) {
    texts.push_back({&p, true, static_cast<std::int64_t>(p.solution.size())});
  }
  return texts;
}

std::vector<Text> free_texts(std::span<const Problem> problems, std::int32_t copies) {
  std::vector<Text> texts;
  texts.reserve(problems.size() * static_cast<std::size_t>(copies));
  for (std::int32_t copy = 0; copy < copies; ++copy) {
    for (const Problem& p : problems) texts.push_back({&p, false, p.max_new_tokens});
  }
  return texts;
}

}  // namespace growpage::eval
