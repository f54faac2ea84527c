// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "growpage/demand/demand.hpp"
#include "growpage/demand/query_summary.hpp"
#include "growpage/demand/rope.hpp"
#include "growpage/detail/require.hpp"

namespace growpage {

GROWPAGE_INLINE Status RopeParams::validate(std::int32_t head_dim) const {
  if (rotary_dim < 0 || rotary_dim > head_dim || rotary_dim % 2 != 0) {
    return Status::invalid("RopeParams::rotary_dim", std::int64_t{rotary_dim},
                           "even, from 0 to head_dim (" + std::to_string(head_dim) + ")");
  }
  if (rotary_dim == 0) return {};
  if ((cos_table == nullptr) != (sin_table == nullptr)) {
    return Status::invalid("RopeParams::cos_table", "given without its partner",
                           "both of cos_table and sin_table, or neither");
  }
  if (cos_table != nullptr && max_position <= 0) {
    return Status::invalid("RopeParams::max_position", max_position,
                           "the number of rows of the tables, at least 1");
  }
  if (cos_table == nullptr && inv_freq == nullptr) {
    return Status::invalid("RopeParams::inv_freq", "null",
                           "inv_freq or cos_table and sin_table when rotary_dim > 0");
  }
  if (!std::isfinite(attention_scale)) {
    return Status::invalid("RopeParams::attention_scale", double{attention_scale}, "finite");
  }
  return {};
}

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

GROWPAGE_INLINE Status DemandOptions::validate() const {
  if (!(p > 0.0F && p <= 1.0F)) {
    return Status::invalid("DemandOptions::p", double{p}, "0 < p ≤ 1");
  }
  return {};
}

}  // namespace growpage
