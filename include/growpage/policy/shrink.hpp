// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "growpage/detail/require.hpp"
#include "growpage/policy/capacity_policy.hpp"

namespace growpage {

/// The paper's three-way ablation: shrink when attention narrows clearly (Δ < low), hold when it
/// narrows a little (low ≤ Δ ≤ 0), grow when it widens. Never below `min_tokens`.
struct ShrinkPolicy {
  double low = -0.005;  ///< ≤ 0
  std::int32_t min_tokens = 1024;
  CapacityLimits capacity;
  RetentionOptions retention_options;

  [[nodiscard]] const char* name() const noexcept { return "shrink"; }
  [[nodiscard]] bool needs_demand() const noexcept { return true; }
  [[nodiscard]] bool may_compact() const noexcept { return true; }
  [[nodiscard]] CapacityLimits limits(std::int32_t) const noexcept { return capacity; }
  [[nodiscard]] RetentionOptions retention() const noexcept { return retention_options; }
  [[nodiscard]] Status validate(std::int32_t page_size) const {
    if (!(std::isfinite(low) && low <= 0)) {
      return Status::invalid("ShrinkPolicy::low", low, "finite, at most 0");
    }
    Status s;
    if (!detail::require_range(s, "ShrinkPolicy::min_tokens", min_tokens, page_size, 1 << 30)) {
      return s;
    }
    if (s = detail::validate_limits("ShrinkPolicy", capacity.initial_pages, capacity.max_pages);
        !s.ok()) {
      return s;
    }
    return retention_options.validate(page_size);
  }
  [[nodiscard]] Decision decide(const BoundaryContext& context) noexcept {
    if (!context.measured) return Decision::grow;
    const double delta = context.demand.delta();
    if (delta > 0) return Decision::grow;
    const std::int64_t after = std::int64_t{context.pages - 1} * context.page_size;
    return delta < low && after >= min_tokens ? Decision::shrink : Decision::compact;
  }
};

static_assert(CapacityPolicy<ShrinkPolicy>);

}  // namespace growpage
