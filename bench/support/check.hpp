// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace growpage::bench {

/// What is timed must also be right: a benchmark of a refused call would look splendid.
inline void check(bool good, const std::source_location& at = std::source_location::current()) {
  if (good) return;
  std::fprintf(stderr, "%s:%u: a benchmark's result is wrong\n", at.file_name(),
               static_cast<unsigned>(at.line()));
  std::abort();
}

}  // namespace growpage::bench
