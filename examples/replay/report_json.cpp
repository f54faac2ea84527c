// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "growpage/version.hpp"
#include "report.hpp"

namespace growpage::replay {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isnan(value) ? Json(nullptr) : Json(value); }

Json to_json(const Counters& c) {
  return {{"steps", c.steps},
          {"submitted", c.submitted},
          {"finished", c.finished},
          {"prefill_tokens", c.prefill_tokens},
          {"decode_tokens", c.decode_tokens},
          {"grow", c.grow},
          {"compact", c.compact},
          {"shrink", c.shrink},
          {"fallback", c.fallback},
          {"free_growth", c.free_growth},
          {"preempt", c.preempt},
          {"swap_out", c.swap_out},
          {"swap_in", c.swap_in},
          {"recompute", c.recompute},
          {"prefix_query_tokens", c.prefix_query_tokens},
          {"prefix_hit_tokens", c.prefix_hit_tokens},
          {"evicted_pages", c.evicted_pages},
          {"copied_pages", c.copied_pages}};
}

Json to_json(const RunResult& r) {
  return {{"policy", r.policy},
          {"kv_tokens", r.kv_tokens()},
          {"kv_per_request", r.kv_per_request},
          {"tokens_per_s", r.tokens_per_s()},
          {"tpot_ms", r.tpot_ms},
          {"resident", r.resident()},
          {"grow_percent", r.grow_percent()},
          {"prefix_hit_percent", r.prefix_hit_percent()},
          {"seconds", r.seconds},
          {"wall_seconds", r.wall_seconds},
          {"requests", r.requests},
          {"pool_pages", r.pool_pages},
          {"counters", to_json(r.counters)},
          {"failure", r.failure.empty() ? Json(nullptr) : Json(r.failure)}};
}

Json to_json(const PaperRow& r) {
  return {{"policy", r.policy},
          {"kv_tokens", number(r.kv_tokens)},
          {"tokens_per_s", number(r.tokens_per_s)},
          {"tpot_ms", number(r.tpot_ms)},
          {"resident", number(r.resident)},
          {"grow", number(r.grow)},
          {"grow_percent", number(r.grow_percent)},
          {"compact", number(r.compact)},
          {"shrink", number(r.shrink)},
          {"fallback", number(r.fallback)},
          {"preempt", number(r.preempt)}};
}

Json header(const ReplayOptions& o) {
  const bool generated = o.trace.empty();
  return {{"growpage_version", fmt::format("{}.{}.{}", GROWPAGE_VERSION_MAJOR,
                                           GROWPAGE_VERSION_MINOR, GROWPAGE_VERSION_PATCH)},
          {"workload", !generated                      ? o.trace
                       : o.workload == Workload::mixed ? "mixed"
                                                       : "amc23"},
          {"signal", o.signal == SignalKind::process ? "process" : "kernels"},
          {"pages", o.pages},
          {"page_size", o.shape.page_size},
          {"budget", o.budget},
          {"scale", o.scale},
          {"seed", o.seed},
          {"overcommit", o.overcommit},
          {"preemption", o.preemption == Preemption::swap ? "swap" : "recompute"}};
}

}  // namespace

std::string to_json(const ReplayOptions& options, const Trace& workload,
                    std::span<const RunResult> results, std::span<const PaperRow> paper) {
  Json out = header(options);
  const WorkloadTotals sum = totals(workload.requests);
  out["requests"] = workload.requests.size();
  out["prompt_tokens"] = sum.prompt_tokens;
  out["output_tokens"] = sum.output_tokens;
  out["runs"] = Json::array();
  for (const RunResult& result : results) out["runs"].push_back(to_json(result));
  out["paper"] = Json::array();
  for (const PaperRow& row : paper) out["paper"].push_back(to_json(row));
  return out.dump(2) + "\n";
}

std::string timelines_json(const ReplayOptions& options, std::span<const RunResult> results,
                           std::span<const Timeline> timelines) {
  Json out = header(options);
  out["runs"] = Json::array();
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    Json run = {{"policy", results[i].policy}, {"pool_pages", results[i].pool_pages}};
    run["requests"] = Json::array();
    for (const Timeline::Watched& watched : timelines[i].watched()) {
      Json pages = Json::array();
      for (const auto& p : watched.pages) pages.push_back({p.time_s, p.length, p.pages});
      Json demand = Json::array();
      for (const auto& p : watched.demand) demand.push_back({p.time_s, p.length, p.delta});
      run["requests"].push_back(
          {{"tag", watched.tag}, {"pages", std::move(pages)}, {"demand", std::move(demand)}});
    }
    run["residency"] = Json::array();  // time (s), running, waiting, pages in use
    for (const auto& p : timelines[i].residency()) {
      run["residency"].push_back({p.time_s, p.running, p.waiting, p.pages});
    }
    out["runs"].push_back(std::move(run));
  }
  return out.dump() + "\n";
}

}  // namespace growpage::replay
