// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/demand/query_summary.hpp"
#include "growpage/detail/require.hpp"

namespace growpage {

GROWPAGE_INLINE Status SummaryOptions::validate() const {
  Status s;
  if (!(beta_short >= 0.0F && beta_short < 1.0F)) {
    return Status::invalid("SummaryOptions::beta_short", double{beta_short}, "0 ≤ beta_short < 1");
  }
  if (!(beta_long > beta_short && beta_long < 1.0F)) {
    return Status::invalid("SummaryOptions::beta_long", double{beta_long},
                           "beta_short < beta_long < 1");
  }
  if (!detail::require_range(s, "SummaryOptions::slots", slots, 1, 1 << 20)) return s;
  if (!detail::require_range(s, "SummaryOptions::window", window, 0, 4096)) return s;
  if (storage == Storage::bf16) {
    return Status::invalid("SummaryOptions::storage", "bf16",
                           "f32 or f16_stochastic: in bf16 an update of weight 0.001 is below half "
                           "an ulp and the long summary never moves");
  }
  return {};
}

GROWPAGE_INLINE SummaryBytes summary_bytes(const CacheShape& shape, const SummaryOptions& options) {
  const std::int64_t rows = std::int64_t{shape.layers} * options.slots;
  const std::int64_t query = std::int64_t{shape.query_heads} * shape.head_dim;
  const std::int64_t element = options.storage == SummaryOptions::Storage::f32 ? 4 : 2;
  return {rows * 2 * query * element, rows * shape.query_heads * 4,
          rows * options.window * query * 4, rows * 8};
}

}  // namespace growpage
