// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "growpage/core/status.hpp"

namespace growpage::detail {

/// True when low ≤ value ≤ high; otherwise sets `status` to an invalid_argument that says so.
inline bool require_range(Status& status, std::string_view argument, std::int64_t value,
                          std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return true;
  status = Status::invalid(argument, value, std::to_string(low) + " to " + std::to_string(high));
  return false;
}

inline bool require_not_null(Status& status, std::string_view argument, const void* pointer) {
  if (pointer != nullptr) return true;
  status = Status::invalid(argument, "null", "a non-null pointer");
  return false;
}

/// CapacityLimits of the policy called `policy`.
inline Status validate_limits(std::string_view policy, std::int64_t initial_pages,
                              std::int64_t max_pages) {
  Status status;
  const std::string prefix(policy);
  if (!require_range(status, prefix + "::capacity.initial_pages", initial_pages, 1, 1 << 20)) {
    return status;
  }
  if (max_pages != 0 &&
      !require_range(status, prefix + "::capacity.max_pages", max_pages, 2, 1 << 20)) {
    return status;
  }
  return {};
}

}  // namespace growpage::detail
