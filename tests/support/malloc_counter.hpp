// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "support/allocation_counter.hpp"
#include "support/sanitizer.hpp"

/// Counts calls of the malloc family, beside those of operator new, in the executable whose ONE
/// source file includes this. Sanitizers bring their own malloc: with them, and elsewhere than with
/// glibc, it counts nothing.
#if defined(__GLIBC__) && !defined(GROWPAGE_TEST_SHADOW_MEMORY) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GROWPAGE_TEST_COUNTS_MALLOC 1
#endif

namespace growpage::test {

inline std::atomic<std::int64_t> malloc_count = 0;

#ifdef GROWPAGE_TEST_COUNTS_MALLOC
inline constexpr bool kMallocCounted = true;
#else
inline constexpr bool kMallocCounted = false;
#endif

}  // namespace growpage::test

#ifdef GROWPAGE_TEST_COUNTS_MALLOC
extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT
void* __libc_calloc(std::size_t count, std::size_t size);        // NOLINT
void* __libc_realloc(void* memory, std::size_t size);            // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT

void* malloc(std::size_t size) noexcept {
  ++growpage::test::malloc_count;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  ++growpage::test::malloc_count;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) noexcept {
  ++growpage::test::malloc_count;
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  ++growpage::test::malloc_count;
  return __libc_memalign(alignment, size);
}
}
#endif
