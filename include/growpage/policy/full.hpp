// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/policy/capacity_policy.hpp"

namespace growpage {

/// Full KV: always grows, never evicts. What an engine without a capacity policy does.
struct FullPolicy {
  [[nodiscard]] const char* name() const noexcept { return "full"; }
  [[nodiscard]] bool needs_demand() const noexcept { return false; }
  [[nodiscard]] bool may_compact() const noexcept { return false; }
  [[nodiscard]] CapacityLimits limits(std::int32_t) const noexcept { return {1, 0}; }
  [[nodiscard]] RetentionOptions retention() const noexcept { return {}; }
  [[nodiscard]] Status validate(std::int32_t) const { return {}; }
  [[nodiscard]] Decision decide(const BoundaryContext&) noexcept { return Decision::grow; }
};

static_assert(CapacityPolicy<FullPolicy>);

}  // namespace growpage
