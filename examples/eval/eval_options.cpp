// SPDX-License-Identifier: Apache-2.0
#include "eval_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

namespace growpage::eval {
namespace {

const CLI::Range positive(1, 1 << 30);
const CLI::Range probability(0.0, 1.0);

/// Help shows `value` behind the flag instead of the type and range.
template <class T>
CLI::Option* add(CLI::App& app, const char* flag, T& target, const char* value, const char* what) {
  return app.add_option(flag, target, what)->option_text(value);
}

void add_run_options(CLI::App& app, EvalOptions& o) {
  auto* model = add(app, "--model", o.model, "FOLDER", "config.json, safetensors, problems.jsonl");
  add(app, "--problems", o.problems, "FILE", "Problems as JSONL [problems.jsonl of the model]");
  add(app, "--part", o.parts, "NAME,...",
      "signal, advantage, table, budget, ablation, timeline or all [all]")
      ->delimiter(',')
      ->check(
          CLI::IsMember({"all", "signal", "advantage", "table", "budget", "ablation", "timeline"}));
  add(app, "--output", o.output, "FILE", "All results as JSON");
  add(app, "--results", o.results, "FILE", "Run nothing: read results written by --output")
      ->excludes(model);
  app.add_flag("--check", o.check, "Fail when a claim does not hold");
  app.add_flag("--quick", o.quick, "A small slice: few problems, greedy");
  add(app, "--threads", o.threads, "N", "Runs at once [1]")->check(CLI::Range(1, 1024));
  add(app, "--limit", o.limit, "N", "Problems taken, from the first [all]")->check(positive);
  add(app, "--copies", o.copies, "N", "Generations of a problem, draws differ [3]")
      ->check(positive);
  add(app, "--seed", o.seed, "N", "Of sampling, policy random and boundaries chosen [1]");
  add(app, "--temperature", o.temperature, "X", "Of sampling, 0 = greedy [0.6]");
  add(app, "--top-p", o.top_p, "X", "Nucleus sampling [1]");
  add(app, "--resamples", o.bootstrap.resamples, "N", "Of the bootstrap [1000]")->check(positive);
}

void add_engine_options(CLI::App& app, EvalOptions& o) {
  const std::map<std::string, DType> dtypes{
      {"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}};
  add(app, "--page-size", o.page_size, "TOKENS", "Of a page, a power of two from 16 [16]")
      ->check(positive);
  add(app, "--pages", o.pages, "N", "Of the pool [enough for all that runs]")->check(positive);
  add(app, "--max-running", o.max_running, "N", "Requests in the batch [64]")->check(positive);
  add(app, "--kv-dtype", o.kv_dtype, "f32|f16|bf16", "Of K and V in the cache [f32]")
      ->transform(CLI::CheckedTransformer(dtypes));
  app.add_flag("--overcommit", o.overcommit, "Admit without setting initial pages aside");
}

void add_policy_options(CLI::App& app, EvalOptions& o) {
  const std::map<std::string, DemandMetric> metrics{{"top-p", DemandMetric::top_p},
                                                    {"entropy", DemandMetric::entropy}};
  const std::map<std::string, CompactionStrategy> strategies{
      {"fill-holes", CompactionStrategy::fill_holes}, {"in-order", CompactionStrategy::in_order}};
  const std::map<std::string, ScoreKind> scores{{"summaries", ScoreKind::summaries},
                                                {"window", ScoreKind::window}};
  const std::map<std::string, SharedPages> shared{{"keep", SharedPages::keep},
                                                  {"copy", SharedPages::copy}};
  add(app, "--policies", o.policies, "NAME,...", "Rows of table beside growpage [all]")
      ->delimiter(',')
      ->check(CLI::IsMember(EvalOptions().policies));
  add(app, "--initial-pages", o.initial_pages, "N", "Pages before the first decision [12]")
      ->check(positive);
  add(app, "--budgets", o.budgets, "N,...", "Pages of fixed and zipage [8,12,16,20]")
      ->delimiter(',')
      ->check(CLI::Range(2, 1 << 20));
  add(app, "--threshold", o.threshold, "X", "tau of growpage [0]");
  add(app, "--random-compact", o.random_compact, "X", "Probability of random to compact [0.7]")
      ->check(probability);
  add(app, "--shrink-min-pages", o.shrink_min_pages, "N", "Shrink never goes below [2]")
      ->check(positive);
  add(app, "--beta-short", o.summary.beta_short, "X", "Of the short query summary [0.9]");
  add(app, "--beta-long", o.summary.beta_long, "X", "Of the long one [0: 1 - 0.256 / page size]");
  add(app, "--working-set", o.demand.p, "X", "p: attention mass of a working set [0.99]");
  add(app, "--metric", o.demand.metric, "top-p|entropy", "What measures demand [top-p]")
      ->transform(CLI::CheckedTransformer(metrics));
  app.add_flag_callback(
      "--per-head", [&o] { o.demand.group = GroupReduction::per_query_head; },
      "One working set per query head");
  RetentionOptions& r = o.retention;
  add(app, "--recent", r.recent, "N", "Newest slots always kept [16]");
  add(app, "--local-per-256", r.local_per_256, "N", "Best slots of a page kept [64]");
  add(app, "--sinks", r.sinks, "N", "First slots always kept [0]");
  app.add_flag("--protect-prompt", r.protect_prompt, "Keep every prompt token");
  add(app, "--score", r.score, "summaries|window", "What ranks slots [summaries]")
      ->transform(CLI::CheckedTransformer(scores));
  add(app, "--global-decay", r.global_decay, "X", "Of old scores, 0 = they are forgotten [0]");
  add(app, "--max-pool", r.max_pool, "N", "Odd width along slots, 0 = none [0]");
  add(app, "--strategy", r.strategy, "fill-holes|in-order", "Compaction [fill-holes]")
      ->transform(CLI::CheckedTransformer(strategies));
  add(app, "--shared", r.shared, "keep|copy", "Pages that others read [keep]")
      ->transform(CLI::CheckedTransformer(shared));
}

void add_part_options(CLI::App& app, EvalOptions& o) {
  add(app, "--variant-texts", o.variant_texts, "N", "Texts signal tries other options on [128]")
      ->check(CLI::NonNegativeNumber);
  add(app, "--boundaries", o.boundaries, "N", "Sampled by advantage [1500]")->check(positive);
  add(app, "--bins", o.bins, "N", "Of delta in advantage [5]")->check(CLI::Range(2, 100));
  add(app, "--sufficient", o.sufficient, "N,...", "Budgets tried by budget, in pages")
      ->delimiter(',')
      ->check(CLI::Range(2, 1 << 20));
  add(app, "--ablation-copies", o.ablation_copies, "N", "Generations of a problem [1]")
      ->check(positive);
  add(app, "--timelines", o.timelines, "N", "Requests shown over time [4]")->check(positive);
}

/// What --quick takes where the command line says nothing itself.
void make_quick(const CLI::App& app, EvalOptions& o) {
  const auto set = [&app](const char* flag, auto& target, auto value) {
    if (app.count(flag) == 0) target = value;
  };
  set("--limit", o.limit, 16);
  set("--copies", o.copies, 1);
  set("--temperature", o.temperature, 0);
  set("--resamples", o.bootstrap.resamples, 200);
  set("--boundaries", o.boundaries, 60);
  set("--sufficient", o.sufficient, std::vector<std::int32_t>{4, 8, 16, 64});
}

}  // namespace

bool EvalOptions::wants(const char* part) const {
  return std::ranges::any_of(parts, [part](const auto& p) { return p == "all" || p == part; });
}

bool EvalOptions::lists(std::string_view policy) const {
  return std::ranges::find(policies, policy) != policies.end();
}

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  EvalOptions& o = parsed.options;
  CLI::App app{"Measures what capacity policies do to a model's answers."};
  add_run_options(app, o);
  add_engine_options(app, o);
  add_policy_options(app, o);
  add_part_options(app, o);
  try {
    app.parse(argc, argv);
    if (o.model.empty() && o.results.empty()) {
      throw CLI::ValidationError("--model", "give a model, or --results");
    }
  } catch (const CLI::ParseError& error) {
    parsed.done = true;
    parsed.code = app.exit(error) == 0 ? 0 : 2;
  }
  if (o.quick) make_quick(app, o);
  if (!o.lists("growpage")) o.policies.emplace_back("growpage");
  std::ranges::sort(o.budgets);
  std::ranges::sort(o.sufficient);
  return parsed;
}

}  // namespace growpage::eval
