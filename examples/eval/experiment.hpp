// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>

#include "json.hpp"
#include "runner.hpp"

namespace growpage::eval {

/// What every part works with.
class Experiment {
 public:
  /// Everything is borrowed.
  Experiment(const runtime::Model& model, const EvalOptions& options,
             std::span<const Problem> problems)
      : options_(options), problems_(problems), runner_(model, options) {}

  [[nodiscard]] const EvalOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::span<const Problem> problems() const noexcept { return problems_; }
  [[nodiscard]] const Runner& runner() const noexcept { return runner_; }
  /// Whether there are answers to get right; otherwise quality is NLL.
  [[nodiscard]] bool has_answers() const noexcept { return !problems_.front().answer.empty(); }

  /// Calls f(i) for i in [0, tasks) on the options' threads and says on standard error what is
  /// done. The first error.
  Status for_each(const char* part, std::size_t tasks,
                  const std::function<Status(std::size_t)>& f) const;

 private:
  const EvalOptions& options_;
  std::span<const Problem> problems_;
  Runner runner_;
};

// The parts, each in a file of its own; what they measure is said there.
[[nodiscard]] Result<Json> measure_signal(const Experiment& experiment);
[[nodiscard]] Result<Json> measure_advantage(const Experiment& experiment);
[[nodiscard]] Result<Json> measure_policies(const Experiment& experiment);
[[nodiscard]] Result<Json> measure_budget(const Experiment& experiment);
[[nodiscard]] Result<Json> measure_ablation(const Experiment& experiment);
[[nodiscard]] Result<Json> measure_timeline(const Experiment& experiment);

}  // namespace growpage::eval
