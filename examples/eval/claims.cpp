// SPDX-License-Identifier: Apache-2.0
#include "claims.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace growpage::eval {
namespace {

void judge_signal(const Json& signal, const ClaimBounds& bounds, std::vector<Claim>& claims) {
  const Interval rho = to_interval(signal.at("rho"));
  const bool above = rho.low > bounds.rho;
  claims.push_back({"delta foretells the change of the working set (rho > 0)", rho, above, above});
  const Interval level = to_interval(signal.at("rho_level"));
  const bool above_level = level.low > bounds.rho;
  claims.push_back({"delta foretells how the working set will differ from its long level", level,
                    above_level, above_level});
  const Interval sign = to_interval(signal.at("sign_agreement"));
  claims.push_back({"delta and the change have the same sign more often than not", sign,
                    sign.value > bounds.sign_agreement, sign.low > bounds.sign_agreement});
}

void judge_advantage(const Json& advantage, const ClaimBounds& bounds, std::vector<Claim>& claims) {
  const Interval gap = to_interval(advantage.at("top_less_bottom"));
  claims.push_back({"growing is worth more in the top bin of delta than in the bottom one", gap,
                    gap.value > bounds.advantage, gap.low > bounds.advantage});
  const Interval to_end = to_interval(advantage.at("top_less_bottom_to_end"));
  const bool above = to_end.low > bounds.advantage;
  claims.push_back({"so it is over all that is left of the text", to_end, above, above});
}

double growpage_kv(const Json& table) {
  for (const Json& row : table.at("rows")) {
    if (row.at("policy") == "growpage") return to_number(row.at("kv_tokens"));
  }
  return 0;
}

/// Policies that hold less than growpage are not claimed to do no better, shrink excepted; fixed
/// and zipage are compared at growpage's own KV tokens, where their budgets reach them; full is the
/// bound of them all.
bool compared(const Json& difference, double kv, const ClaimBounds& bounds) {
  const auto policy = difference.at("policy").get<std::string>();
  if (difference.at("interpolated").get<bool>() || policy == "shrink") return true;
  const bool as_much = to_number(difference.at("kv_tokens")) >= kv * (1 - bounds.equal_kv);
  return (policy == "random" || policy == "inverse") && as_much;
}

void judge_table(const Json& table, const ClaimBounds& bounds, std::vector<Claim>& claims) {
  const double kv = growpage_kv(table);
  for (const Json& d : table.at("differences")) {
    if (!compared(d, kv, bounds)) continue;
    const Interval difference = to_interval(d.at("difference"));
    const double other = to_number(d.at("kv_tokens"));
    claims.push_back({fmt::format("growpage ({:.0f} KV tokens) does no worse than {} ({:.0f})", kv,
                                  d.at("against").get<std::string>(), other),
                      difference, difference.value >= bounds.quality,
                      difference.low > bounds.quality});
  }
}

}  // namespace

std::vector<Claim> judge(const Json& results, const ClaimBounds& bounds) {
  std::vector<Claim> claims;
  if (results.contains("signal")) judge_signal(results.at("signal"), bounds, claims);
  if (results.contains("advantage")) judge_advantage(results.at("advantage"), bounds, claims);
  if (results.contains("table")) judge_table(results.at("table"), bounds, claims);
  return claims;
}

bool all_held(const std::vector<Claim>& claims) {
  return !claims.empty() && std::ranges::all_of(claims, &Claim::held);
}

}  // namespace growpage::eval
