// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "workload.hpp"

namespace growpage::replay {

enum class TraceFormat : std::int32_t {
  guess,     ///< from the first line
  mooncake,  ///< JSONL: timestamp (ms), input_length, output_length, hash_ids (optional)
  servegen,  ///< JSONL: timestamp (ms), input_length, output_length, reasoning_length (optional)
  azure,     ///< CSV: TIMESTAMP, ContextTokens, GeneratedTokens
};

/// Where a trace is wrong, and how.
struct TraceError {
  std::string file;
  std::int64_t line = 0;  ///< from 1; 0 = the file itself
  std::string field;      ///< empty = the whole line
  std::string problem;

  /// "trace.jsonl:7: field output_length: is missing".
  [[nodiscard]] std::string message() const;
};

struct Trace {
  TraceFormat format = TraceFormat::guess;  ///< as read
  std::vector<TraceRequest> requests;       ///< by arrival, the first one at 0 s
  std::optional<TraceError> error;          ///< set: `requests` is incomplete
};

/// Reads up to `limit` requests (0 = all). Requests without hash_ids get a prompt of their own.
/// Empty lines are skipped; anything else that is not a request is an error.
[[nodiscard]] Trace read_trace(const std::string& path, TraceFormat format, std::int64_t limit);
/// The same from a stream; `name` is what errors call it.
[[nodiscard]] Trace read_trace(std::istream& in, const std::string& name, TraceFormat format,
                               std::int64_t limit);

/// One line of a JSONL trace. `error` gets field and problem when the answer is false.
bool parse_json_line(const std::string& line, TraceFormat format, TraceRequest& out,
                     TraceError& error);
/// One line of an Azure trace (not its header); `arrival_s` is seconds since 1970.
bool parse_azure_line(const std::string& line, TraceRequest& out, TraceError& error);

/// The longest prompt or output a trace may ask for, in tokens.
inline constexpr std::int64_t max_trace_tokens = 10'000'000;

}  // namespace growpage::replay
