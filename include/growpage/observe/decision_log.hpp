// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "growpage/core/config.hpp"
#include "growpage/core/ids.hpp"
#include "growpage/observe/ring.hpp"

namespace growpage {

/// What happened to a request at a capacity boundary, or under memory pressure.
enum class DecisionKind : std::int32_t {
  grow = 0,
  compact = 1,  ///< Compress & Hold, the policy's choice
  shrink = 2,
  fallback = 3,   ///< the policy chose grow, there was no page: Compress & Hold
  swap_out = 4,   ///< preempted, state kept on the host
  recompute = 5,  ///< preempted, state dropped
};

/// One entry of the decision log. Plain data.
struct DecisionRecord {
  RequestId request;
  std::uint64_t tag = 0;  ///< the engine's own name for the request
  std::int64_t step = 0;
  DecisionKind kind = DecisionKind::grow;
  bool measured = false;  ///< whether `delta` was measured for this decision
  double delta = 0;
  double short_ratio = 0;
  double long_ratio = 0;
  std::int32_t pages_before = 0;
  std::int32_t pages_after = 0;
  std::int64_t length = 0;  ///< true length in tokens
  double pressure = 0;      ///< 1 − allocatable pages / total pages, 0 … 1
};

using DecisionLog = EventRing<DecisionRecord>;

/// "grow", "compact", …
const char* decision_name(DecisionKind kind) noexcept;
/// Appends the record as one JSON object and a newline (JSONL). Delta is null when not measured.
void append_jsonl(std::string& out, const DecisionRecord& record);

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/observe.ipp"
#endif
