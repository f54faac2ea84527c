// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <span>
#include <vector>

#include "growpage/core/ids.hpp"
#include "growpage/core/status.hpp"

namespace growpage::eval {

/// A text to generate or to score.
struct Problem {
  std::uint64_t tag = 0;
  std::vector<TokenId> prompt;
  std::vector<TokenId> solution;  ///< the reference output: reasoning, marker, answer, end of text
  std::vector<TokenId> answer;    ///< empty: there is nothing to get right, only NLL
  TokenId answer_marker = -1;
  std::int64_t max_new_tokens = 0;
  std::int64_t difficulty = 0;
  /// Places in the solution of tokens that its end still needs, where the task knows them.
  std::vector<std::int64_t> lasting;

  /// Whether a generation that ended by itself holds the answer: what lies between its last marker
  /// and its end-of-text token, the last one of `output`.
  [[nodiscard]] bool passed(std::span<const TokenId> output) const;
};

/// Problems as JSONL: "prompt" and "solution" (token ids), and where there is something to get
/// right "answer" and "answer_marker"; "tag" defaults to the line's number from 0,
/// "max_new_tokens" to the solution's length, "lasting" to none. All have answers or none has.
/// invalid_argument naming line and field.
[[nodiscard]] Result<std::vector<Problem>> read_problems(std::istream& in);

}  // namespace growpage::eval
