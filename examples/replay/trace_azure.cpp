// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <string_view>

#include "trace.hpp"

namespace growpage::replay {
namespace {

/// Takes a number off the front of `text`, then `end` when that is not '\0'.
template <class T>
bool take(std::string_view& text, T& value, char end) {
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  if (end == '\0') return true;
  if (text.empty() || text.front() != end) return false;
  text.remove_prefix(1);
  return true;
}

/// "2023-11-16 18:17:03.9799600" → seconds since 1970.
bool read_time(std::string_view text, double& seconds) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  double second = 0;
  if (!take(text, year, '-') || !take(text, month, '-') || !take(text, day, ' ') ||
      !take(text, hour, ':') || !take(text, minute, ':') || !take(text, second, '\0')) {
    return false;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  const bool in_range = date.ok() && hour >= 0 && hour < 24 && minute >= 0 && minute < 60 &&
                        second >= 0 && second < 61;
  if (!in_range || !text.empty()) return false;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  seconds = (static_cast<double>(days) * 24 + hour) * 3600.0 + minute * 60.0 + second;
  return true;
}

}  // namespace

bool parse_azure_line(const std::string& line, TraceRequest& out, TraceError& error) {
  constexpr std::array<const char*, 3> names{"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
  std::array<std::string_view, 3> fields;
  std::string_view rest = line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t comma = rest.find(',');
    const bool last = i + 1 == fields.size();
    if (last != (comma == std::string_view::npos)) {
      error.field = names[i];
      error.problem = last ? "is followed by more fields" : "is the last field; allowed: 3 of them";
      return false;
    }
    fields[i] = rest.substr(0, comma);
    if (!last) rest.remove_prefix(comma + 1);
  }
  if (!read_time(fields[0], out.arrival_s)) {
    error.field = names[0];
    error.problem =
        fmt::format("is \"{}\"; allowed: a time like 2023-11-16 18:17:03.97", fields[0]);
    return false;
  }
  for (std::size_t i = 1; i < fields.size(); ++i) {
    std::int64_t& tokens = i == 1 ? out.prompt_tokens : out.output_tokens;
    std::string_view text = fields[i];
    if (!take(text, tokens, '\0') || !text.empty() || tokens < 1 || tokens > max_trace_tokens) {
      error.field = names[i];
      error.problem = fmt::format("is \"{}\"; allowed: a whole number from 1 to {}", fields[i],
                                  max_trace_tokens);
      return false;
    }
  }
  return true;
}

}  // namespace growpage::replay
