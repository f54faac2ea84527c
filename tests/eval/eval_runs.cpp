// SPDX-License-Identifier: Apache-2.0
// The parts on a random model: what they run has the right lengths, and their numbers are those of
// the model computed without pages.
#include <algorithm>
#include <cmath>

#include "score.hpp"
#include "trial.hpp"

using namespace growpage;        // NOLINT(google-build-using-namespace)
using namespace growpage::eval;  // NOLINT(google-build-using-namespace)
using namespace growpage::test;  // NOLINT(google-build-using-namespace)

TEST_CASE("the NLL of a forced text under full is that of the model without pages") {
  const Tiny tiny;
  const std::vector<Problem> problems = texts_of({40, 75}, false);
  const EvalOptions options = small_options();
  const Runner runner(tiny.model, options);
  const Result<RunResult> run = runner.run(make_setup(options, "full"), forced_texts(problems));
  REQUIRE(run.ok());
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Problem& p = problems[i];
    CHECK(run->texts[i].tokens == p.solution);
    REQUIRE(run->texts[i].nll.size() == p.solution.size());
    // The whole text in one pass, logits of every place that predicts a solution token.
    ContiguousMemory memory(tiny.model.config(), DType::f32);
    const runtime::RopeTables rope(tiny.model.config(), 256);
    runtime::ForwardPass forward(tiny.model, rope, {});
    std::vector<TokenId> text = p.prompt;
    text.insert(text.end(), p.solution.begin(), p.solution.end() - 1);
    std::vector<std::int64_t> positions;
    std::vector<std::int32_t> rows;
    for (std::size_t t = 0; t < text.size(); ++t) {
      positions.push_back(static_cast<std::int64_t>(t));
      if (t + 1 >= p.prompt.size()) rows.push_back(static_cast<std::int32_t>(t));
    }
    memory.begin(static_cast<std::int32_t>(text.size()));
    REQUIRE(forward.run({text, positions, rows}, memory).ok());
    for (std::size_t t = 0; t < rows.size(); ++t) {
      double sum = 0;
      const std::span<const float> logits = forward.logits(t);
      for (const float x : logits) sum += std::exp(double{x});
      const double nll = std::log(sum) - double{logits[static_cast<std::size_t>(p.solution[t])]};
      CHECK(double{run->texts[i].nll[t]} == Approx(nll).epsilon(1e-5));
    }
  }
}

TEST_CASE("the policy table runs every policy to the exact lengths") {
  const Trial trial(texts_of({60, 150, 90}, true));
  const Json table = measured(measure_policies(trial.experiment));
  REQUIRE(table["rows"].size() == 1 + 2 * 2 + 4 + 1);
  CHECK(table["differences"].size() == table["rows"].size() - 1 + 2);
  for (const Json& row : table["rows"]) {
    CAPTURE(row.dump());
    // The random model has an end-of-text token that it may draw; no text is longer than asked.
    CHECK(row["generated"].get<std::int64_t>() <= 2 * (63 + 153 + 93));
    CHECK(row["generated"].get<std::int64_t>() > 100);
    CHECK(row["fallback"] == 0);
    CHECK(row["preempt"] == 0);
    if (row["policy"] == "fixed" || row["policy"] == "zipage") {
      CHECK(row["grow"] == 0);
      CHECK(row["kv_tokens"].get<double>() <= row["budget_pages"].get<double>() * 16);
    }
    if (row["policy"] == "full") CHECK(row["compact"] == 0);
  }
}

TEST_CASE("the policy table has the rows that are asked for") {
  EvalOptions options = small_options();
  options.policies = {"fixed", "growpage"};
  const Trial trial(texts_of({60, 90}, true), options);
  const Json table = measured(measure_policies(trial.experiment));
  REQUIRE(table["rows"].size() == 2 + 1);
  CHECK(table["rows"][2]["policy"] == "growpage");
  REQUIRE(table["differences"].size() == 2 + 1);
}

TEST_CASE("fixed is compared at growpage's KV tokens only where its budgets reach them") {
  EvalOptions options = small_options();
  options.policies = {"fixed", "growpage"};
  options.threshold = -10;  // growpage keeps everything, as 12 pages do
  for (const bool reached : {false, true}) {
    options.budgets = reached ? std::vector<std::int32_t>{3, 12} : std::vector<std::int32_t>{3};
    const Trial trial(texts_of({150}, false), options);
    const Json last = measured(measure_policies(trial.experiment))["differences"].back();
    CHECK(last["policy"] == "fixed");
    CHECK(last["against"] == (reached ? "fixed at equal KV" : "fixed at nearest KV"));
    CHECK(last["interpolated"] == reached);
  }
}

