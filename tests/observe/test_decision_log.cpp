// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "growpage/observe/decision_log.hpp"
#include "support/catch.hpp"

namespace growpage {
namespace {

DecisionRecord sample() {
  DecisionRecord r;
  r.request = {5, 3};
  r.tag = 0xffffffffffffffffu;
  r.step = 1234567890123;
  r.kind = DecisionKind::compact;
  r.measured = true;
  r.delta = -0.0123456789012345;
  r.short_ratio = 0.25;
  r.long_ratio = 0.2623456789012345;
  r.pages_before = 12;
  r.pages_after = 11;
  r.length = 40000;
  r.pressure = 0.875;
  return r;
}

TEST_CASE("decision_name: one name per kind") {
  CHECK(std::string(decision_name(DecisionKind::grow)) == "grow");
  CHECK(std::string(decision_name(DecisionKind::compact)) == "compact");
  CHECK(std::string(decision_name(DecisionKind::shrink)) == "shrink");
  CHECK(std::string(decision_name(DecisionKind::fallback)) == "fallback");
  CHECK(std::string(decision_name(DecisionKind::swap_out)) == "swap_out");
  CHECK(std::string(decision_name(DecisionKind::recompute)) == "recompute");
  CHECK(decision_name(static_cast<DecisionKind>(99)) != nullptr);
}

TEST_CASE("append_jsonl: one JSON object a line, numbers come back exactly") {
  const DecisionRecord r = sample();
  std::string text;
  append_jsonl(text, r);
  REQUIRE(text.back() == '\n');
  CHECK(text.find('\n') == text.size() - 1);
  const nlohmann::json j = nlohmann::json::parse(text);
  CHECK(j.size() == 11);
  CHECK(j.at("request").get<std::uint64_t>() == r.request.bits());
  CHECK(j.at("tag").get<std::uint64_t>() == r.tag);
  CHECK(j.at("step").get<std::int64_t>() == r.step);
  CHECK(j.at("decision").get<std::string>() == "compact");
  CHECK(j.at("delta").get<double>() == r.delta);
  CHECK(j.at("short").get<double>() == r.short_ratio);
  CHECK(j.at("long").get<double>() == r.long_ratio);
  CHECK(j.at("pages_before").get<int>() == 12);
  CHECK(j.at("pages_after").get<int>() == 11);
  CHECK(j.at("length").get<std::int64_t>() == 40000);
  CHECK(j.at("pressure").get<double>() == 0.875);
}

TEST_CASE("append_jsonl: extreme deltas stay valid JSON and exact") {
  for (const double delta : {0.0, 1e-17, -1.0, 1.0 / 3.0, 5e-324}) {
    DecisionRecord r = sample();
    r.delta = delta;
    std::string text;
    append_jsonl(text, r);
    CHECK(nlohmann::json::parse(text).at("delta").get<double>() == delta);
  }
}

TEST_CASE("append_jsonl: delta is null when it was not measured") {
  DecisionRecord r = sample();
  r.measured = false;
  r.kind = DecisionKind::grow;
  std::string text;
  append_jsonl(text, r);
  const nlohmann::json j = nlohmann::json::parse(text);
  CHECK(j.at("delta").is_null());
  CHECK(j.at("short").is_null());
  CHECK(j.at("long").is_null());
  CHECK(j.at("decision").get<std::string>() == "grow");
}

TEST_CASE("append_jsonl: appends, in order, for every kind") {
  std::string text = "before\n";
  for (int kind = 0; kind < 6; ++kind) {
    DecisionRecord r = sample();
    r.kind = static_cast<DecisionKind>(kind);
    r.step = kind;
    append_jsonl(text, r);
  }
  std::istringstream lines(text);
  std::string line;
  REQUIRE(std::getline(lines, line));
  CHECK(line == "before");
  int count = 0;
  while (std::getline(lines, line)) {
    const nlohmann::json j = nlohmann::json::parse(line);
    CHECK(j.at("step").get<int>() == count);
    CHECK(j.at("decision").get<std::string>() == decision_name(static_cast<DecisionKind>(count)));
    ++count;
  }
  CHECK(count == 6);
}

}  // namespace
}  // namespace growpage
