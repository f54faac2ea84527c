// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "trace.hpp"

namespace growpage::replay {
namespace {

using Json = nlohmann::json;

bool fail(TraceError& error, const char* field, std::string problem) {
  error.field = field;
  error.problem = std::move(problem);
  return false;
}

bool read_tokens(const Json& object, const char* field, std::int64_t low, std::int64_t high,
                 std::int64_t& out, TraceError& error) {
  const auto found = object.find(field);
  if (found == object.end()) return fail(error, field, "is missing");
  const bool in_range = found->is_number_integer() &&
                        (!found->is_number_unsigned() ||
                         found->get<std::uint64_t>() <= static_cast<std::uint64_t>(high)) &&
                        found->get<std::int64_t>() >= low && found->get<std::int64_t>() <= high;
  if (!in_range) {
    return fail(
        error, field,
        fmt::format("is {}; allowed: a whole number from {} to {}", found->dump(), low, high));
  }
  out = found->get<std::int64_t>();
  return true;
}

bool read_timestamp(const Json& object, double& seconds, TraceError& error) {
  const auto found = object.find("timestamp");
  if (found == object.end()) return fail(error, "timestamp", "is missing");
  const double ms = found->is_number() ? found->get<double>() : -1;
  if (!(ms >= 0) || !std::isfinite(ms)) {
    return fail(error, "timestamp",
                fmt::format("is {}; allowed: milliseconds from 0", found->dump()));
  }
  seconds = ms / 1000.0;
  return true;
}

bool read_blocks(const Json& object, TraceRequest& out, TraceError& error) {
  const auto found = object.find("hash_ids");
  if (found == object.end()) return true;
  if (!found->is_array()) {
    return fail(error, "hash_ids", fmt::format("is a {}; allowed: an array", found->type_name()));
  }
  const auto needed = static_cast<std::size_t>(
      (out.prompt_tokens + TraceRequest::block_tokens - 1) / TraceRequest::block_tokens);
  if (found->size() != needed) {
    return fail(error, "hash_ids",
                fmt::format("has {} entries; an input_length of {} needs {}", found->size(),
                            out.prompt_tokens, needed));
  }
  for (const Json& id : *found) {
    if (!id.is_number_unsigned()) {
      return fail(error, "hash_ids",
                  fmt::format("holds {}; allowed: whole numbers from 0", id.dump()));
    }
    out.blocks.push_back(id.get<std::uint64_t>());
  }
  return true;
}

}  // namespace

bool parse_json_line(const std::string& line, TraceFormat format, TraceRequest& out,
                     TraceError& error) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return fail(error, "", "is not a JSON object");
  if (!read_timestamp(object, out.arrival_s, error) ||
      !read_tokens(object, "input_length", 1, max_trace_tokens, out.prompt_tokens, error) ||
      !read_tokens(object, "output_length", 1, max_trace_tokens, out.output_tokens, error)) {
    return false;
  }
  if (format == TraceFormat::mooncake) return read_blocks(object, out, error);
  std::int64_t reasoning = 0;  // part of the output; only checked
  return !object.contains("reasoning_length") ||
         read_tokens(object, "reasoning_length", 0, out.output_tokens, reasoning, error);
}

}  // namespace growpage::replay
