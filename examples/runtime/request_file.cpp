// SPDX-License-Identifier: Apache-2.0
#include "request_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

namespace growpage::runtime {
namespace {

using nlohmann::json;

/// A number of the line, if it is there; an error when it is not a number of that kind.
template <class T>
Status read_number(const json& line, std::int64_t number, const char* field, T& out) {
  const auto at = line.find(field);
  if (at == line.end()) return {};
  const bool good = std::is_integral_v<T> ? at->is_number_integer() : at->is_number();
  if (!good) {
    return Status::invalid(fmt::format("line {}: {}", number, field), at->dump(),
                           std::is_integral_v<T> ? "an integer" : "a number");
  }
  out = at->get<T>();
  return {};
}

Status read_request(const std::string& text, std::int64_t number, GenerationRequest& request) {
  const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) {
    return Status::invalid(fmt::format("line {}", number), text, "a JSON object");
  }
  const auto prompt = line.find("prompt");
  const auto is_token = [](const json& id) {
    return id.is_number_integer() && std::in_range<TokenId>(id.get<std::int64_t>());
  };
  if (prompt == line.end() || !prompt->is_array() || !std::ranges::all_of(*prompt, is_token)) {
    return Status::invalid(fmt::format("line {}: prompt", number),
                           prompt == line.end() ? "missing" : prompt->dump(), "token ids");
  }
  request.prompt = prompt->get<std::vector<TokenId>>();
  for (Status s : {read_number(line, number, "tag", request.tag),
                   read_number(line, number, "max_new_tokens", request.max_new_tokens),
                   read_number(line, number, "temperature", request.sampling.temperature),
                   read_number(line, number, "top_p", request.sampling.top_p),
                   read_number(line, number, "seed", request.sampling.seed)}) {
    if (!s.ok()) return s;
  }
  return {};
}

}  // namespace

Result<std::vector<GenerationRequest>> read_requests(std::istream& in,
                                                     const GenerationRequest& defaults) {
  std::vector<GenerationRequest> requests;
  std::unordered_set<std::uint64_t> tags;
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty()) continue;
    GenerationRequest request = defaults;
    request.tag = requests.size();
    if (Status s = read_request(line, number, request); !s.ok()) return s;
    if (!tags.insert(request.tag).second) {
      return Status::invalid(fmt::format("line {}: tag", number), std::to_string(request.tag),
                             "one that no other request has");
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

Result<std::vector<TokenId>> parse_tokens(std::string_view text) {
  std::vector<TokenId> tokens;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    TokenId token = 0;
    const auto [behind, error] = std::from_chars(at, end, token);
    if (error != std::errc() || (behind != end && *behind != ',')) {
      return Status::invalid("--prompt", text, "token ids with commas between");
    }
    tokens.push_back(token);
    if (behind == end) return tokens;
    at = behind + 1;
  }
}

std::string to_jsonl(const Generation& generation) {
  return fmt::format("{{\"tag\":{},\"tokens\":[{}],\"finish\":\"{}\"}}\n", generation.tag,
                     fmt::join(generation.tokens, ","), generation.stopped ? "stop" : "length");
}

}  // namespace growpage::runtime
