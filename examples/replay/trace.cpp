// SPDX-License-Identifier: Apache-2.0
#include "trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace growpage::replay {
namespace {

constexpr const char* azure_header = "TIMESTAMP,ContextTokens,GeneratedTokens";

bool blank(const std::string& line) {
  return line.find_first_not_of(" \t\r\n") == std::string::npos;
}

TraceFormat guess_format(const std::string& line) {
  if (line[line.find_first_not_of(" \t")] != '{') return TraceFormat::azure;
  return line.find("\"hash_ids\"") != std::string::npos ? TraceFormat::mooncake
                                                        : TraceFormat::servegen;
}

}  // namespace

std::string TraceError::message() const {
  std::string out = file;
  if (line > 0) out += fmt::format(":{}", line);
  if (!field.empty()) out += fmt::format(": field {}", field);
  return out + ": " + problem;
}

Trace read_trace(std::istream& in, const std::string& name, TraceFormat format,
                 std::int64_t limit) {
  Trace trace;
  trace.format = format;
  TraceError error;
  error.file = name;
  const auto fail = [&](std::string problem) {
    if (!problem.empty()) error.problem = std::move(problem);
    trace.error = error;
  };
  bool header_seen = false;
  std::string line;
  while (std::getline(in, line)) {
    ++error.line;
    if (blank(line)) continue;
    if (line.back() == '\r') line.pop_back();
    if (trace.format == TraceFormat::guess) trace.format = guess_format(line);
    const bool azure = trace.format == TraceFormat::azure;
    if (azure && !header_seen) {
      header_seen = true;
      if (line != azure_header) {
        fail(fmt::format("the header is not {}", azure_header));
        return trace;
      }
      continue;
    }
    TraceRequest request;
    const bool parsed = azure ? parse_azure_line(line, request, error)
                              : parse_json_line(line, trace.format, request, error);
    if (!parsed) {
      fail({});
      return trace;
    }
    request.prompt_id = trace.requests.size();
    trace.requests.push_back(std::move(request));
    if (static_cast<std::int64_t>(trace.requests.size()) == limit) break;
  }
  if (trace.requests.empty()) {
    error.line = 0;
    fail(in.bad() ? "cannot be read" : "holds no request");
    return trace;
  }
  std::ranges::stable_sort(trace.requests, {}, &TraceRequest::arrival_s);
  const double first = trace.requests.front().arrival_s;
  for (TraceRequest& request : trace.requests) request.arrival_s -= first;
  return trace;
}

Trace read_trace(const std::string& path, TraceFormat format, std::int64_t limit) {
  std::ifstream in(path);
  if (!in) {
    Trace trace;
    trace.error = TraceError{path, 0, {}, "cannot be opened"};
    return trace;
  }
  return read_trace(in, path, format, limit);
}

}  // namespace growpage::replay
