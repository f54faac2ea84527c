// SPDX-License-Identifier: Apache-2.0
#include "support/host.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#if defined(__GLIBC__)
#include <dlfcn.h>
#include <pthread.h>
#endif

namespace growpage::bench {
namespace {
std::atomic<std::int64_t> allocations = 0;
std::atomic<std::int64_t> locks = 0;
}  // namespace

Calls calls_so_far() {
#if defined(__GLIBC__)
  // Counters that count nothing would find nothing.
  static const bool counting = [] {
    const Calls before{allocations, locks};
    std::mutex mutex;
    mutex.lock();
    auto number = std::make_unique<int>(1);
    benchmark::DoNotOptimize(number.get());
    mutex.unlock();
    return allocations == before.allocations + 1 && locks == before.locks + 1;
  }();
  check(counting);
#endif
  return {allocations, locks};
}

}  // namespace growpage::bench

#if defined(__GLIBC__)
// In front of the C library's own, which operator new calls, too.
extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT
void* __libc_calloc(std::size_t count, std::size_t size);        // NOLINT
void* __libc_realloc(void* memory, std::size_t size);            // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT

void* malloc(std::size_t size) noexcept {
  ++growpage::bench::allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  ++growpage::bench::allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) noexcept {
  ++growpage::bench::allocations;
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  ++growpage::bench::allocations;
  return __libc_memalign(alignment, size);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto real =
      reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++growpage::bench::locks;
  return real(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  static const auto real =
      reinterpret_cast<int (*)(pthread_rwlock_t*)>(dlsym(RTLD_NEXT, "pthread_rwlock_rdlock"));
  ++growpage::bench::locks;
  return real(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  static const auto real =
      reinterpret_cast<int (*)(pthread_rwlock_t*)>(dlsym(RTLD_NEXT, "pthread_rwlock_wrlock"));
  ++growpage::bench::locks;
  return real(lock);
}
}
#endif
