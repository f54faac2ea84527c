// SPDX-License-Identifier: Apache-2.0
#include "score.hpp"

#include <algorithm>

namespace growpage::eval {

Status run_score(const Experiment& experiment, std::int32_t copies, Score& score) {
  const EvalOptions& options = experiment.options();
  const std::span<const Problem> problems = experiment.problems();
  const bool answers = experiment.has_answers();
  const std::vector<Text> texts = answers ? free_texts(problems, copies) : forced_texts(problems);
  Result<RunResult> run = experiment.runner().run(
      score.setup, texts, {options.temperature, options.top_p, options.seed});
  if (!run.ok()) return run.status();
  score.run = std::move(*run);
  score.quality.assign(problems.size(), 0);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const TextResult& text = score.run.texts[i];
    double& quality = score.quality[i % problems.size()];
    if (answers) {
      const bool passed = text.stopped && texts[i].problem->passed(text.tokens);
      quality += passed ? 1.0 / static_cast<double>(copies) : 0;
    } else {
      for (const float nll : text.nll) {
        quality -= double{nll} / static_cast<double>(text.nll.size());
      }
    }
  }
  return {};
}

Interval quality_of(const Experiment& experiment, const Score& score) {
  return bootstrap_mean(score.quality, experiment.options().bootstrap);
}

Interval quality_difference(const Experiment& experiment, std::span<const double> a,
                            std::span<const double> b) {
  std::vector<double> difference(a.size());
  std::ranges::transform(a, b, difference.begin(), std::minus());
  return bootstrap_mean(difference, experiment.options().bootstrap);
}

Json to_json(const Experiment& experiment, const Score& score) {
  const Counters& c = score.run.counters;
  const std::int64_t decisions = c.grow + c.compact + c.shrink;
  Json json = {{"policy", score.setup.policy.name()}, {"name", score.setup.name}};
  if (score.budget > 0) json["budget_pages"] = score.budget;
  json["quality"] = to_json(quality_of(experiment, score));
  json["kv_tokens"] = score.run.kv_tokens();
  json["tokens_per_s"] = static_cast<double>(c.decode_tokens) / score.run.seconds;
  json["generated"] = c.decode_tokens;
  json["texts"] = score.run.texts.size();
  json["grow"] = c.grow;
  json["grow_percent"] = 100.0 * static_cast<double>(c.grow) /
                         static_cast<double>(std::max<std::int64_t>(decisions, 1));
  json["compact"] = c.compact;
  json["shrink"] = c.shrink;
  json["fallback"] = c.fallback;
  json["preempt"] = c.preempt;
  return json;
}

}  // namespace growpage::eval
