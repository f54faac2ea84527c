// SPDX-License-Identifier: Apache-2.0
// Part `advantage`: what growing would have been worth. At sampled boundaries of solutions decoded
// under growpage, a second request takes the same decisions up to the boundary and the other one
// there. The advantage is the NLL of the next page's tokens after compressing less that after
// growing, a token.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "experiment.hpp"

namespace growpage::eval {
namespace {

constexpr std::size_t texts_per_run = 128;

struct Boundary {
  std::size_t problem = 0;
  std::int64_t number = 0;  // of the text's boundaries
  std::int64_t first = 0;   // output token that is the first to see what was decided
  bool grew = false;
  double delta = 0;
  double advantage = std::numeric_limits<double>::quiet_NaN();
};

/// growpage's rule, and its opposite once per request. The context of a UserPolicy.
struct Turn {
  double threshold = 0;
  std::vector<std::int64_t> at;  // [text] number of the boundary

  static Decision decide(void* context, const BoundaryContext& boundary) {
    const auto& turn = *static_cast<const Turn*>(context);
    GrowPagePolicy rule;
    rule.threshold = turn.threshold;
    const Decision decision = rule.decide(boundary);
    if (boundary.boundary != turn.at[boundary.request]) return decision;
    return decision == Decision::grow ? Decision::compact : Decision::grow;
  }
};

/// All boundaries whose next page lies within the solution.
std::vector<Boundary> boundaries_of(std::span<const Problem> problems, const RunResult& run,
                                    std::int64_t page_size) {
  std::vector<Boundary> boundaries;
  std::vector<std::int64_t> numbers(problems.size(), 0);
  for (const DecisionRecord& record : run.decisions) {
    const Problem& problem = problems[record.tag];
    Boundary b;
    b.problem = record.tag;
    b.number = numbers[record.tag]++;
    b.first = record.length - static_cast<std::int64_t>(problem.prompt.size()) + 1;
    b.grew = record.kind == DecisionKind::grow;
    b.delta = record.delta;
    const bool own = b.grew || record.kind == DecisionKind::compact;
    const bool whole = b.first + page_size <= static_cast<std::int64_t>(problem.solution.size());
    if (own && record.measured && whole) boundaries.push_back(b);
  }
  return boundaries;
}

double mean_nll(const TextResult& text, std::int64_t first, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = first; i < first + count; ++i) {
    sum += double{text.nll[static_cast<std::size_t>(i)]};
  }
  return sum / static_cast<double>(count);
}

/// Runs the other way of some boundaries. One whose request could not take it stays without.
Status run_other_way(const Experiment& experiment, const RunResult& base,
                     std::span<Boundary> boundaries) {
  const EvalOptions& options = experiment.options();
  Turn turn{options.threshold, {}};
  std::vector<Text> texts;
  for (const Boundary& b : boundaries) {
    turn.at.push_back(b.number);
    texts.push_back({&experiment.problems()[b.problem], true, b.first + options.page_size});
  }
  Setup setup = make_setup(options, "growpage");
  UserPolicy policy;
  policy.callback = Turn::decide;
  policy.context = &turn;
  policy.capacity.initial_pages = options.initial_pages;
  policy.retention_options = options.retention;
  setup.policy = AnyPolicy(policy);
  const Result<RunResult> run = experiment.runner().run(setup, texts);
  if (!run.ok()) return run.status();

  std::vector<std::int64_t> numbers(boundaries.size(), 0);
  for (const DecisionRecord& record : run->decisions) {
    Boundary& b = boundaries[record.tag];
    if (numbers[record.tag]++ != b.number) continue;
    const DecisionKind other = b.grew ? DecisionKind::compact : DecisionKind::grow;
    if (record.kind != other || record.delta != b.delta) continue;
    const double here = mean_nll(base.texts[b.problem], b.first, options.page_size);
    const double there = mean_nll(run->texts[record.tag], b.first, options.page_size);
    b.advantage = b.grew ? there - here : here - there;
  }
  return {};
}

/// Bootstrap over problems of a statistic of the chosen boundaries.
template <class F>
Interval over_problems(const Experiment& experiment, const std::vector<Boundary>& boundaries,
                       F&& statistic) {
  std::vector<std::vector<std::size_t>> of_problem(experiment.problems().size());
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    of_problem[boundaries[i].problem].push_back(i);
  }
  std::erase_if(of_problem, [](const auto& list) { return list.empty(); });
  std::vector<std::size_t> gathered;
  const auto of = [&](std::span<const std::size_t> chosen) {
    gathered.clear();
    for (const std::size_t p : chosen) {
      gathered.insert(gathered.end(), of_problem[p].begin(), of_problem[p].end());
    }
    return statistic(gathered);
  };
  return bootstrap(of_problem.size(), of, experiment.options().bootstrap);
}

