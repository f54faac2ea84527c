// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace growpage::eval {
namespace {

Problem from_json(const nlohmann::json& json, std::uint64_t number) {
  Problem p;
  p.tag = json.value("tag", number);
  p.prompt = json.at("prompt").get<std::vector<TokenId>>();
  p.solution = json.at("solution").get<std::vector<TokenId>>();
  p.answer = json.value("answer", std::vector<TokenId>());
  if (!p.answer.empty()) p.answer_marker = json.at("answer_marker").get<TokenId>();
  p.max_new_tokens = json.value("max_new_tokens", static_cast<std::int64_t>(p.solution.size()));
  p.difficulty = json.value("difficulty", std::int64_t{0});
  p.lasting = json.value("lasting", std::vector<std::int64_t>());
  return p;
}

}  // namespace

bool Problem::passed(std::span<const TokenId> output) const {
  if (answer.empty() || output.empty()) return false;
  // What lies behind the last marker, found from the end.
  const auto text = output.first(output.size() - 1);
  const auto marker = std::find(text.rbegin(), text.rend(), answer_marker);
  return marker != text.rend() &&
         std::ranges::equal(marker.base(), text.end(), answer.begin(), answer.end());
}

Result<std::vector<Problem>> read_problems(std::istream& in) {
  std::vector<Problem> problems;
  std::string line;
  for (std::uint64_t number = 0; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    const std::string name = fmt::format("line {}", number + 1);
    try {
      problems.push_back(from_json(nlohmann::json::parse(line), number));
    } catch (const nlohmann::json::exception& error) {
      return Status::invalid(name, error.what(), "a problem as a JSON object");
    }
    const Problem& p = problems.back();
    if (p.prompt.empty() || p.solution.empty() || p.max_new_tokens < 1) {
      return Status::invalid(name, "an empty prompt, solution or output",
                             "at least one token each");
    }
    const auto end = static_cast<std::int64_t>(p.solution.size());
    for (const std::int64_t place : p.lasting) {
      if (place < 0 || place >= end) {
        return Status::invalid(name + ": lasting", place,
                               fmt::format("places in the solution, 0 to {}", end - 1));
      }
    }
    if (p.answer.empty() != problems.front().answer.empty()) {
      return Status::invalid(name, p.answer.empty() ? "no answer" : "an answer",
                             "an answer in every line or in none");
    }
  }
  if (problems.empty()) return Status::invalid("problems", "none", "at least one");
  return problems;
}

}  // namespace growpage::eval
