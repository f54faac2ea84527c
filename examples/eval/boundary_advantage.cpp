// SPDX-License-Identifier: Apache-2.0
#include "boundary_advantage.hpp"

#include <algorithm>
#include <utility>

namespace growpage::eval {
namespace {

using Boundaries = std::vector<BoundaryAdvantage>;

/// Bootstrap over problems of a statistic of the chosen boundaries.
template <class F>
Interval over_problems(const Experiment& experiment, const Boundaries& boundaries, F&& statistic) {
  std::vector<std::vector<std::size_t>> of_problem(experiment.problems().size());
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    of_problem[boundaries[i].problem].push_back(i);
  }
  std::erase_if(of_problem, [](const auto& list) { return list.empty(); });
  return bootstrap_gathered(of_problem, statistic, experiment.options().bootstrap);
}

using Chosen = std::vector<std::size_t>;

/// Top bin of Δ less bottom bin, and the correlation with Δ.
Json trend(const Experiment& experiment, const Boundaries& boundaries,
           const std::vector<std::size_t>& bin_of, double BoundaryAdvantage::*advantage) {
  const auto mean_of_bin = [&](const Chosen& chosen, std::size_t bin) {
    std::vector<double> values;
    for (const std::size_t i : chosen) {
      if (bin_of[i] == bin) values.push_back(boundaries[i].*advantage);
    }
    return mean(values);
  };
  const auto bins = static_cast<std::size_t>(experiment.options().bins);
  Json json = {{"bins", Json::array()}};
  for (std::size_t bin = 0; bin < bins; ++bin) {
    json["bins"].push_back(to_json(over_problems(
        experiment, boundaries, [&](const Chosen& c) { return mean_of_bin(c, bin); })));
  }
  json["top_less_bottom"] =
      to_json(over_problems(experiment, boundaries, [&](const Chosen& chosen) {
        return mean_of_bin(chosen, bins - 1) - mean_of_bin(chosen, 0);
      }));
  json["rho"] = to_json(over_problems(experiment, boundaries, [&](const Chosen& chosen) {
    std::vector<double> x, y;
    x.reserve(chosen.size());
    y.reserve(chosen.size());
    for (const std::size_t i : chosen) {
      x.push_back(boundaries[i].delta);
      y.push_back(boundaries[i].*advantage);
    }
    return spearman(x, y);
  }));
  return json;
}

}  // namespace

Json summarise(const Experiment& experiment, const Boundaries& boundaries) {
  const auto bins = static_cast<std::size_t>(experiment.options().bins);
  std::vector<double> deltas;
  deltas.reserve(boundaries.size());
  for (const BoundaryAdvantage& b : boundaries) deltas.push_back(b.delta);
  const std::vector<std::size_t> bin_of = quantile_bins(deltas, bins);
  const Json page = trend(experiment, boundaries, bin_of, &BoundaryAdvantage::next_page);
  const Json to_end = trend(experiment, boundaries, bin_of, &BoundaryAdvantage::to_end);
  Json json = {{"boundaries", boundaries.size()},
               {"bins", Json::array()},
               {"top_less_bottom", page.at("top_less_bottom")},
               {"rho", page.at("rho")},
               {"top_less_bottom_to_end", to_end.at("top_less_bottom")},
               {"rho_to_end", to_end.at("rho")}};
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
    json["bins"].push_back({{"delta_low", low},
                            {"delta_high", high},
                            {"boundaries", count},
                            {"advantage", page["bins"][bin]},
                            {"advantage_to_end", to_end["bins"][bin]}});
  }
  json["points"] = Json::array();  // Δ, advantage on the next page, to the end
  for (const BoundaryAdvantage& b : boundaries)
    json["points"].push_back({b.delta, b.next_page, b.to_end});
  return json;
}

}  // namespace growpage::eval
