// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

namespace growpage::replay {
namespace {

constexpr std::int64_t small_pool_pages = 512;  // of the kernels signal
const CLI::Range positive(1, 1 << 30);

/// Help shows `value` behind the flag instead of the type and range.
template <class T>
CLI::Option* add(CLI::App& app, const char* flag, T& target, const char* value, const char* what) {
  return app.add_option(flag, target, what)->option_text(value);
}

void add_workload_options(CLI::App& app, ReplayOptions& o) {
  const std::map<std::string, TraceFormat> formats{{"guess", TraceFormat::guess},
                                                   {"mooncake", TraceFormat::mooncake},
                                                   {"servegen", TraceFormat::servegen},
                                                   {"azure", TraceFormat::azure}};
  const std::map<std::string, Workload> workloads{{"mixed", Workload::mixed},
                                                  {"amc23", Workload::amc23}};
  auto* trace = add(app, "--trace", o.trace, "FILE", "Trace to replay");
  add(app, "--format", o.format, "mooncake|servegen|azure", "Of the trace [by its first line]")
      ->transform(CLI::CheckedTransformer(formats))
      ->needs(trace);
  add(app, "--workload", o.workload, "mixed|amc23",
      "Generated workload of the paper: AMC23, AIME24 and GSM8K mixed, or AMC23 [mixed]")
      ->transform(CLI::CheckedTransformer(workloads))
      ->excludes(trace);
  add(app, "--requests", o.requests, "N", "Only the first N requests [all]")->check(positive);
  add(app, "--scale", o.scale, "X",
      "Multiplies all lengths [1; 1/16 for a generated workload on kernels]")
      ->check(CLI::Range(1e-6, 1e3));
  add(app, "--rate-scale", o.rate_scale, "X", "Arrivals come X times as fast [1]")
      ->check(CLI::Range(1e-6, 1e6));
  add(app, "--seed", o.seed, "N", "Of the workload, the signal and policy random [1]");
}

void add_policy_options(CLI::App& app, ReplayOptions& o) {
  std::vector<std::string> names = all_policies();
  names.emplace_back("all");
  add(app, "--policy", o.policies, "NAME[,NAME]",
      "full, fixed, zipage, growpage, random, inverse, shrink or all [all]")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  add(app, "--budget", o.budget, "TOKENS",
      "KV tokens a request holds under fixed and zipage [16 pages]")
      ->check(positive);
  add(app, "--threshold", o.threshold, "X", "growpage grows when demand rises by more [0]");
  add(app, "--initial-pages", o.initial_pages, "N", "Pages before a request's first decision [12]")
      ->check(positive);
}

void add_machine_options(CLI::App& app, ReplayOptions& o) {
  const std::map<std::string, SignalKind> signals{{"process", SignalKind::process},
                                                  {"kernels", SignalKind::kernels}};
  const std::map<std::string, Preemption> preemptions{{"swap", Preemption::swap},
                                                      {"recompute", Preemption::recompute}};
  add(app, "--signal", o.signal, "process|kernels",
      "Where demand comes from: a stochastic process, no tensors, the clock of an A100; or real "
      "CPU "
      "kernels over made-up tensors [process]")
      ->transform(CLI::CheckedTransformer(signals));
  auto* pages = add(app, "--pages", o.pages, "N", "Pages of the pool [those of an A100; 512]")
                    ->check(positive);
  app.add_option_function<double>(
         "--memory-gb", [&o](double gib) { o.costs.memory_bytes = gib * (1 << 30); },
         "Memory of the simulated device in GiB, for the process signal's pool [80]")
      ->option_text("GIB")
      ->check(CLI::Range(1.0, 1e6))
      ->excludes(pages);
  add(app, "--host-pages", o.host_pages, "N", "Pages of swap space [as the pool]")->check(positive);
  add(app, "--page-size", o.shape.page_size, "TOKENS", "Of a page [256; kernels 32]")
      ->check(positive);
  add(app, "--layers", o.shape.layers, "N", "Of the model [36; kernels 2]")->check(positive);
  add(app, "--query-heads", o.shape.query_heads, "N", "[32; kernels 4]")->check(positive);
  add(app, "--kv-heads", o.shape.kv_heads, "N", "[8; kernels 2]")->check(positive);
  add(app, "--head-dim", o.shape.head_dim, "N", "[128; kernels 64]")->check(positive);
  add(app, "--max-running", o.max_running, "N", "Requests in the batch [512]")
      ->check(CLI::Range(1, 1 << 16));
  add(app, "--max-batched-tokens", o.max_batched_tokens, "N", "Tokens of a forward pass [8192]")
      ->check(positive);
  add(app, "--preemption", o.preemption, "recompute|swap",
      "How preempted requests come back [recompute]")
      ->transform(CLI::CheckedTransformer(preemptions));
  app.add_flag("--overcommit", o.overcommit,
               "Admit without setting initial pages aside: more fallbacks and preemptions");
  add(app, "--fence-delay", o.fence_delay, "STEPS", "Until a compaction or swap is done [1]")
      ->check(CLI::Range(0, 1000));
}

void add_clock_options(CLI::App& app, StepCosts& costs) {
  const auto constant = [&](const char* flag, double& value, double unit, const char* what) {
    app.add_option_function<double>(
           flag, [&value, unit](double given) { value = given * unit; }, what)
        ->option_text("X")
        ->check(CLI::Range(0.0, 1e9))
        ->group("Simulated clock");
  };
  constant("--bandwidth-gbs", costs.bandwidth, 1e9, "Effective memory bandwidth, GB/s [1500]");
  constant("--tflops", costs.flops, 1e12, "Effective compute, TFLOP/s [187]");
  constant("--overhead-ms", costs.step_overhead_s, 1e-3, "Fixed cost of a step, ms [4]");
  constant("--weights-gb", costs.weight_bytes, 1e9, "Weights read by a step, GB [16.4]");
  constant("--host-link-gbs", costs.host_link, 1e9, "Swap bandwidth, GB/s [25]");
  constant("--exposed", costs.exposed, 1, "Share of boundary events that delays a step [0.017]");
}

void add_output_options(CLI::App& app, ReplayOptions& o) {
  add(app, "--check", o.check_every, "[N]",
      "Check the invariants of cache and scheduler every N steps [without N: every step]")
      ->expected(0, 1)
      ->default_str("1")
      ->check(positive);
  add(app, "--json", o.json, "FILE", "Results as JSON; - for standard output");
  add(app, "--decisions", o.decisions, "FILE",
      "Decision log as JSONL; with several policies FILE.<policy>");
  add(app, "--timeline", o.timeline, "FILE", "What bench/plot.py draws over time, as JSON");
  app.add_flag("--quiet", o.quiet, "No table and no progress");
  app.add_flag("--demo", o.demo, "A short replay on both signals under every policy, explained");
}

}  // namespace

const std::vector<std::string>& all_policies() {
  static const std::vector<std::string> names{"full",   "fixed",   "zipage", "growpage",
                                              "random", "inverse", "shrink"};
  return names;
}

void fill_defaults(ReplayOptions& o) {
  const bool process = o.signal == SignalKind::process;
  const CacheShape model =
      process ? CacheShape{36, 32, 8, 128, 0, 256} : CacheShape{2, 4, 2, 64, 0, 32};
  const auto fill = [](std::int32_t& field, std::int32_t value) {
    if (field == 0) field = value;
  };
  fill(o.shape.layers, model.layers);
  fill(o.shape.query_heads, model.query_heads);
  fill(o.shape.kv_heads, model.kv_heads);
  fill(o.shape.head_dim, model.head_dim);
  fill(o.shape.page_size, model.page_size);
  if (o.scale == 0) o.scale = process || !o.trace.empty() ? 1.0 : 1.0 / 16;
  if (o.budget == 0) o.budget = 16 * o.shape.page_size;
  if (o.pages == 0) {
    o.pages = process ? pool_pages(o.costs, o.shape, o.max_running) : small_pool_pages;
  }
  if (o.host_pages == 0) o.host_pages = o.pages;
  const bool all = o.policies.empty() || std::ranges::count(o.policies, "all") > 0;
  if (all) o.policies = all_policies();
}

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  ReplayOptions& o = parsed.options;
  CLI::App app{
      "Replays a workload through growpage's scheduler and paged cache under one policy or all, "
      "and\n"
      "checks that every request ends with its exact output length and no page is lost."};
  add_workload_options(app, o);
  add_policy_options(app, o);
  add_machine_options(app, o);
  add_clock_options(app, o.costs);
  add_output_options(app, o);
  try {
    app.parse(argc, argv);
    fill_defaults(o);
    if (o.pages < 1) throw CLI::ValidationError("--memory-gb", "no page fits beside the weights");
  } catch (const CLI::ParseError& error) {
    parsed.done = true;
    parsed.code = app.exit(error) == 0 ? 0 : 2;
  }
  return parsed;
}

}  // namespace growpage::replay
