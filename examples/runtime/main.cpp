// SPDX-License-Identifier: Apache-2.0
// growpage-run: see docs/runtime.md.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>

#include "options.hpp"
#include "progress.hpp"
#include "request_file.hpp"

namespace {

using namespace growpage::runtime;  // NOLINT(google-build-using-namespace)
using growpage::Result;
using growpage::Status;

constexpr int exit_failed = 1;     // the engine could not go on
constexpr int exit_bad_input = 2;  // flags, the model, a request
constexpr std::int64_t decision_capacity = 1 << 16;

/// Where results go: a file, standard output for "-", nowhere for "".
class Output {
 public:
  explicit Output(const std::string& path) : path_(path) {
    if (wanted() && path != "-") file_.open(path, std::ios::binary);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool wanted() const noexcept { return !path_.empty(); }
  [[nodiscard]] bool good() const { return !wanted() || path_ == "-" || file_.is_open(); }
  [[nodiscard]] std::ostream& stream() { return path_ == "-" ? std::cout : file_; }

 private:
  std::string path_;
  std::ofstream file_;
};

Result<std::vector<GenerationRequest>> requests_of(const RunOptions& options) {
  if (options.requests == "-") return read_requests(std::cin, options.defaults);
  if (!options.requests.empty()) {
    std::ifstream in(options.requests);
    if (!in) return Status::invalid("--requests", options.requests, "a file that can be read");
    return read_requests(in, options.defaults);
  }
  std::vector<GenerationRequest> requests;
  for (const std::string& prompt : options.prompts) {
    Result<std::vector<growpage::TokenId>> tokens = parse_tokens(prompt);
    if (!tokens.ok()) return tokens.status();
    GenerationRequest request = options.defaults;
    request.tag = requests.size();
    request.prompt = std::move(*tokens);
    requests.push_back(std::move(request));
  }
  return requests;
}

/// Keeps the logits of requests that run, for they finish in another order than they are computed.
class LogitsLog {
 public:
  void add(std::uint64_t tag, std::span<const float> logits) {
    rows_[tag].insert(rows_[tag].end(), logits.begin(), logits.end());
  }
  void write(std::uint64_t tag, std::ostream& out) {
    const std::vector<float>& rows = rows_[tag];
    out.write(reinterpret_cast<const char*>(rows.data()),
              static_cast<std::streamsize>(rows.size() * sizeof(float)));
    rows_.erase(tag);
  }

 private:
  std::map<std::uint64_t, std::vector<float>> rows_;
};

int fail(const Status& status, int code) {
  fmt::print(stderr, "growpage-run: {}\n", status.message());
  return code;
}

/// Serves `requests` to their ends; the exit code.
int serve(Engine& engine, const RunOptions& options,
          const std::vector<GenerationRequest>& requests) {
  Output output(options.output);
  Output logits_out(options.logits);
  Output decisions(options.decisions);
  for (const Output* out : {&output, &logits_out, &decisions}) {
    if (!out->good()) {
      return fail(Status::invalid("output file", out->path(), "one that can be written"),
                  exit_bad_input);
    }
  }
  LogitsLog logits;
  if (logits_out.wanted()) {
    engine.set_token_hook([&](std::uint64_t tag, std::int64_t, std::span<const float> row) {
      logits.add(tag, row);
      return std::nullopt;
    });
  }
  for (const GenerationRequest& request : requests) {
    if (Status s = engine.submit(request); !s.ok()) {
      fmt::print(stderr, "growpage-run: request {}: ", request.tag);
      return fail(s, exit_bad_input);
    }
  }
  Progress progress(static_cast<std::int64_t>(requests.size()), !options.quiet);
  std::string line;
  while (!engine.idle()) {
    if (Status s = engine.step(); !s.ok()) return fail(s, exit_failed);
    for (const Generation& generation : engine.take_finished()) {
      output.stream() << to_jsonl(generation) << std::flush;
      if (logits_out.wanted()) logits.write(generation.tag, logits_out.stream());
    }
    for (growpage::DecisionRecord record; engine.decisions().pop(record);) {
      line.clear();
      append_jsonl(line, record);
      decisions.stream() << line;
    }
    progress.update(engine.counters());
  }
  progress.summarise(engine.counters());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ParsedOptions parsed = parse_options(argc, argv);
  if (parsed.done) return parsed.code;
  RunOptions& options = parsed.options;
  Result<growpage::AnyPolicy> policy = make_policy(options);
  if (!policy.ok()) return fail(policy.status(), exit_bad_input);
  options.engine.policy = std::move(*policy);
  if (!options.decisions.empty()) options.engine.scheduling.decision_capacity = decision_capacity;
  const Result<std::vector<GenerationRequest>> requests = requests_of(options);
  if (!requests.ok()) return fail(requests.status(), exit_bad_input);
  const Result<Model> model = Model::load(options.model);
  if (!model.ok()) return fail(model.status(), exit_bad_input);
  Result<std::unique_ptr<Engine>> engine = Engine::create(*model, options.engine);
  if (!engine.ok()) return fail(engine.status(), exit_bad_input);
  return serve(**engine, options, *requests);
}
