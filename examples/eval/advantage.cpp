// SPDX-License-Identifier: Apache-2.0
// Part `advantage`: what growing would have been worth. At sampled boundaries of solutions decoded
// under growpage, a second request takes the same decisions up to the boundary and the other one
// there. The advantage is the NLL after compressing less that after growing: of the next page, a
// token, and of all that is left of the text, in nats; after the boundary both follow growpage.
#include <algorithm>
#include <cmath>
#include <random>

#include "boundary_advantage.hpp"

namespace growpage::eval {
namespace {

constexpr std::size_t texts_per_run = 128;

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
std::vector<BoundaryAdvantage> boundaries_of(std::span<const Problem> problems,
                                             const RunResult& run, std::int64_t page_size) {
  std::vector<BoundaryAdvantage> boundaries;
  std::vector<std::int64_t> numbers(problems.size(), 0);
  for (const DecisionRecord& record : run.decisions) {
    const Problem& problem = problems[record.tag];
    BoundaryAdvantage b;
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

/// Of the output tokens [first, last).
double nll_between(const TextResult& text, std::int64_t first, std::int64_t last) {
  double sum = 0;
  for (std::int64_t i = first; i < last; ++i) sum += double{text.nll[static_cast<std::size_t>(i)]};
  return sum;
}

/// Runs the other way of some boundaries. One whose request could not take it stays without.
Status run_other_way(const Experiment& experiment, const RunResult& base,
                     std::span<BoundaryAdvantage> boundaries) {
  const EvalOptions& options = experiment.options();
  Turn turn{options.threshold, {}};
  std::vector<Text> texts;
  for (const BoundaryAdvantage& b : boundaries) {
    turn.at.push_back(b.number);
    const Problem& problem = experiment.problems()[b.problem];
    texts.push_back({&problem, true, static_cast<std::int64_t>(problem.solution.size())});
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
    BoundaryAdvantage& b = boundaries[record.tag];
    if (numbers[record.tag]++ != b.number) continue;
    const DecisionKind other = b.grew ? DecisionKind::compact : DecisionKind::grow;
    if (record.kind != other || record.delta != b.delta) continue;
    const auto advantage = [&](std::int64_t last) {
      const double here = nll_between(base.texts[b.problem], b.first, last);
      const double there = nll_between(run->texts[record.tag], b.first, last);
      return b.grew ? there - here : here - there;
    };
    const std::int64_t page = options.page_size;
    b.next_page = advantage(b.first + page) / static_cast<double>(page);
    b.to_end = advantage(texts[record.tag].tokens);
  }
  return {};
}

}  // namespace

Result<Json> measure_advantage(const Experiment& experiment) {
  const EvalOptions& options = experiment.options();
  const Result<RunResult> base =
      experiment.runner().run(make_setup(options, "growpage"), forced_texts(experiment.problems()));
  if (!base.ok()) return base.status();
  std::vector<BoundaryAdvantage> boundaries =
      boundaries_of(experiment.problems(), *base, options.page_size);
  std::mt19937_64 random(options.seed);
  const std::size_t wanted =
      std::min(boundaries.size(), static_cast<std::size_t>(options.boundaries));
  for (std::size_t i = 0; i < wanted; ++i) {
    std::swap(boundaries[i], boundaries[i + random() % (boundaries.size() - i)]);
  }
  boundaries.resize(wanted);
  // Texts of one length end together and leave no batch half empty.
  std::ranges::sort(boundaries, {}, [](const BoundaryAdvantage& b) { return b.first; });
  const std::size_t runs = (wanted + texts_per_run - 1) / texts_per_run;
  Status s = experiment.for_each("advantage", runs, [&](std::size_t i) {
    const std::size_t first = i * texts_per_run;
    const std::size_t count = std::min(texts_per_run, wanted - first);
    return run_other_way(experiment, *base, std::span(boundaries).subspan(first, count));
  });
  if (!s.ok()) return s;
  std::erase_if(boundaries, [](const BoundaryAdvantage& b) { return std::isnan(b.next_page); });
  return summarise(experiment, boundaries);
}

}  // namespace growpage::eval
