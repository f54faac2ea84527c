// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#endif

#if defined(SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(SIMT_TSAN)
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_ignore_thread_begin();
extern "C" void __tsan_ignore_thread_end();
#endif

/// What the sanitizers have to be told about fibres. The build defines SIMT_TSAN for the runtime,
/// whose own code is compiled without -fsanitize=thread: its state is shared by all fibres and is
/// no concern of the race detector.
namespace simt::sanitizer {

#if defined(SIMT_ASAN)
inline constexpr bool address = true;
#else
inline constexpr bool address = false;
#endif

inline void release([[maybe_unused]] void* edge) {
#if defined(SIMT_TSAN)
  __tsan_release(edge);
#endif
}

inline void acquire([[maybe_unused]] void* edge) {
#if defined(SIMT_TSAN)
  __tsan_acquire(edge);
#endif
}

/// Every entry into the runtime from a kernel holds one. The race detector then overlooks what the
/// runtime reads, writes and allocates, also in library templates whose instrumented copy the
/// linker has picked from a kernel's object file; edges still count.
class RuntimeScope {
 public:
#if defined(SIMT_TSAN)
  RuntimeScope() { __tsan_ignore_thread_begin(); }
  ~RuntimeScope() { __tsan_ignore_thread_end(); }
#else
  RuntimeScope() {}  // not defaulted: an object without use would be warned about
  ~RuntimeScope() {}
#endif
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;
};

inline void poison([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(SIMT_ASAN)
  __asan_poison_memory_region(memory, bytes);
#endif
}

inline void unpoison([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(SIMT_ASAN)
  __asan_unpoison_memory_region(memory, bytes);
#endif
}

}  // namespace simt::sanitizer
