// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/detail/require.hpp"
#include "growpage/policy/capacity_policy.hpp"

namespace growpage {

/// Zipage (arXiv 2603.08743): a fixed budget of pages, tokens ranked by the attention of the last w
/// queries. Needs SummaryOptions::window ≥ retention_options.window.
struct ZipagePolicy {
  /// N: pages a request holds when it is compacted to N − 1 (Zipage's 8 pages + 1).
  std::int32_t pages = 9;
  RetentionOptions retention_options = defaults();

  /// Zipage's own ranking: window scoring, max-pool 5, global score 0.8, sinks 4, no local quota.
  /// Redundancy (weight 0.8, temperature 0.4) is an option it names and leaves off.
  [[nodiscard]] static constexpr RetentionOptions defaults() noexcept {
    RetentionOptions options;
    options.score = ScoreKind::window;
    options.local_per_256 = 0;
    options.sinks = 4;
    options.max_pool = 5;
    options.global_decay = 0.8F;
    return options;
  }

  [[nodiscard]] const char* name() const noexcept { return "zipage"; }
  [[nodiscard]] bool needs_demand() const noexcept { return false; }
  [[nodiscard]] bool may_compact() const noexcept { return true; }
  [[nodiscard]] CapacityLimits limits(std::int32_t) const noexcept { return {pages, 0}; }
  [[nodiscard]] RetentionOptions retention() const noexcept { return retention_options; }
  [[nodiscard]] Status validate(std::int32_t page_size) const {
    Status s;
    if (!detail::require_range(s, "ZipagePolicy::pages", pages, 2, 1 << 20)) return s;
    return retention_options.validate(page_size);
  }
  [[nodiscard]] Decision decide(const BoundaryContext& context) noexcept {
    return context.pages < pages ? Decision::grow : Decision::compact;
  }
};

static_assert(CapacityPolicy<ZipagePolicy>);

}  // namespace growpage
