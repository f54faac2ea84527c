// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "engine.hpp"

namespace growpage::runtime {

/// Requests as JSONL, one object a line: "prompt" (token ids), and "tag", "max_new_tokens",
/// "temperature", "top_p", "seed" where a request differs from `defaults`; the tag defaults to the
/// request's number, from 0, and no two may share one. invalid_argument naming line and field.
[[nodiscard]] Result<std::vector<GenerationRequest>> read_requests(
    std::istream& in, const GenerationRequest& defaults);

/// "1,2,3" to token ids.
[[nodiscard]] Result<std::vector<TokenId>> parse_tokens(std::string_view text);

/// One line of JSON: tag, tokens, and whether the text ended by itself ("stop") or by its limit
/// ("length").
[[nodiscard]] std::string to_jsonl(const Generation& generation);

}  // namespace growpage::runtime
