// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace growpage::detail {

/// Asks for a cache line that will be read soon; any address will do. Into the second level, which
/// has room for more outstanding misses than the first.
inline void prefetch([[maybe_unused]] const void* address) noexcept {
#if defined(__GNUC__)
  __builtin_prefetch(address, 0, 2);
#endif
}

}  // namespace growpage::detail
