// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>

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

}  // namespace growpage
