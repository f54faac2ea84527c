// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace growpage::test {

/// A sanitizer keeps shadow memory for what it allocates: tests that reserve address space by the
/// gigabyte leave it out there.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define GROWPAGE_TEST_SHADOW_MEMORY 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    defined(GROWPAGE_TEST_SHADOW_MEMORY)
inline constexpr bool shadow_memory = true;
#else
inline constexpr bool shadow_memory = false;
#endif

}  // namespace growpage::test
