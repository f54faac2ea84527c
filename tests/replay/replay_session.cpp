// SPDX-License-Identifier: Apache-2.0
// The program's outside: flags, exit codes, files, tables.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "options.hpp"
#include "report.hpp"
#include "run.hpp"
#include "session.hpp"
#include "support/catch.hpp"

using namespace growpage::replay;  // NOLINT(google-build-using-namespace)

namespace {

ParsedOptions parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "growpage-replay");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

/// A folder that is gone with the test.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "growpage-test-replay") {
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string slurp(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("flags: defaults depend on the signal") {
  ParsedOptions parsed = parse({});
  REQUIRE_FALSE(parsed.done);
  CHECK(parsed.options.policies == all_policies());
  CHECK(parsed.options.shape.layers == 36);
  CHECK(parsed.options.shape.page_size == 256);
  CHECK(parsed.options.pages == 1597);
  CHECK(parsed.options.budget == 4096);
  CHECK(parsed.options.scale == Approx(1.0));
  CHECK(parsed.options.check_every == 0);
  CHECK_FALSE(comparable_rows(parsed.options).empty());

  parsed = parse({"--signal", "kernels", "--check"});
  CHECK(parsed.options.shape.head_dim == 64);
  CHECK(parsed.options.shape.page_size == 32);
  CHECK(parsed.options.budget == 512);
  CHECK(parsed.options.scale == Approx(1.0 / 16));
  CHECK(parsed.options.check_every == 1);
  CHECK(comparable_rows(parsed.options).empty());

  parsed = parse({"--trace", "t.csv", "--format", "azure", "--policy", "growpage,fixed",
                  "--memory-gb", "40", "--preemption", "swap", "--bandwidth-gbs", "900", "--check",
                  "25", "--budget", "2048"});
  CHECK(parsed.options.format == TraceFormat::azure);
  CHECK(parsed.options.policies == std::vector<std::string>{"growpage", "fixed"});
  CHECK(parsed.options.pages < 800);
  CHECK(parsed.options.host_pages == parsed.options.pages);
  CHECK(parsed.options.preemption == growpage::Preemption::swap);
  CHECK(parsed.options.costs.bandwidth == Approx(9e11));
  CHECK(parsed.options.check_every == 25);
  CHECK(parsed.options.budget == 2048);
}

TEST_CASE("flags: what makes no sense ends with code 2") {
  for (const std::vector<const char*>& arguments :
       std::vector<std::vector<const char*>>{{"--policy", "nobody"},
                                             {"--signal", "none"},
                                             {"--requests", "0"},
                                             {"--pages", "10", "--memory-gb", "4"},
                                             {"--trace", "t", "--workload", "mixed"},
                                             {"--format", "azure"},
                                             {"--memory-gb", "1"},  // no room beside the weights
                                             {"--nonsense"}}) {
    CAPTURE(arguments.front());
    const ParsedOptions parsed = parse(arguments);
    CHECK(parsed.done);
    CHECK(parsed.code == 2);
  }
  CHECK(parse({"--help"}).done);
  CHECK(parse({"--help"}).code == 0);
}

TEST_CASE("a session writes its results, decisions and timeline") {
  const Folder folder;
  ReplayOptions options;
  options.signal = SignalKind::process;
  options.requests = 12;
  options.scale = 0.1;
  options.pages = 120;
  options.initial_pages = 8;  // few enough that requests this short decide
  options.policies = {"growpage", "full"};
  options.quiet = true;
  options.json = folder.file("results.json");
  options.decisions = folder.file("decisions.jsonl");
  options.timeline = folder.file("timeline.json");
  fill_defaults(options);
  REQUIRE(run_session(options) == exit_good);

  const auto results = nlohmann::json::parse(slurp(options.json));
  CHECK(results["signal"] == "process");
  CHECK(results["requests"] == 12);
  REQUIRE(results["runs"].size() == 2);
  CHECK(results["runs"][0]["policy"] == "growpage");
  CHECK(results["runs"][0]["failure"].is_null());
  CHECK(results["runs"][0]["counters"]["decode_tokens"] == results["output_tokens"]);

  const std::string log = slurp(options.decisions + ".growpage");
  const auto lines = std::ranges::count(log, '\n');
  const auto& counters = results["runs"][0]["counters"];
  CHECK(lines == counters["grow"].get<std::int64_t>() + counters["compact"].get<std::int64_t>() +
                     counters["preempt"].get<std::int64_t>());
  CHECK(nlohmann::json::parse(log.substr(0, log.find('\n'))).contains("delta"));
  CHECK(std::filesystem::exists(options.decisions + ".full"));

  const auto timeline = nlohmann::json::parse(slurp(options.timeline));
  REQUIRE(timeline["runs"].size() == 2);
  const auto& run = timeline["runs"][0];
  REQUIRE(run["requests"].size() == 4);
  const auto& longest = run["requests"][0];
  CHECK(longest["pages"].front()[2] == 1);
  CHECK(longest["pages"].back()[2].get<int>() >= 8);
  CHECK(longest["demand"].size() > 2);
  CHECK(run["residency"].size() > 100);
  CHECK(run["residency"].size() <= 4096);
}

TEST_CASE("exit codes: bad input 2, a run that cannot go on 1") {
  ReplayOptions options;
  options.quiet = true;
  options.trace = "no-such-file.jsonl";
  fill_defaults(options);
  CHECK(run_session(options) == exit_bad_input);

  options = {};
  options.quiet = true;
  options.requests = 2;
  options.pages = 2;
  options.policies = {"full"};
  fill_defaults(options);
  CHECK(run_session(options) == exit_failed);
}

TEST_CASE("the table sets the paper's rows under ours") {
  std::vector<RunResult> results(2);
  results[0].policy = "growpage";
  results[0].counters.grow = 3;
  results[0].counters.compact = 6;
  results[0].counters.shrink = 1;
  results[0].seconds = 2;
  results[0].counters.decode_tokens = 500;
  results[1].policy = "user";
  results[1].failure = "lost";
  const std::string text = table(results, paper_amc23);
  CHECK(text.find("30.0") != std::string::npos);   // grow % of all decisions
  CHECK(text.find(" 250 ") != std::string::npos);  // tokens/s
  CHECK(text.find("in the paper") != std::string::npos);
  CHECK(text.find("3164") != std::string::npos);
  CHECK(text.find("21203") != std::string::npos);
  CHECK(text.find("FAILED: lost") != std::string::npos);
  CHECK(find_row(paper_amc23, "user") == nullptr);
}
