// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <iterator>

#include "growpage/observe/decision_log.hpp"

namespace growpage {

GROWPAGE_INLINE const char* decision_name(DecisionKind kind) noexcept {
  switch (kind) {
    case DecisionKind::grow:
      return "grow";
    case DecisionKind::compact:
      return "compact";
    case DecisionKind::shrink:
      return "shrink";
    case DecisionKind::fallback:
      return "fallback";
    case DecisionKind::swap_out:
      return "swap_out";
    case DecisionKind::recompute:
      return "recompute";
  }
  return "unknown";
}

GROWPAGE_INLINE void append_jsonl(std::string& out, const DecisionRecord& r) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, R"({{"request":{},"tag":{},"step":{},"decision":"{}",)", r.request.bits(),
                 r.tag, r.step, decision_name(r.kind));
  if (r.measured) {
    fmt::format_to(to, R"("delta":{},"short":{},"long":{},)", r.delta, r.short_ratio, r.long_ratio);
  } else {
    fmt::format_to(to, R"("delta":null,"short":null,"long":null,)");
  }
  fmt::format_to(to,
                 R"("pages_before":{},"pages_after":{},"length":{},"pressure":{:.6f}}})"
                 "\n",
                 r.pages_before, r.pages_after, r.length, r.pressure);
}

}  // namespace growpage
