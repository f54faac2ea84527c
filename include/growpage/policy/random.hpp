// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/detail/require.hpp"
#include "growpage/detail/splitmix.hpp"
#include "growpage/policy/capacity_policy.hpp"

namespace growpage {

/// The paper's random control: Compress & Hold with a fixed probability, otherwise grow. The draw
/// is a hash of (seed, request, boundary), so it does not depend on the order of requests.
struct RandomPolicy {
  double compact_probability = 0.7;
  std::uint64_t seed = 0;
  CapacityLimits capacity;
  RetentionOptions retention_options;

  [[nodiscard]] const char* name() const noexcept { return "random"; }
  [[nodiscard]] bool needs_demand() const noexcept { return false; }
  [[nodiscard]] bool may_compact() const noexcept { return true; }
  [[nodiscard]] CapacityLimits limits(std::int32_t) const noexcept { return capacity; }
  [[nodiscard]] RetentionOptions retention() const noexcept { return retention_options; }
  [[nodiscard]] Status validate(std::int32_t page_size) const {
    if (!(compact_probability >= 0 && compact_probability <= 1)) {
      return Status::invalid("RandomPolicy::compact_probability", compact_probability, "0 to 1");
    }
    if (Status s =
            detail::validate_limits("RandomPolicy", capacity.initial_pages, capacity.max_pages);
        !s.ok()) {
      return s;
    }
    return retention_options.validate(page_size);
  }
  [[nodiscard]] Decision decide(const BoundaryContext& context) noexcept {
    const std::uint64_t draw =
        detail::splitmix64(detail::splitmix64(seed ^ detail::splitmix64(context.request)) +
                           static_cast<std::uint64_t>(context.boundary));
    return detail::unit_interval(draw) < compact_probability ? Decision::compact : Decision::grow;
  }
};

static_assert(CapacityPolicy<RandomPolicy>);

}  // namespace growpage
