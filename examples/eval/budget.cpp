// SPDX-License-Identifier: Apache-2.0
// Part `budget`: what each request needs, and what growpage gave it. B* is the smallest fixed
// budget at which the greedy answer is right, and right at all larger ones tried; the capacity is
// the most pages growpage held for the request.
#include <limits>

#include "score.hpp"

namespace growpage::eval {
namespace {

/// B* of a problem in pages, 0 when the largest budget does not do.
std::int32_t sufficient_budget(std::span<const Score> scores, std::size_t problem) {
  std::int32_t budget = 0;
  for (std::size_t i = scores.size(); i-- > 0 && scores[i].quality[problem] > 0;) {
    budget = scores[i].budget;
  }
  return budget;
}

}  // namespace

Result<Json> measure_budget(const Experiment& experiment) {
  EvalOptions options = experiment.options();
  options.temperature = 0;
  const Experiment greedy(experiment.runner().model(), options, experiment.problems());
  std::vector<Score> scores;
  scores.reserve(options.sufficient.size() + 1);
  for (const std::int32_t budget : options.sufficient) {
    scores.push_back({make_setup(options, "fixed", budget), budget, {}, {}});
  }
  scores.push_back({make_setup(options, "growpage"), 0, {}, {}});
  Status s = greedy.for_each("budget", scores.size(),
                             [&](std::size_t i) { return run_score(greedy, 1, scores[i]); });
  if (!s.ok()) return s;

  const Score& growpage = scores.back();
  const std::span<const Score> fixed(scores.data(), scores.size() - 1);
  std::vector<double> needed, given;
  Json requests = Json::array();
  for (std::size_t i = 0; i < experiment.problems().size(); ++i) {
    const Problem& problem = experiment.problems()[i];
    const std::int32_t budget = sufficient_budget(fixed, i);
    const std::int32_t capacity = growpage.run.texts[i].most_pages;
    requests.push_back({problem.tag, problem.difficulty, problem.solution.size(),
                        budget > 0 ? Json(budget) : Json(nullptr), capacity,
                        growpage.quality[i] > 0});
    if (budget == 0) continue;
    needed.push_back(budget);
    given.push_back(capacity);
  }
  std::vector<double> x, y;
  const auto rho = [&](std::span<const std::size_t> chosen) {
    x.clear();
    y.clear();
    for (const std::size_t i : chosen) {
      x.push_back(needed[i]);
      y.push_back(given[i]);
    }
    return spearman(x, y);
  };
  Json json = {{"budgets", options.sufficient}, {"passed", Json::array()}};
  for (const Score& score : fixed) json["passed"].push_back(to_json(quality_of(greedy, score)));
  json["growpage_passed"] = to_json(quality_of(greedy, growpage));
  json["solved"] = needed.size();
  json["rho"] = to_json(bootstrap(needed.size(), rho, options.bootstrap));
  // Tag, difficulty, tokens of the solution, B* (pages), pages under growpage, growpage passed.
  json["requests"] = std::move(requests);
  return json;
}

}  // namespace growpage::eval
