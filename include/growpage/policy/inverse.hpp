// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/detail/require.hpp"
#include "growpage/policy/capacity_policy.hpp"

namespace growpage {

/// The paper's inverted control: grows when attention narrows (Δ ≤ 0), Compress & Hold when it
/// widens.
struct InversePolicy {
  CapacityLimits capacity;
  RetentionOptions retention_options;

  [[nodiscard]] const char* name() const noexcept { return "inverse"; }
  [[nodiscard]] bool needs_demand() const noexcept { return true; }
  [[nodiscard]] bool may_compact() const noexcept { return true; }
  [[nodiscard]] CapacityLimits limits(std::int32_t) const noexcept { return capacity; }
  [[nodiscard]] RetentionOptions retention() const noexcept { return retention_options; }
  [[nodiscard]] Status validate(std::int32_t page_size) const {
    if (Status s =
            detail::validate_limits("InversePolicy", capacity.initial_pages, capacity.max_pages);
        !s.ok()) {
      return s;
    }
    return retention_options.validate(page_size);
  }
  [[nodiscard]] Decision decide(const BoundaryContext& context) noexcept {
    if (!context.measured) return Decision::grow;
    return context.demand.delta() > 0 ? Decision::compact : Decision::grow;
  }
};

static_assert(CapacityPolicy<InversePolicy>);

}  // namespace growpage
