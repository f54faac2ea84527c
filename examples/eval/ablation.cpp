// SPDX-License-Identifier: Apache-2.0
// Part `ablation`: growpage with one option changed at a time.
#include "score.hpp"
#include "variant.hpp"

namespace growpage::eval {

Result<Json> measure_ablation(const Experiment& experiment) {
  std::vector<Variant> variants = demand_variants(experiment.options());
  for (Variant& v : retention_variants(experiment.options())) variants.push_back(std::move(v));
  std::vector<Score> scores;
  scores.reserve(variants.size());
  for (const Variant& v : variants) {
    scores.push_back({make_setup(v.options, "growpage"), 0, {}, {}});
    scores.back().setup.name = v.name;
    scores.back().setup.prefix_caching = v.shared_prompts;
  }
  Status s = experiment.for_each("ablation", scores.size(), [&](std::size_t i) {
    return run_score(experiment, experiment.options().ablation_copies, scores[i]);
  });
  if (!s.ok()) return s;
  Json rows = Json::array();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    Json row = {{"group", variants[i].group}};
    row.update(to_json(experiment, scores[i]));
    row["difference"] =
        to_json(quality_difference(experiment, scores[i].quality, scores.front().quality));
    rows.push_back(std::move(row));
  }
  return Json{{"rows", std::move(rows)}};
}

}  // namespace growpage::eval
