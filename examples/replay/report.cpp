// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>

namespace growpage::replay {
namespace {

struct Column {
  const char* title;
  int width;
  int decimals;
};
constexpr std::array columns{
    Column{"KV tokens", 9, 0}, Column{"KV/request", 10, 0}, Column{"tokens/s", 9, 0},
    Column{"TPOT ms", 8, 2},   Column{"resident", 8, 1},    Column{"grow", 7, 0},
    Column{"grow %", 6, 1},    Column{"hold", 7, 0},        Column{"shrink", 7, 0},
    Column{"fallback", 8, 0},  Column{"preempt", 8, 0},     Column{"hit %", 6, 1}};
constexpr int label_width = 18;

using Cells = std::array<double, columns.size()>;

void append_line(std::string& out, std::string_view label, const Cells& cells) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{:<{}}", label, label_width);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (std::isnan(cells[i])) {
      fmt::format_to(to, " {:>{}}", "-", columns[i].width);
    } else {
      fmt::format_to(to, " {:>{}.{}f}", cells[i], columns[i].width, columns[i].decimals);
    }
  }
  out += '\n';
}

Cells cells(const RunResult& r) {
  const Counters& c = r.counters;
  const auto count = [](std::int64_t n) { return static_cast<double>(n); };
  return {r.kv_tokens(),   r.kv_per_request,  r.tokens_per_s(), r.tpot_ms,
          r.resident(),    count(c.grow),     r.grow_percent(), count(c.compact),
          count(c.shrink), count(c.fallback), count(c.preempt), r.prefix_hit_percent()};
}

Cells cells(const PaperRow& r) {
  return {r.kv_tokens, PaperRow::unknown, r.tokens_per_s, r.tpot_ms, r.resident,
          r.grow,      r.grow_percent,    r.compact,      r.shrink,  r.fallback,
          r.preempt,   PaperRow::unknown};
}

std::string workload_name(const ReplayOptions& options) {
  if (!options.trace.empty()) return options.trace;
  return options.workload == Workload::mixed ? "the paper's mixed workload (generated)"
                                             : "the paper's AMC23 workload (generated)";
}

}  // namespace

std::string describe(const ReplayOptions& options, const Trace& workload) {
  const WorkloadTotals sum = totals(workload.requests);
  const CacheShape& shape = options.shape;
  std::string out =
      fmt::format("{}: {} requests, {} prompt and {} output tokens", workload_name(options),
                  workload.requests.size(), sum.prompt_tokens, sum.output_tokens);
  if (options.scale != 1) out += fmt::format(" (lengths × {:g})", options.scale);
  out += fmt::format(
      "\nmodel: {} layers, {}/{} heads of {}; pool: {} pages of {} tokens; preemption by {}\n",
      shape.layers, shape.query_heads, shape.kv_heads, shape.head_dim, options.pages,
      shape.page_size, options.preemption == Preemption::swap ? "swap" : "recompute");
  out +=
      options.signal == SignalKind::process
          ? "signal: process (no tensors; demand from a stochastic process; time from a model of "
            "an A100-80GB)\n"
          : "signal: kernels (made-up tensors, real CPU kernels; time is that of the kernels on "
            "this machine)\n";
  return out;
}

std::span<const PaperRow> comparable_rows(const ReplayOptions& options) {
  const bool whole = options.signal == SignalKind::process && options.trace.empty() &&
                     options.requests == 0 && options.scale == 1;
  if (!whole) return {};
  return options.workload == Workload::mixed ? std::span<const PaperRow>(paper_mixed)
                                             : std::span<const PaperRow>(paper_amc23);
}

std::string table(std::span<const RunResult> results, std::span<const PaperRow> paper) {
  std::string out = fmt::format("{:<{}}", "policy", label_width);
  for (const Column& column : columns) {
    fmt::format_to(std::back_inserter(out), " {:>{}}", column.title, column.width);
  }
  out += '\n';
  for (const RunResult& result : results) {
    append_line(out, result.policy, cells(result));
    const PaperRow* row = find_row(paper, result.policy);
    if (row != nullptr) append_line(out, "  in the paper", cells(*row));
    if (!result.failure.empty()) out += fmt::format("  FAILED: {}\n", result.failure);
  }
  return out;
}

}  // namespace growpage::replay
