// SPDX-License-Identifier: Apache-2.0
#include "support/host.hpp"

#include <atomic>
#include <memory>
#include <mutex>

#include "support/malloc_counter.hpp"  // of the tests

#if defined(__GLIBC__)
#include <dlfcn.h>
#include <pthread.h>
#endif

namespace growpage::bench {
namespace {
using test::malloc_count;
std::atomic<std::int64_t> locks = 0;
}  // namespace

Calls calls_so_far() {
#if defined(__GLIBC__)
  // Counters that count nothing would find nothing.
  static const bool counting = [] {
    const Calls before{malloc_count, locks};
    std::mutex mutex;
    mutex.lock();
    auto number = std::make_unique<int>(1);
    benchmark::DoNotOptimize(number.get());
    mutex.unlock();
    return malloc_count == before.allocations + 1 && locks == before.locks + 1;
  }();
  check(counting);
#endif
  return {malloc_count, locks};
}

}  // namespace growpage::bench

#if defined(__GLIBC__)
// In front of the C library's own.
extern "C" {
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
