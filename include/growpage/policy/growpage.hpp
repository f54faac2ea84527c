// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "growpage/detail/require.hpp"
#include "growpage/policy/capacity_policy.hpp"

namespace growpage {

/// GrowPage (arXiv 2609.03494): grow by one page when attention widens (Δ > τ, strict), otherwise
/// Compress & Hold. Never shrinks.
struct GrowPagePolicy {
  double threshold = 0.0;  ///< τ
  CapacityLimits capacity;
  RetentionOptions retention_options;

  [[nodiscard]] const char* name() const noexcept { return "growpage"; }
  [[nodiscard]] bool needs_demand() const noexcept { return true; }
  [[nodiscard]] bool may_compact() const noexcept { return true; }
  [[nodiscard]] CapacityLimits limits(std::int32_t) const noexcept { return capacity; }
  [[nodiscard]] RetentionOptions retention() const noexcept { return retention_options; }
  [[nodiscard]] Status validate(std::int32_t page_size) const {
    if (!std::isfinite(threshold)) {
      return Status::invalid("GrowPagePolicy::threshold", threshold, "finite");
    }
    if (Status s =
            detail::validate_limits("GrowPagePolicy", capacity.initial_pages, capacity.max_pages);
        !s.ok()) {
      return s;
    }
    return retention_options.validate(page_size);
  }
  [[nodiscard]] Decision decide(const BoundaryContext& context) noexcept {
    // Nothing to measure (one page, no candidates) means nothing to evict either: grow.
    if (!context.measured) return Decision::grow;
    return context.demand.delta() > threshold ? Decision::grow : Decision::compact;
  }
};

static_assert(CapacityPolicy<GrowPagePolicy>);

}  // namespace growpage
