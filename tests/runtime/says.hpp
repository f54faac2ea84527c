// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "support/catch.hpp"

namespace growpage::test {

/// A matcher for messages that contain `part`, in Catch2 v2 and v3.
inline auto says(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Contains(part);
#endif
}

}  // namespace growpage::test
