// SPDX-License-Identifier: Apache-2.0
#include "working_sets.hpp"

#include <cmath>
#include <limits>

namespace growpage::eval {

Setup growing(const EvalOptions& options, bool demand) {
  Setup setup{"grow", AnyPolicy(FullPolicy{}), options.summary, options.demand, false};
  UserPolicy policy;
  policy.callback = [](void*, const BoundaryContext&) { return Decision::grow; };
  policy.demand = demand;
  policy.capacity.initial_pages = 1;  // every boundary that has candidates, not only decisions
  policy.retention_options = options.retention;
  setup.policy = AnyPolicy(policy);
  return setup;
}

Result<std::vector<WorkingSets>> true_working_sets(const Experiment& experiment,
                                                   std::span<const Text> texts) {
  std::vector<WorkingSets> sets;
  for (const Text& text : texts) {
    sets.emplace_back(text.problem->prompt.size() + static_cast<std::size_t>(text.tokens),
                      std::numeric_limits<float>::quiet_NaN());
  }
  const auto measure = [&](runtime::Engine& engine, const StepPlan& plan) -> Status {
    for (const DecodeItem& item : plan.decodes) {
      Demand demand;
      Status s = engine.cache().measure_demand(item.sequence, item.summary, item.position, demand);
      if (!s.ok()) return s;
      if (demand.count == 0) continue;
      sets[item.tag][static_cast<std::size_t>(item.position)] =
          static_cast<float>(demand.short_ratio());
    }
    return {};
  };
  Setup setup = growing(experiment.options(), false);
  setup.summary.beta_short = 0;  // the step's own query
  const Result<RunResult> run = experiment.runner().run(setup, texts, {}, measure);
  if (!run.ok()) return run.status();
  return sets;
}

double page_mean(const WorkingSets& sets, std::int64_t first, std::int64_t page_size) {
  if (first < 0 || first + page_size > static_cast<std::int64_t>(sets.size())) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  double sum = 0;
  for (std::int64_t i = first; i < first + page_size; ++i) {
    sum += double{sets[static_cast<std::size_t>(i)]};
  }
  return sum / static_cast<double>(page_size);
}

double smoothed(const WorkingSets& sets, std::int64_t end, double beta) {
  double value = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t i = 0; i < end; ++i) {
    const double set = double{sets[static_cast<std::size_t>(i)]};
    if (std::isnan(set)) continue;
    value = std::isnan(value) ? set : beta * value + (1 - beta) * set;
  }
  return value;
}

}  // namespace growpage::eval
