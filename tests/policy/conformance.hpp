// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "growpage/policy/capacity_policy.hpp"
#include "support/catch.hpp"

namespace growpage::test {

/// A boundary as the scheduler presents it, Δ = `delta` on one (layer, head).
inline BoundaryContext boundary(double delta, std::int32_t pages = 16,
                                std::int32_t page_size = 256) {
  BoundaryContext context;
  context.request = 42;
  context.pages = pages;
  context.page_size = page_size;
  context.length = std::int64_t{pages} * page_size;
  context.measured = true;
  context.demand = {0.5 + delta, 0.5, 1};
  return context;
}

/// What every capacity policy must do, whatever it decides.
template <CapacityPolicy P>
void check_policy_conformance(P policy) {
  INFO("policy " << policy.name());
  CHECK(std::string(policy.name()).size() > 0);
  for (const std::int32_t page_size : {16, 64, 256, 512}) {
    INFO("page size " << page_size);
    CHECK(policy.validate(page_size).ok());
    CHECK(policy.limits(page_size).initial_pages >= 1);
    CHECK(policy.limits(page_size).max_pages >= 0);
    CHECK(policy.retention().validate(page_size).ok());
  }

  // Decisions are a function of the context alone: copies agree, in any order, however often asked.
  P copy = policy;
  for (const std::int32_t pages : {1, 2, 4, 8, 16, 64}) {
    for (const double delta : {-1.0, -0.005, -1e-9, 0.0, 1e-9, 0.3, 1.0}) {
      for (std::int64_t n = 0; n < 4; ++n) {
        BoundaryContext context = boundary(delta, pages);
        context.boundary = n;
        const Decision first = policy.decide(context);
        (void)policy.decide(boundary(0.25, 3));
        CHECK(policy.decide(context) == first);
        CHECK(copy.decide(context) == first);
        if (!policy.may_compact()) CHECK(first == Decision::grow);
        // A policy that does not ask for Δ must not depend on it.
        if (!policy.needs_demand()) {
          BoundaryContext blind = context;
          blind.measured = false;
          blind.demand = {};
          CHECK(policy.decide(blind) == first);
        }
      }
    }
  }
  // Not measured (nothing to evict yet, or just recomputed) and NaN never throw or loop.
  BoundaryContext unmeasured = boundary(0.0);
  unmeasured.measured = false;
  (void)policy.decide(unmeasured);
  (void)policy.decide(boundary(std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace growpage::test
