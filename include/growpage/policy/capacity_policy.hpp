// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>

#include "growpage/core/status.hpp"
#include "growpage/demand/demand.hpp"
#include "growpage/demand/query_summary.hpp"
#include "growpage/retention/retention.hpp"

namespace growpage {

/// What a policy can answer at a capacity boundary.
enum class Decision : std::int32_t {
  grow = 0,     ///< Grow by One Page: append a page, copy nothing
  compact = 1,  ///< Compress & Hold: evict b slots per (layer, head), keep the page count
  shrink = 2,   ///< evict 2b slots, return one page, keep one page free
};

/// What a policy sees of the request at the boundary.
struct BoundaryContext {
  std::uint64_t request = 0;   ///< the engine's tag: stable, for seeds and call-backs
  std::int64_t boundary = 0;   ///< decisions this request had before, from 0
  std::int64_t length = 0;     ///< true length in tokens
  std::int32_t pages = 0;      ///< P_t
  std::int32_t page_size = 0;  ///< b
  bool measured = false;  ///< whether `demand` was measured (false: not asked for, or no candidate)
  Demand demand;
  double pressure = 0;  ///< 1 − allocatable pages / total pages, 0 … 1
};

/// How many pages a request takes before and beside the policy's decisions.
struct CapacityLimits {
  /// A request grows freely to this many pages, or to its prompt plus one page, whichever is more.
  /// Not given by the paper; its tables imply about 12.
  std::int32_t initial_pages = 12;
  std::int32_t max_pages = 0;  ///< never more (Grow becomes Compress & Hold); 0 = no bound
};

/// A capacity policy: a copyable value that decides at every boundary. `decide` must be
/// deterministic in its argument (seeded policies hash their seed with request and boundary), so
/// that the order in which requests are looked at does not matter.
template <class P>
concept CapacityPolicy =
    std::copyable<P> && requires(const P& policy, P& mutable_policy, const BoundaryContext& context,
                                 std::int32_t page_size) {
      { policy.name() } -> std::convertible_to<const char*>;
      /// Whether Δ is to be measured before `decide`.
      { policy.needs_demand() } -> std::same_as<bool>;
      /// Whether Compress & Hold is allowed at all; when false a full pool preempts instead.
      { policy.may_compact() } -> std::same_as<bool>;
      { policy.limits(page_size) } -> std::same_as<CapacityLimits>;
      { policy.retention() } -> std::same_as<RetentionOptions>;
      { policy.validate(page_size) } -> std::same_as<Status>;
      { mutable_policy.decide(context) } -> std::same_as<Decision>;
    };

}  // namespace growpage
