// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/detail/require.hpp"
#include "growpage/policy/capacity_policy.hpp"

namespace growpage {

/// A fixed budget of KV tokens per request: grows to it, then Compress & Hold at every boundary.
/// The paper's "fixed" row: GrowPage's own retention without its growth.
struct FixedPolicy {
  std::int32_t budget_tokens = 4096;  ///< ≥ 2 pages, a multiple of the page size
  RetentionOptions retention_options;

  [[nodiscard]] const char* name() const noexcept { return "fixed"; }
  [[nodiscard]] bool needs_demand() const noexcept { return false; }
  [[nodiscard]] bool may_compact() const noexcept { return true; }
  [[nodiscard]] CapacityLimits limits(std::int32_t page_size) const noexcept {
    return {budget_tokens / page_size, 0};
  }
  [[nodiscard]] RetentionOptions retention() const noexcept { return retention_options; }
  [[nodiscard]] Status validate(std::int32_t page_size) const {
    if (budget_tokens < 2 * page_size || budget_tokens % page_size != 0) {
      return Status::invalid(
          "FixedPolicy::budget_tokens", std::int64_t{budget_tokens},
          "a multiple of the page size (" + std::to_string(page_size) + "), at least two pages");
    }
    return retention_options.validate(page_size);
  }
  [[nodiscard]] Decision decide(const BoundaryContext& context) noexcept {
    return std::int64_t{context.pages} * context.page_size < budget_tokens ? Decision::grow
                                                                           : Decision::compact;
  }
};

static_assert(CapacityPolicy<FixedPolicy>);

}  // namespace growpage
