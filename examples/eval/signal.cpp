// SPDX-License-Identifier: Apache-2.0
// Part `signal`: whether Δ at a boundary foretells how the working set changes over the next page.
// Solutions are decoded with nothing evicted. The true working set of a step is what the library's
// demand kernel finds for the step's own query, which a short summary of β = 0 is: W of a page is
// its mean over the page's steps, and the change is W of the page after the boundary less W of the
// one before. Given as the ratio of the candidates, like Δ, and as a number of slots.
#include <algorithm>
#include <cmath>
#include <limits>

#include "experiment.hpp"
#include "variant.hpp"

namespace growpage::eval {
namespace {

constexpr std::size_t texts_per_run = 64;
constexpr std::size_t variant_texts = 128;  // enough to tell variants apart
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct Point {
  double delta = 0;
  double change = 0;        // of the ratio
  double change_slots = 0;  // of the working set
  bool decision = false;    // growpage would decide here: the initial pages are full
};

/// Grows at every boundary; with `demand` Δ is measured there.
Setup growing(const EvalOptions& options, bool demand) {
  Setup setup{"grow", AnyPolicy(FullPolicy{}), options.summary, options.demand, false};
  UserPolicy policy;
  policy.callback = [](void*, const BoundaryContext&) { return Decision::grow; };
  policy.demand = demand;
  policy.capacity.initial_pages = 1;  // every boundary that has candidates, not only decisions
  policy.retention_options = options.retention;
  setup.policy = AnyPolicy(policy);
  if (!demand) setup.summary.beta_short = 0;
  return setup;
}

/// [text][position] ratio of the step's true working set; NaN where nothing was measured.
using WorkingSets = std::vector<std::vector<float>>;

Result<WorkingSets> true_working_sets(const Experiment& experiment, std::span<const Text> texts) {
  WorkingSets sets;
  for (const Text& text : texts) {
    sets.emplace_back(text.problem->prompt.size() + static_cast<std::size_t>(text.tokens), nan);
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
  const Result<RunResult> run =
      experiment.runner().run(growing(experiment.options(), false), texts, {}, measure);
  if (!run.ok()) return run.status();
  return sets;
}

/// Mean over the page that begins at position `first`. NaN when a step of it is missing.
double page_mean(const std::vector<float>& ratios, std::int64_t first, std::int64_t page_size) {
  if (first < 0 || first + page_size > static_cast<std::int64_t>(ratios.size())) return nan;
  double sum = 0;
  for (std::int64_t i = first; i < first + page_size; ++i) {
    sum += double{ratios[static_cast<std::size_t>(i)]};
  }
  return sum / static_cast<double>(page_size);
}

using TextPoints = std::vector<std::vector<Point>>;  // [text]

/// Adds the points of texts [first, first + count) to those of each variant.
Status measure_texts(const Experiment& experiment, std::span<const Variant> variants,
                     std::size_t first, std::size_t count, std::span<TextPoints> points) {
  const std::vector<Text> texts = forced_texts(experiment.problems().subspan(first, count));
  const Result<WorkingSets> sets = true_working_sets(experiment, texts);
  if (!sets.ok()) return sets.status();
  const std::int64_t page = experiment.options().page_size;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    const Result<RunResult> run =
        experiment.runner().run(growing(variants[v].options, true), texts);
    if (!run.ok()) return run.status();
    for (const DecisionRecord& record : run->decisions) {
      if (!record.measured || record.length != record.pages_before * page) continue;
      const std::vector<float>& ratios = (*sets)[record.tag];
      // A text of n tokens at the boundary filled its last page with positions up to n − 1.
      const double before = page_mean(ratios, record.length - page, page);
      const double after = page_mean(ratios, record.length, page);
      if (std::isnan(before) || std::isnan(after)) continue;
      const auto slots = static_cast<double>(record.length);  // candidates of the page after
      const double change_slots = after * slots - before * (slots - static_cast<double>(page));
      const bool decision = record.pages_before >= experiment.options().initial_pages;
      points[v][first + record.tag].push_back(
          {record.delta, after - before, change_slots, decision});
    }
  }
  return {};
}

/// A statistic of all points of the chosen texts.
template <class F>
Interval over_texts(const TextPoints& points, const BootstrapOptions& options, F&& statistic) {
  std::vector<Point> gathered;
  const auto of = [&](std::span<const std::size_t> chosen) {
    gathered.clear();
    for (const std::size_t text : chosen) {
      gathered.insert(gathered.end(), points[text].begin(), points[text].end());
    }
    return statistic(gathered);
  };
  return bootstrap(points.size(), of, options);
}

double rho(const std::vector<Point>& points, double Point::*change) {
  std::vector<double> x, y;
  x.reserve(points.size());
  y.reserve(points.size());
  for (const Point& p : points) {
    x.push_back(p.delta);
    y.push_back(p.*change);
  }
  return spearman(x, y);
}

double same_sign(const std::vector<Point>& points) {
  if (points.empty()) return double{nan};
  double same = 0;
  for (const Point& p : points) same += (p.delta > 0) == (p.change > 0) ? 1 : 0;
  return same / static_cast<double>(points.size());
}

double wider(const std::vector<Point>& points) {
  if (points.empty()) return double{nan};
  double wider = 0;
  for (const Point& p : points) wider += p.delta > 0 ? 1 : 0;
  return wider / static_cast<double>(points.size());
}

Json statistics_of(const TextPoints& points, const BootstrapOptions& bootstrap) {
  const auto rho_of = [&](double Point::*change) {
    return to_json(over_texts(points, bootstrap, [=](const auto& p) { return rho(p, change); }));
  };
  return {{"rho", rho_of(&Point::change)},
          {"sign_agreement", to_json(over_texts(points, bootstrap, same_sign))},
          {"rho_slots", rho_of(&Point::change_slots)},
          {"above_zero", to_json(over_texts(points, bootstrap, wider))}};
}

}  // namespace

Result<Json> measure_signal(const Experiment& experiment) {
  const std::size_t texts = experiment.problems().size();
  const std::vector<Variant> variants = demand_variants(experiment.options());
  std::vector<TextPoints> points(variants.size(), TextPoints(texts));
  const std::size_t runs = (texts + texts_per_run - 1) / texts_per_run;
  Status s = experiment.for_each("signal", runs, [&](std::size_t i) {
    const std::size_t first = i * texts_per_run;
    const std::size_t measured = first < variant_texts ? variants.size() : 1;
    return measure_texts(experiment, std::span(variants).first(measured), first,
                         std::min(texts_per_run, texts - first), points);
  });
  if (!s.ok()) return s;
  const BootstrapOptions& bootstrap = experiment.options().bootstrap;
  Json json = {{"texts", texts}, {"boundaries", 0}};
  json.update(statistics_of(points.front(), bootstrap));
  json["variants"] = Json::array();
  for (std::size_t v = 0; v < variants.size(); ++v) {
    Json row = {{"group", variants[v].group}, {"name", variants[v].name}};
    row.update(statistics_of(points[v], bootstrap));
    json["variants"].push_back(std::move(row));
  }
  json["points"] = Json::array();  // Δ, change of the ratio, change in slots
  for (const auto& text : points.front()) {
    for (const Point& p : text) json["points"].push_back({p.delta, p.change, p.change_slots});
  }
  json["boundaries"] = json["points"].size();
  TextPoints decisions = points.front();
  std::size_t count = 0;
  for (auto& text : decisions) {
    std::erase_if(text, [](const Point& p) { return !p.decision; });
    count += text.size();
  }
  json["decisions"] = {{"boundaries", count}};
  json["decisions"].update(statistics_of(decisions, bootstrap));
  return json;
}

}  // namespace growpage::eval
