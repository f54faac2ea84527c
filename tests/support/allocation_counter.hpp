// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

/// Counts calls of the global operator new in the executable that includes this. Weak, so that
/// several of its files may.
namespace growpage::test {

inline std::atomic<std::int64_t> allocation_count = 0;

/// Allocations since construction.
class AllocationCounter {
 public:
  [[nodiscard]] std::int64_t count() const noexcept { return allocation_count - start_; }

 private:
  std::int64_t start_ = allocation_count;
};

inline void* counted_allocation(std::size_t size, std::size_t alignment) {
  ++allocation_count;
  const std::size_t padded = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, padded == 0 ? alignment : padded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace growpage::test

[[gnu::weak]] void* operator new(std::size_t size) {
  return growpage::test::counted_allocation(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
[[gnu::weak]] void* operator new[](std::size_t size) {
  return growpage::test::counted_allocation(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
[[gnu::weak]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return growpage::test::counted_allocation(size, static_cast<std::size_t>(alignment));
}
[[gnu::weak]] void* operator new[](std::size_t size, std::align_val_t alignment) {
  return growpage::test::counted_allocation(size, static_cast<std::size_t>(alignment));
}
// Sanitizers do not forward these to the ones above.
[[gnu::weak]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++growpage::test::allocation_count;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::weak]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  ++growpage::test::allocation_count;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::weak]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::weak]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
