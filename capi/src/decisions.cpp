// SPDX-License-Identifier: Apache-2.0
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <string>

#include "error.hpp"
#include "growpage/detail/require.hpp"
#include "growpage/observe/decision_log.hpp"
#include "structs.hpp"

using namespace growpage;
using namespace growpage::capi;

namespace {

Status to_jsonl(const growpage_decision* decisions, size_t count, std::string& text) {
  Status s;
  if (!require_array(s, "decisions", decisions, count)) return s;
  for (std::size_t i = 0; i < count; ++i) {
    const growpage_decision& d = decisions[i];
    DecisionRecord r;
    r.request = RequestId::from_bits(d.request);
    r.tag = d.tag;
    r.step = d.step;
    r.kind = static_cast<DecisionKind>(d.kind);
    r.measured = d.measured != 0;
    r.delta = d.delta;
    r.short_ratio = d.short_ratio;
    r.long_ratio = d.long_ratio;
    r.pages_before = d.pages_before;
    r.pages_after = d.pages_after;
    r.length = d.length;
    r.pressure = d.pressure;
    append_jsonl(text, r);
  }
  return {};
}

}  // namespace

extern "C" {

growpage_status growpage_decisions_to_jsonl(const growpage_decision* decisions, size_t count,
                                            char* text, size_t capacity, size_t* length) {
  return run(nullptr, [&]() -> Status {
    Status s;
    if (!growpage::detail::require_not_null(s, "length", length)) return s;
    std::string out;
    if (s = to_jsonl(decisions, count, out); !s.ok()) return s;
    if (text != nullptr) {
      if (capacity < out.size()) {
        return Status::invalid("capacity", std::to_string(capacity),
                               "at least " + std::to_string(out.size()));
      }
      out.copy(text, out.size());
    }
    *length = out.size();
    return {};
  });
}

growpage_status growpage_decision_log_hash(const growpage_decision* decisions, size_t count,
                                           growpage_hash* hash) {
  return run(nullptr, [&]() -> Status {
    Status s;
    if (!growpage::detail::require_not_null(s, "hash", hash)) return s;
    std::string out;
    if (s = to_jsonl(decisions, count, out); !s.ok()) return s;
    const XXH128_hash_t digest = XXH3_128bits(out.data(), out.size());
    *hash = {digest.low64, digest.high64};
    return {};
  });
}
}
