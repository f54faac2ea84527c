// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine.hpp"
#include "problem.hpp"
#include "setup.hpp"

namespace growpage::eval {

/// One text of a run; its place in the run is its tag, which every random draw depends on.
struct Text {
  const Problem* problem = nullptr;
  bool forced = false;      ///< the solution is what is generated, whatever the model would say
  std::int64_t tokens = 0;  ///< generated at the most
};

struct TextResult {
  std::vector<TokenId> tokens;
  bool stopped = false;         ///< ended by an end-of-text token
  std::vector<float> nll;       ///< [token of a forced text]
  std::int32_t most_pages = 0;  ///< held at once
};

struct RunResult {
  std::vector<TextResult> texts;  // [text]
  std::vector<DecisionRecord> decisions;
  Counters counters;
  double seconds = 0;  ///< of processor time: runs share the machine

  /// Average KV tokens a running request held, over time.
  [[nodiscard]] double kv_tokens() const;
};

/// Serves texts with a model, each run in an engine of its own.
class Runner {
 public:
  /// Called after every step's forward pass.
  using StepHook = std::function<Status(runtime::Engine&, const StepPlan&)>;

  /// Everything is borrowed.
  Runner(const runtime::Model& model, const EvalOptions& options)
      : model_(model), options_(options) {}

  [[nodiscard]] const runtime::Model& model() const noexcept { return model_; }
  /// On the calling thread. `sampling` is for the texts that are not forced; its seed is also that
  /// of policy `random`.
  [[nodiscard]] Result<RunResult> run(const Setup& setup, std::span<const Text> texts,
                                      const runtime::SamplingOptions& sampling = {},
                                      const StepHook& hook = {}) const;

 private:
  [[nodiscard]] runtime::EngineOptions engine_options(const Setup& setup,
                                                      std::span<const Text> texts,
                                                      std::uint64_t seed) const;

  const runtime::Model& model_;
  const EvalOptions& options_;
};

/// The solutions of all problems.
[[nodiscard]] std::vector<Text> forced_texts(std::span<const Problem> problems);
/// What the model generates for all problems, `copies` times over: text i is of problem i modulo
/// their number.
[[nodiscard]] std::vector<Text> free_texts(std::span<const Problem> problems, std::int32_t copies);

}  // namespace growpage::eval