Json summarise(const Experiment& experiment, const std::vector<Boundary>& boundaries) {
  const auto bins = static_cast<std::size_t>(experiment.options().bins);
  std::vector<double> deltas, advantages;
  deltas.reserve(boundaries.size());
  advantages.reserve(boundaries.size());
  for (const Boundary& b : boundaries) {
    deltas.push_back(b.delta);
    advantages.push_back(b.advantage);
  }
  const std::vector<std::size_t> bin_of = quantile_bins(deltas, bins);
  using Chosen = std::vector<std::size_t>;
  const auto bin_mean = [&](const Chosen& chosen, std::size_t bin) {
    std::vector<double> values;
    for (const std::size_t i : chosen) {
      if (bin_of[i] == bin) values.push_back(advantages[i]);
    }
    return mean(values);
  };
  Json json = {{"boundaries", boundaries.size()}, {"bins", Json::array()}};
  for (std::size_t bin = 0; bin < bins; ++bin) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    std::size_t count = 0;
    for (std::size_t i = 0; i < boundaries.size(); ++i) {
      if (bin_of[i] != bin) continue;
      low = std::min(low, deltas[i]);
      high = std::max(high, deltas[i]);
      ++count;
    }
    if (count == 0) continue;
    const auto advantage =
        over_problems(experiment, boundaries, [&](const Chosen& c) { return bin_mean(c, bin); });
    json["bins"].push_back({{"delta_low", low},
                            {"delta_high", high},
                            {"boundaries", count},
                            {"advantage", to_json(advantage)}});
  }
  json["top_less_bottom"] =
      to_json(over_problems(experiment, boundaries, [&](const Chosen& chosen) {
        return bin_mean(chosen, bins - 1) - bin_mean(chosen, 0);
      }));
  json["rho"] = to_json(over_problems(experiment, boundaries, [&](const Chosen& chosen) {
    std::vector<double> x, y;
    x.reserve(chosen.size());
    y.reserve(chosen.size());
    for (const std::size_t i : chosen) {
      x.push_back(deltas[i]);
      y.push_back(advantages[i]);
    }
    return spearman(x, y);
  }));
  json["points"] = Json::array();  // Δ, advantage
  for (const Boundary& b : boundaries) json["points"].push_back({b.delta, b.advantage});
  return json;
}

}  // namespace

Result<Json> measure_advantage(const Experiment& experiment) {
  const EvalOptions& options = experiment.options();
  const Result<RunResult> base =
      experiment.runner().run(make_setup(options, "growpage"), forced_texts(experiment.problems()));
  if (!base.ok()) return base.status();
  std::vector<Boundary> boundaries = boundaries_of(experiment.problems(), *base, options.page_size);
  std::mt19937_64 random(options.seed);
  const std::size_t wanted =
      std::min(boundaries.size(), static_cast<std::size_t>(options.boundaries));
  for (std::size_t i = 0; i < wanted; ++i) {
    std::swap(boundaries[i], boundaries[i + random() % (boundaries.size() - i)]);
  }
  boundaries.resize(wanted);
  // Texts of one length end together and leave no batch half empty.
  std::ranges::sort(boundaries, {}, [](const Boundary& b) { return b.first; });
  const std::size_t runs = (wanted + texts_per_run - 1) / texts_per_run;
  Status s = experiment.for_each("advantage", runs, [&](std::size_t i) {
    const std::size_t first = i * texts_per_run;
    const std::size_t count = std::min(texts_per_run, wanted - first);
    return run_other_way(experiment, *base, std::span(boundaries).subspan(first, count));
  });
  if (!s.ok()) return s;
  std::erase_if(boundaries, [](const Boundary& b) { return std::isnan(b.advantage); });
  return summarise(experiment, boundaries);
}

}  // namespace growpage::eval