TEST_CASE("texts without answers are scored by their NLL, once each") {
  const Trial trial(texts_of({50, 80}, false));
  Score score{make_setup(trial.options, "growpage"), 0, {}, {}};
  REQUIRE(run_score(trial.experiment, 2, score).ok());
  CHECK(score.run.counters.decode_tokens == 130);
  REQUIRE(score.quality.size() == 2);
  double sum = 0;
  for (const float nll : score.run.texts[1].nll) sum += double{nll};
  CHECK(score.quality[1] == Approx(-sum / 80));
}

TEST_CASE("the advantage compares each boundary with its other way") {
  const Tiny tiny;
  const std::vector<Problem> problems = texts_of({100, 140, 120, 90}, false);
  EvalOptions options = small_options();
  options.boundaries = 1000;
  const Experiment experiment(tiny.model, options, problems);
  const Json all = measured(measure_advantage(experiment));
  CHECK(all["boundaries"].get<int>() > 10);
  CHECK(all["bins"].size() == 5);
  // What keeps every slot computes what full computes: the same NLL, whatever Δ said.
  const Result<RunResult> full =
      experiment.runner().run(make_setup(options, "full"), forced_texts(problems));
  REQUIRE(full.ok());
  options.threshold = -10;  // grows at every boundary
  const Result<RunResult> grown =
      experiment.runner().run(make_setup(options, "growpage"), forced_texts(problems));
  REQUIRE(grown.ok());
  for (std::size_t i = 0; i < problems.size(); ++i) {
    CHECK(grown->texts[i].nll == full->texts[i].nll);
  }
  const Json growing = measured(measure_advantage(experiment));
  CHECK(growing["boundaries"].get<int>() > 10);
  options.threshold = 10;  // compresses at every boundary
  const Json holding = measured(measure_advantage(experiment));
  const Result<RunResult> held =
      experiment.runner().run(make_setup(options, "growpage"), forced_texts(problems));
  REQUIRE(held.ok());
  // A text's first boundary is the same one whichever way the run goes on: 32 slots, behind which
  // output token 28 is the first to be predicted.
  for (std::size_t i = 0; i < problems.size(); ++i) {
    double advantage = 0;
    for (std::size_t t = 28; t < 28 + 16; ++t) {
      advantage += (double{held->texts[i].nll[t]} - double{full->texts[i].nll[t]}) / 16;
    }
    const auto is_it = [&](const Json& point) {
      return std::abs(point[1].get<double>() - advantage) < 1e-9;
    };
    CHECK(std::ranges::count_if(growing["points"], is_it) == 1);
    CHECK(std::ranges::count_if(holding["points"], is_it) == 1);
  }
  // To the end: one compression at that boundary, and growth ever after.
  UserPolicy once;
  once.callback = [](void*, const BoundaryContext& boundary) {
    return boundary.boundary == 0 ? Decision::compact : Decision::grow;
  };
  once.demand = true;
  once.capacity.initial_pages = options.initial_pages;
  Setup setup = make_setup(options, "growpage");
  setup.policy = AnyPolicy(once);
  const Result<RunResult> compressed = experiment.runner().run(setup, forced_texts(problems));
  REQUIRE(compressed.ok());
  for (std::size_t i = 0; i < problems.size(); ++i) {
    double to_end = 0;
    for (std::size_t t = 28; t < problems[i].solution.size(); ++t) {
      to_end += double{compressed->texts[i].nll[t]} - double{full->texts[i].nll[t]};
    }
    const auto is_it = [&](const Json& point) {
      return std::abs(point[2].get<double>() - to_end) < 1e-9;
    };
    CHECK(std::ranges::count_if(growing["points"], is_it) == 1);
  }
  options.boundaries = 7;
  CHECK(measured(measure_advantage(experiment))["boundaries"] == 7);
}

TEST_CASE("budget, ablation and timeline give their rows") {
  const Trial trial(texts_of({60, 90}, true));
  const Json budget = measured(measure_budget(trial.experiment));
  CHECK(budget["requests"].size() == 2);
  CHECK(budget["passed"].size() == 2);
  const Json ablation = measured(measure_ablation(trial.experiment));
  CHECK(ablation["rows"].size() > 20);
  CHECK(ablation["rows"][0]["difference"]["value"] == 0);
  const Json timeline = measured(measure_timeline(trial.experiment));
  REQUIRE(timeline["requests"].size() == 2);
  CHECK_FALSE(timeline["requests"][0]["points"].empty());
  REQUIRE(timeline["concentration"].size() == 5);  // page ends of 94 slots
  for (const Json& row : timeline["concentration"]) {
    CHECK(0.05 <= row[1].get<double>());
    CHECK(row[1].get<double>() <= row[2].get<double>());
    CHECK(row[2].get<double>() <= row[3].get<double>());
    CHECK(row[3].get<double>() <= 1.0);
  }
}
