// SPDX-License-Identifier: Apache-2.0
// Part `signal`: whether Δ at a boundary foretells how the working set changes over the next page.
// Solutions are decoded with nothing evicted. W of a page is the mean of its steps' true working
// sets. "The change" can be read in two ways, both are given: W of the page after the boundary less
// W of the page before it, and less the long level, the true working sets smoothed with βL. The
// first one is given as a ratio of the candidates, like Δ, and as a number of slots.
//
// Δ is the working set of smoothed queries. The smoothed working sets of the same queries, βS less
// βL, are what it stands for: `ideal`. How well that foretells is what can be expected of Δ.
#include <algorithm>
#include <cmath>
#include <limits>

#include "variant.hpp"
#include "working_sets.hpp"

namespace growpage::eval {
namespace {

constexpr std::size_t most_texts_per_run = 64;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Point {
  double delta = 0;
  double ideal = 0;         // smoothed working sets where Δ has those of smoothed queries
  double change = 0;        // of the ratio, from the page before
  double change_slots = 0;  // of the working set
  double rise = 0;          // of the ratio, from the long level
  double lasting = 0;       // share of the page after that its text needs to the end
  bool decision = false;    // growpage would decide here: the initial pages are full
};

using TextPoints = std::vector<std::vector<Point>>;  // [text]

/// Of the page that begins at position `first`.
double lasting_share(const Problem& problem, std::int64_t first, std::int64_t page_size) {
  const std::int64_t place = first - static_cast<std::int64_t>(problem.prompt.size());
  const auto inside = [=](std::int64_t p) { return p >= place && p < place + page_size; };
  return static_cast<double>(std::ranges::count_if(problem.lasting, inside)) /
         static_cast<double>(page_size);
}

/// Adds the points of texts [first, first + count) to those of each variant.
Status measure_texts(const Experiment& experiment, std::span<const Variant> variants,
                     std::size_t first, std::size_t count, std::span<TextPoints> points) {
  const std::vector<Text> texts = forced_texts(experiment.problems().subspan(first, count));
  const Result<std::vector<WorkingSets>> sets = true_working_sets(experiment, texts);
  if (!sets.ok()) return sets.status();
  const std::int64_t page = experiment.options().page_size;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    const Result<RunResult> run =
        experiment.runner().run(growing(variants[v].options, true), texts);
    if (!run.ok()) return run.status();
    const SummaryOptions summary =
        variants[v].options.summary.for_page_size(static_cast<std::int32_t>(page));
    for (const DecisionRecord& record : run->decisions) {
      if (!record.measured || record.length != record.pages_before * page) continue;
      const WorkingSets& ratios = (*sets)[record.tag];
      // A text of n tokens at the boundary filled its last page with positions up to n − 1.
      const double before = page_mean(ratios, record.length - page, page);
      const double after = page_mean(ratios, record.length, page);
      if (std::isnan(before) || std::isnan(after)) continue;
      const auto slots = static_cast<double>(record.length);  // candidates of the page after
      const double change_slots = after * slots - before * (slots - static_cast<double>(page));
      const double level = smoothed(ratios, record.length, double{summary.beta_long});
      const double ideal = smoothed(ratios, record.length, double{summary.beta_short}) - level;
      const bool decision = record.pages_before >= experiment.options().initial_pages;
      points[v][first + record.tag].push_back(
          {record.delta, ideal, after - before, change_slots, after - level,
           lasting_share(*texts[record.tag].problem, record.length, page), decision});
    }
  }
  return {};
}

double rho(const std::vector<Point>& points, double Point::*a, double Point::*b) {
  std::vector<double> x, y;
  x.reserve(points.size());
  y.reserve(points.size());
  for (const Point& p : points) {
    x.push_back(p.*a);
    y.push_back(p.*b);
  }
  return spearman(x, y);
}

template <class F>
double share(const std::vector<Point>& points, F&& of) {
  if (points.empty()) return nan;
  return static_cast<double>(std::ranges::count_if(points, of)) /
         static_cast<double>(points.size());
}

/// How well `signal`, Δ or the ideal, foretells.
Json statistics_of(const TextPoints& points, const BootstrapOptions& bootstrap,
                   double Point::*signal = &Point::delta) {
  const auto rho_of = [&](double Point::*change) {
    return to_json(bootstrap_gathered(
        points, [=](const auto& p) { return rho(p, signal, change); }, bootstrap));
  };
  const auto share_of = [&](auto&& of) {
    return to_json(bootstrap_gathered(
        points, [&](const auto& p) { return share(p, of); }, bootstrap));
  };
  const auto same_sign = [&](double Point::*change) {
    return share_of([=](const Point& p) { return (p.*signal > 0) == (p.*change > 0); });
  };
  return {{"rho", rho_of(&Point::change)},
          {"sign_agreement", same_sign(&Point::change)},
          {"rho_slots", rho_of(&Point::change_slots)},
          {"rho_level", rho_of(&Point::rise)},
          {"sign_agreement_level", same_sign(&Point::rise)},
          {"rho_ideal", rho_of(&Point::ideal)},
          {"rho_lasting", rho_of(&Point::lasting)},
          {"above_zero", share_of([=](const Point& p) { return p.*signal > 0; })}};
}

}  // namespace

Result<Json> measure_signal(const Experiment& experiment) {
  const std::size_t texts = experiment.problems().size();
  std::vector<Variant> variants = demand_variants(experiment.options());
  const auto variant_texts = static_cast<std::size_t>(experiment.options().variant_texts);
  if (variant_texts == 0) variants.erase(variants.begin() + 1, variants.end());
  std::vector<TextPoints> points(variants.size(), TextPoints(texts));
  const auto threads = static_cast<std::size_t>(experiment.options().threads);
  const std::size_t texts_per_run = std::min(most_texts_per_run, (texts + threads - 1) / threads);
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
  // Δ, change of the ratio, in slots, from the long level; ideal; lasting.
  json["points"] = Json::array();
  for (const auto& text : points.front()) {
    for (const Point& p : text) {
      json["points"].push_back({p.delta, p.change, p.change_slots, p.rise, p.ideal, p.lasting});
    }
  }
  json["boundaries"] = json["points"].size();
  json["ideal"] = statistics_of(points.front(), bootstrap, &Point::ideal);
  TextPoints decisions = points.front();
  std::size_t count = 0;
  for (auto& text : decisions) {
    std::erase_if(text, [](const Point& p) { return !p.decision; });
    count += text.size();
  }
  json["decisions"] = {{"boundaries", count}};
  json["decisions"].update(statistics_of(decisions, bootstrap));
  json["decisions"]["ideal"] = statistics_of(decisions, bootstrap, &Point::ideal);
  return json;
}

}  // namespace growpage::eval
