// SPDX-License-Identifier: Apache-2.0
// Part `table`: every policy on the same problems, and growpage against each of the others: as they
// are, and against fixed and zipage at the KV tokens that growpage held, between their budgets.
#include <fmt/format.h>

#include <algorithm>

#include "score.hpp"

namespace growpage::eval {
namespace {

using Scores = std::vector<Score>;

Status run_all(const Experiment& experiment, Scores& scores, std::size_t first) {
  return experiment.for_each("table", scores.size() - first, [&](std::size_t i) {
    return run_score(experiment, experiment.options().copies, scores[first + i]);
  });
}

const Score& find(const Scores& scores, std::string_view name) {
  return *std::ranges::find(scores, name, [](const Score& s) { return s.setup.name; });
}

/// random as often compacting as growpage did, so that both hold about as much.
Score matched_random(const Experiment& experiment, const Score& growpage) {
  const Counters& c = growpage.run.counters;
  EvalOptions options = experiment.options();
  options.random_compact = static_cast<double>(c.compact) /
                           static_cast<double>(std::max<std::int64_t>(c.grow + c.compact, 1));
  Score score{make_setup(options, "random"), 0, {}, {}};
  score.setup.name = fmt::format("random {:.2f}", options.random_compact);
  return score;
}

Json difference(const Experiment& experiment, const Score& growpage, const Score& other) {
  return {{"against", other.setup.name},
          {"policy", other.setup.policy.name()},
          {"kv_tokens", other.run.kv_tokens()},
          {"interpolated", false},
          {"difference", to_json(quality_difference(experiment, growpage.quality, other.quality))}};
}

/// Against `policy` between its budgets, where it would hold what growpage held.
Json interpolated(const Experiment& experiment, const Scores& scores, const Score& growpage,
                  const char* policy) {
  std::vector<const Score*> rows;
  for (const Score& s : scores) {
    if (std::string_view(s.setup.policy.name()) == policy) rows.push_back(&s);
  }
  std::ranges::sort(rows, {}, [](const Score* s) { return s->run.kv_tokens(); });
  std::vector<double> kv;
  kv.reserve(rows.size());
  for (const Score* s : rows) kv.push_back(s->run.kv_tokens());
  const Bracket at = bracket(kv, growpage.run.kv_tokens());
  std::vector<double> quality(growpage.quality.size());
  for (std::size_t i = 0; i < quality.size(); ++i) {
    quality[i] =
        (1 - at.weight) * rows[at.below]->quality[i] + at.weight * rows[at.above]->quality[i];
  }
  // Beyond its budgets there is no equal: the nearest one, whose KV tokens are given.
  return {{"against", fmt::format("{} at {} KV", policy, at.inside ? "equal" : "nearest")},
          {"policy", policy},
          {"kv_tokens", (1 - at.weight) * kv[at.below] + at.weight * kv[at.above]},
          {"interpolated", at.inside},
          {"between", {rows[at.below]->setup.name, rows[at.above]->setup.name}},
          {"difference", to_json(quality_difference(experiment, growpage.quality, quality))}};
}

}  // namespace

Result<Json> measure_policies(const Experiment& experiment) {
  const EvalOptions& options = experiment.options();
  Scores scores;
  for (const std::string& policy : options.policies) {
    const bool budgeted = policy == "fixed" || policy == "zipage";
    if (!budgeted) scores.push_back({make_setup(options, policy), 0, {}, {}});
    for (std::size_t i = 0; budgeted && i < options.budgets.size(); ++i) {
      const std::int32_t budget = options.budgets[i];
      scores.push_back({make_setup(options, policy, budget), budget, {}, {}});
    }
  }
  if (Status s = run_all(experiment, scores, 0); !s.ok()) return s;
  if (options.lists("random")) {
    scores.push_back(matched_random(experiment, find(scores, "growpage")));
    if (Status s = run_all(experiment, scores, scores.size() - 1); !s.ok()) return s;
  }

  const Score& growpage = find(scores, "growpage");
  Json table = {{"rows", Json::array()}, {"differences", Json::array()}};
  for (const Score& score : scores) table["rows"].push_back(to_json(experiment, score));
  for (const Score& score : scores) {
    if (&score == &growpage) continue;
    table["differences"].push_back(difference(experiment, growpage, score));
  }
  for (const char* policy : {"fixed", "zipage"}) {
    if (!options.lists(policy)) continue;
    table["differences"].push_back(interpolated(experiment, scores, growpage, policy));
  }
  return table;
}

}  // namespace growpage::eval
