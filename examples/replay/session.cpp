// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "progress.hpp"
#include "report.hpp"
#include "run.hpp"

namespace growpage::replay {
namespace {

/// Writes `text` to a file, or to standard output for "-". False with a message when it cannot.
bool write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return true;
  }
  std::ofstream out(path);
  out << text;
  out.close();
  if (out) return true;
  fmt::print(stderr, "{}: cannot be written\n", path);
  return false;
}

/// One policy's run, with the files that are written while it runs.
RunResult run_one(const ReplayOptions& options, const Trace& workload, const std::string& policy,
                  Timeline* timeline) {
  RunHooks hooks;
  hooks.timeline = timeline;
  Progress progress(policy, totals(workload.requests).output_tokens, !options.quiet);
  hooks.on_progress = [&](std::int64_t tokens) { progress.update(tokens); };
  if (options.decisions.empty()) return run_policy(options, workload.requests, policy, hooks);

  const bool several = options.policies.size() > 1;
  const std::string path = several ? options.decisions + "." + policy : options.decisions;
  std::ofstream log(path);
  std::string line;
  hooks.on_decision = [&](const DecisionRecord& record) {
    line.clear();
    append_jsonl(line, record);
    log << line;
  };
  RunResult result = run_policy(options, workload.requests, policy, hooks);
  log.close();
  if (!log && result.failure.empty()) result.failure = path + ": cannot be written";
  return result;
}

}  // namespace

int run_session(const ReplayOptions& options) {
  const Trace workload = make_workload(options);
  if (workload.error) {
    fmt::print(stderr, "{}\n", workload.error->message());
    return exit_bad_input;
  }
  // The table goes out of the way of JSON on standard output.
  std::FILE* out = options.json == "-" ? stderr : stdout;
  if (!options.quiet) fmt::print(out, "{}\n", describe(options, workload));

  std::vector<RunResult> results;
  std::vector<Timeline> timelines;
  for (const std::string& policy : options.policies) {
    Timeline timeline(workload.requests);
    results.push_back(
        run_one(options, workload, policy, options.timeline.empty() ? nullptr : &timeline));
    if (!options.timeline.empty()) timelines.push_back(std::move(timeline));
  }

  const std::span<const PaperRow> paper = comparable_rows(options);
  if (!options.quiet) fmt::print(out, "{}", table(results, paper));
  bool good = true;
  for (const RunResult& result : results) {
    if (result.failure.empty()) continue;
    good = false;
    if (options.quiet) fmt::print(stderr, "{}: {}\n", result.policy, result.failure);
  }
  if (!options.json.empty()) {
    good = write_file(options.json, to_json(options, workload, results, paper)) && good;
  }
  if (!options.timeline.empty()) {
    good = write_file(options.timeline, timelines_json(options, results, timelines)) && good;
  }
  if (good && !options.quiet) {
    fmt::print(out,
               "\nVerified: every request ended once with its exact output length, and all {} "
               "pages came back.\n",
               options.pages);
  }
  return good ? exit_good : exit_failed;
}

}  // namespace growpage::replay
