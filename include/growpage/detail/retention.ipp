// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "growpage/detail/require.hpp"
#include "growpage/retention/retention.hpp"

namespace growpage {

GROWPAGE_INLINE Status RetentionOptions::validate(std::int32_t page_size) const {
  Status s;
  if (!detail::require_range(s, "RetentionOptions::recent", recent, 0, page_size)) return s;
  if (!detail::require_range(s, "RetentionOptions::local_per_256", local_per_256, 0, 256)) return s;
  if (!detail::require_range(s, "RetentionOptions::sinks", sinks, 0, page_size)) return s;
  if (!detail::require_range(s, "RetentionOptions::window", window, 1, page_size)) return s;
  if (max_pool != 0 && (max_pool < 0 || max_pool % 2 == 0 || max_pool > 63)) {
    return Status::invalid("RetentionOptions::max_pool", std::int64_t{max_pool},
                           "0 (off) or odd from 1 to 63");
  }
  if (!(global_decay >= 0.0F && global_decay <= 1.0F)) {
    return Status::invalid("RetentionOptions::global_decay", double{global_decay}, "0 to 1");
  }
  if (!(redundancy_weight >= 0.0F && redundancy_weight <= 1.0F)) {
    return Status::invalid("RetentionOptions::redundancy_weight", double{redundancy_weight},
                           "0 to 1");
  }
  if (!(redundancy_temperature > 0.0F)) {
    return Status::invalid("RetentionOptions::redundancy_temperature",
                           double{redundancy_temperature}, "above 0");
  }
  return {};
}

GROWPAGE_INLINE std::int32_t RetentionOptions::local_quota(std::int32_t page_size) const noexcept {
  if (local_per_256 == 0) return 0;
  const std::int64_t scaled = std::int64_t{local_per_256} * page_size / 256;
  return static_cast<std::int32_t>(std::max<std::int64_t>(1, scaled));
}

}  // namespace growpage
