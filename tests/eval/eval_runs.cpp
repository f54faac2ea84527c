// SPDX-License-Identifier: Apache-2.0
// The parts on a random model: what they run has the right lengths, and their numbers are those of
// the model computed without pages.
#include <algorithm>
#include <cmath>

#include "experiment.hpp"
#include "score.hpp"
#include "serving.hpp"

using namespace growpage;        // NOLINT(google-build-using-namespace)
using namespace growpage::eval;  // NOLINT(google-build-using-namespace)
using namespace growpage::test;  // NOLINT(google-build-using-namespace)

namespace {

struct Tiny {
  Folder folder{"eval"};
  runtime::Model model;
  Tiny() : model(write_and_load(folder)) {}

 private:
  static runtime::Model write_and_load(const Folder& to) {
    TinyCheckpoint tiny = tiny_checkpoint("qwen3");
    write_checkpoint(to, tiny, DType::f32);
    return load(to);
  }
};

std::vector<Problem> texts_of(std::initializer_list<std::size_t> lengths, bool answers) {
  std::vector<Problem> problems;
  for (const std::size_t length : lengths) {
    Problem p;
    p.tag = problems.size();
    p.prompt = random_prompt(5, static_cast<std::uint32_t>(length));
    p.solution = random_prompt(length, static_cast<std::uint32_t>(length + 1));
    if (answers) p.answer = {1};
    p.answer_marker = 2;
    p.max_new_tokens = static_cast<std::int64_t>(length) + 3;
    problems.push_back(std::move(p));
  }
  return problems;
}

EvalOptions small_options() {
  EvalOptions options;
  options.bootstrap.resamples = 50;
  options.initial_pages = 2;
  options.budgets = {3, 5};
  options.sufficient = {3, 12};
  options.threads = 2;
  options.copies = 2;
  return options;
}

/// A random model on problems of its own.
struct Trial {
  explicit Trial(std::vector<Problem> texts, const EvalOptions& with = small_options())
      : problems(std::move(texts)), options(with) {}
  Tiny tiny;
  std::vector<Problem> problems;
  EvalOptions options;
  Experiment experiment{tiny.model, options, problems};
};

Json measured(const Result<Json>& result) {
  INFO(result.status().message());
  REQUIRE(result.ok());
  return *result;
}

}  // namespace

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

TEST_CASE("the signal has a point for every boundary with a whole page on both sides") {
  EvalOptions options = small_options();
  options.initial_pages = 4;
  const Trial trial(texts_of({60, 107, 108}, false), options);
  const Json signal = measured(measure_signal(trial.experiment));
  // Tokens with K and V: 4 + length. Boundaries from 32 slots on, at every 16, with 16 tokens more:
  // 64 tokens: 32, 48; 111: 32 to 80; 112: 32 to 96.
  CHECK(signal["boundaries"] == 2 + 4 + 5);
  CHECK(signal["decisions"]["boundaries"] == 0 + 2 + 3);  // of those, from 64 slots on
  for (const Json& point : signal["points"]) {
    CHECK(std::abs(point[0].get<double>()) < 1);
    CHECK(std::abs(point[1].get<double>()) < 1);
  }
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
