// SPDX-License-Identifier: Apache-2.0
// Which outputs pass, which problem files are refused, and what the claims say of results.
#include <limits>
#include <sstream>

#include "claims.hpp"
#include "problem.hpp"
#include "report.hpp"
#include "says.hpp"
#include "support/catch.hpp"

using namespace growpage;        // NOLINT(google-build-using-namespace)
using namespace growpage::eval;  // NOLINT(google-build-using-namespace)
using namespace growpage::test;  // NOLINT(google-build-using-namespace)

namespace {

Result<std::vector<Problem>> read(const std::string& text) {
  std::istringstream in(text);
  return read_problems(in);
}

using Output = std::vector<TokenId>;

Json interval(double value, double low, double high) {
  return eval::to_json(Interval{value, low, high});
}

Json difference(const char* policy, double kv, bool interpolated, double value) {
  return {{"against", policy},
          {"policy", policy},
          {"kv_tokens", kv},
          {"interpolated", interpolated},
          {"difference", interval(value, value - 0.01, value + 0.01)}};
}

/// Results of which all claims hold.
Json good_results() {
  Json results = {{"quality", "pass@1"}};
  results["signal"] = {{"rho", interval(0.5, 0.4, 0.6)},
                       {"rho_level", interval(0.6, 0.5, 0.7)},
                       {"sign_agreement", interval(0.7, 0.6, 0.8)}};
  results["advantage"] = {{"top_less_bottom", interval(0.1, 0.05, 0.15)},
                          {"top_less_bottom_to_end", interval(1, 0.5, 1.5)}};
  results["table"]["rows"] = {{{"policy", "growpage"}, {"kv_tokens", 100.0}}};
  results["table"]["differences"] = {
      difference("full", 300, false, -0.2),    difference("fixed", 120, false, -0.2),
      difference("fixed", 100, true, 0.02),    difference("zipage", 100, true, 0.0),
      difference("random", 99, false, 0.05),   difference("random", 60, false, -0.3),
      difference("inverse", 150, false, 0.02), difference("shrink", 60, false, 0.02)};
  return results;
}

std::size_t failed(const Json& results) {
  const std::vector<Claim> claims = judge(results);
  CHECK(all_held(claims) == std::ranges::all_of(claims, &Claim::held));
  return static_cast<std::size_t>(std::ranges::count(claims, false, &Claim::held));
}

}  // namespace

TEST_CASE("an output passes by what stands between its last marker and its end") {
  Problem p;
  p.answer = {7, 8};
  p.answer_marker = 3;
  CHECK(p.passed(Output{5, 3, 7, 8, 2}));
  CHECK(p.passed(Output{3, 9, 9, 3, 7, 8, 2}));  // an earlier marker does not count
  CHECK_FALSE(p.passed(Output{3, 7, 8, 3, 9, 2}));
  CHECK_FALSE(p.passed(Output{5, 3, 7, 8, 8, 2}));
  CHECK_FALSE(p.passed(Output{5, 3, 7, 2}));
  CHECK_FALSE(p.passed(Output{7, 8, 2}));
  CHECK_FALSE(p.passed(Output{}));
  p.answer.clear();
  CHECK_FALSE(p.passed(Output{3, 2}));
}

TEST_CASE("problems are read with their defaults") {
  const auto problems = read(R"({"prompt": [1], "solution": [4, 3, 9, 2], "answer": [9],
"answer_marker": 3, "difficulty": 5})"
                             "\n");
  // A value may not run over a line.
  CHECK_FALSE(problems.ok());
  const auto one = read(
      "{\"prompt\":[1],\"solution\":[4,3,9,2],\"answer\":[9],\"answer_marker\":3}\n\n"
      "{\"prompt\":[1],\"solution\":[3,9,2],\"answer\":[9],\"answer_marker\":3,"
      "\"tag\":70,\"max_new_tokens\":30,\"difficulty\":5,\"lasting\":[0,2]}\n");
  REQUIRE(one.ok());
  REQUIRE(one->size() == 2);
  CHECK((*one)[0].max_new_tokens == 4);
  CHECK((*one)[0].tag == 0);
  CHECK((*one)[0].passed((*one)[0].solution));
  CHECK((*one)[1].tag == 70);
  CHECK((*one)[1].max_new_tokens == 30);
  CHECK((*one)[1].difficulty == 5);
  CHECK((*one)[0].lasting.empty());
  CHECK((*one)[1].lasting == std::vector<std::int64_t>{0, 2});
}

TEST_CASE("a bad problem file is refused by its line") {
  CHECK_THAT(read("").status().message(), says("problems"));
  CHECK_THAT(read("{\"prompt\":[1],\"solution\":[2]}\n{").status().message(), says("line 2"));
  CHECK_THAT(read("{\"prompt\":[1]}").status().message(), says("solution"));
  CHECK_THAT(read("{\"prompt\":[],\"solution\":[2]}").status().message(), says("line 1"));
  for (const char* place : {"-1", "1"}) {
    const std::string line =
        std::string("{\"prompt\":[1],\"solution\":[2],\"lasting\":[0,") + place + "]}";
    CHECK_THAT(read(line).status().message(), says(std::string("line 1: lasting is ") + place));
  }
  CHECK_THAT(read("{\"prompt\":[1],\"solution\":[2],\"answer\":[2]}").status().message(),
             says("answer_marker"));
  const auto mixed = read(
      "{\"prompt\":[1],\"solution\":[2]}\n"
      "{\"prompt\":[1],\"solution\":[2],\"answer\":[2],\"answer_marker\":1}");
  CHECK_THAT(mixed.status().message(), says("line 2"));
}

TEST_CASE("claims hold for results that bear them out") {
  const Json results = good_results();
  // Both rho, sign, both advantages; fixed and zipage at equal KV, the random that holds as much,
  // inverse, shrink. Not full, not fixed as it is, not the random that holds less.
  CHECK(judge(results).size() == 10);
  CHECK(failed(results) == 0);
  CHECK(to_markdown(judge(results)).find("FAILED") == std::string::npos);
}

TEST_CASE("every claim fails when its number is doctored") {
  const auto doctored = [](const char* part, const char* field, double value) {
    Json results = good_results();
    results[part][field] = interval(value, value - 0.01, value + 0.01);
    return failed(results);
  };
  CHECK(doctored("signal", "rho", 0.005) == 1);  // its interval holds 0
  CHECK(doctored("signal", "rho_level", 0.005) == 1);
  CHECK(doctored("signal", "sign_agreement", 0.5) == 1);
  CHECK(doctored("advantage", "top_less_bottom", -0.1) == 1);
  CHECK(doctored("advantage", "top_less_bottom_to_end", 0.005) == 1);
  for (const std::size_t row : {2U, 3U, 4U, 6U, 7U}) {
    Json results = good_results();
    results["table"]["differences"][row]["difference"] = interval(-0.001, -0.1, 0.1);
    CHECK(failed(results) == 1);
    CHECK(to_markdown(judge(results)).find("FAILED") != std::string::npos);
  }
  Json unknown = good_results();
  unknown["signal"]["rho"] = interval(std::numeric_limits<double>::quiet_NaN(), 0, 0);
  unknown["signal"]["rho"]["low"] = nullptr;
  CHECK(failed(unknown) == 1);
}

TEST_CASE("results without a claim are not results that hold") {
  CHECK_FALSE(all_held(judge(Json{{"quality", "nll"}})));
}
