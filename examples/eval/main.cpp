// SPDX-License-Identifier: Apache-2.0
// growpage-eval: see docs/evaluation.md.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>

#include "claims.hpp"
#include "experiment.hpp"
#include "growpage/version.hpp"
#include "report.hpp"

namespace {

using namespace growpage::eval;  // NOLINT(google-build-using-namespace)
using growpage::Result;
using growpage::Status;

constexpr int exit_failed = 1;     // a run could not go on, or a claim does not hold
constexpr int exit_bad_input = 2;  // flags, the model, the problems, a results file

struct Part {
  const char* name;
  Result<Json> (*measure)(const Experiment&);
  bool needs_answers;
};
constexpr Part parts[] = {
    {"signal", measure_signal, false},     {"advantage", measure_advantage, false},
    {"table", measure_policies, false},    {"budget", measure_budget, true},
    {"ablation", measure_ablation, false}, {"timeline", measure_timeline, false},
};

int fail(const Status& status, int code) {
  fmt::print(stderr, "growpage-eval: {}\n", status.message());
  return code;
}

Result<std::vector<Problem>> load_problems(const EvalOptions& options) {
  const std::string path =
      options.problems.empty() ? options.model + "/problems.jsonl" : options.problems;
  std::ifstream in(path);
  if (!in) return Status::invalid("--problems", path, "a file that can be read");
  Result<std::vector<Problem>> problems = read_problems(in);
  const auto limit = static_cast<std::size_t>(options.limit);
  if (problems.ok() && limit > 0 && problems->size() > limit) problems->resize(limit);
  return problems;
}

Json header(const Experiment& experiment) {
  const EvalOptions& o = experiment.options();
  return {{"growpage_version", fmt::format("{}.{}.{}", GROWPAGE_VERSION_MAJOR,
                                           GROWPAGE_VERSION_MINOR, GROWPAGE_VERSION_PATCH)},
          {"quality", experiment.has_answers() ? "pass@1" : "nll"},
          {"parameters", experiment.runner().model().parameters()},
          {"problems", experiment.problems().size()},
          {"copies", o.copies},
          {"temperature", o.temperature},
          {"seed", o.seed},
          {"page_size", o.page_size},
          {"pool_pages", o.pages > 0 ? Json(o.pages) : Json("enough")},
          {"max_running", o.max_running},
          {"initial_pages", o.initial_pages},
          {"threshold", o.threshold},
          {"beta_short", o.summary.beta_short},
          {"beta_long", o.summary.for_page_size(o.page_size).beta_long}};
}

Result<Json> run_parts(const Experiment& experiment) {
  using Clock = std::chrono::steady_clock;
  Json results = header(experiment);
  const auto start = Clock::now();
  const auto seconds = [start] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  for (const Part& part : parts) {
    if (!experiment.options().wants(part.name)) continue;
    if (part.needs_answers && !experiment.has_answers()) {
      fmt::print(stderr, "{}: left out, these problems have no answers\n", part.name);
      continue;
    }
    const double before = seconds();
    const std::clock_t processor = std::clock();
    Result<Json> measured = part.measure(experiment);
    if (!measured.ok()) return measured.status();
    results[part.name] = std::move(*measured);
    fmt::print(stderr, "{}: {:.1f} s, {:.1f} s of processor time\n", part.name, seconds() - before,
               static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC);
  }
  results["seconds"] = seconds();
  return results;
}

/// Prints the tables and the claims; the exit code.
int report(const Json& results, bool check) {
  try {
    const std::vector<Claim> claims = judge(results);
    fmt::print("{}", to_markdown(results));
    if (!claims.empty()) fmt::print("{}", to_markdown(claims));
    if (!check || all_held(claims)) return 0;
    fmt::print(stderr, "growpage-eval: {}\n",
               claims.empty() ? "no claim to check in these parts" : "a claim does not hold");
    return exit_failed;
  } catch (const nlohmann::json::exception& error) {
    return fail(Status::invalid("results", error.what(), "what --output writes"), exit_bad_input);
  }
}

int report_file(const EvalOptions& options) {
  std::ifstream in(options.results);
  const Json results = Json::parse(in, nullptr, false);
  if (results.is_discarded()) {
    return fail(Status::invalid("--results", options.results, "a file of JSON"), exit_bad_input);
  }
  return report(results, options.check);
}

}  // namespace

int main(int argc, char** argv) {
  const ParsedOptions parsed = parse_options(argc, argv);
  if (parsed.done) return parsed.code;
  const EvalOptions& options = parsed.options;
  if (!options.results.empty()) return report_file(options);
  const Result<growpage::runtime::Model> model = growpage::runtime::Model::load(options.model);
  if (!model.ok()) return fail(model.status(), exit_bad_input);
  const Result<std::vector<Problem>> problems = load_problems(options);
  if (!problems.ok()) return fail(problems.status(), exit_bad_input);
  std::ofstream out;
  if (!options.output.empty()) {
    out.open(options.output);
    if (!out) {
      return fail(Status::invalid("--output", options.output, "a file that can be written"),
                  exit_bad_input);
    }
  }
  const Result<Json> results = run_parts(Experiment(*model, options, *problems));
  if (!results.ok()) return fail(results.status(), exit_failed);
  if (out.is_open()) out << results->dump(1) << '\n';
  return report(*results, options.check);
}
