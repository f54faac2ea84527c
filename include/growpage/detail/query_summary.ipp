// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/demand/query_summary.hpp"
#include "growpage/detail/require.hpp"

namespace growpage {

GROWPAGE_INLINE SummaryOptions
SummaryOptions::for_page_size(std::int32_t page_size) const noexcept {
  SummaryOptions options = *this;
  if (beta_long == 0.0F) options.beta_long = static_cast<float>(1.0 - 0.256 / page_size);
  return options;
}

GROWPAGE_INLINE Status SummaryOptions::validate(std::int32_t page_size) const {
  Status s;
  if (!(beta_short >= 0.0F && beta_short < 1.0F)) {
    return Status::invalid("SummaryOptions::beta_short", double{beta_short}, "0 ≤ beta_short < 1");
  }
  const float used = for_page_size(page_size).beta_long;
  if (!(used > beta_short && used < 1.0F)) {
    return Status::invalid("SummaryOptions::beta_long", double{used},
                           "beta_short < beta_long < 1 (0 = 1 − 0.256/page_size)");
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
