// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace growpage::detail {

/// A fixed array of zeroed T that the operating system backs page by page on first touch, so that a
/// bound far above the usual use (2^31 pages, the longest sequence) costs address space, not
/// memory. Begins at a cache line.
template <class T>
  requires std::is_trivially_copyable_v<T>
class LazyArray {
 public:
  LazyArray() = default;
  explicit LazyArray(std::size_t size) : size_(size) {
    if (size == 0) return;
    // calloc aligns to less; what is aligned to more it might touch to clear it.
    constexpr std::size_t line = 64;
    std::size_t space = (size + line / sizeof(T) + 1) * sizeof(T);
    void* const block = std::calloc(size + line / sizeof(T) + 1, sizeof(T));
    void* first = block;
    if (block != nullptr) (void)std::align(line, size * sizeof(T), first, space);
    data_ = {static_cast<T*>(first), Free{block}};
  }

  /// Asks for huge pages: for arrays read at random, where the TLB would miss with small ones. What
  /// is touched then costs whole huge pages. A refusal does no harm.
  void prefer_huge_pages() noexcept {
#if defined(__linux__)
    constexpr std::size_t huge_page = std::size_t{1} << 21;
    auto* const memory = reinterpret_cast<char*>(data_.get());
    const std::size_t ahead =
        (huge_page - reinterpret_cast<std::uintptr_t>(memory) % huge_page) % huge_page;
    const std::size_t bytes = size_ * sizeof(T);
    if (bytes < ahead + huge_page) return;
    (void)madvise(memory + ahead, (bytes - ahead) / huge_page * huge_page, MADV_HUGEPAGE);
#endif
  }

  /// False when the memory was not to be had.
  [[nodiscard]] bool ok() const noexcept { return size_ == 0 || data_ != nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T* data() noexcept { return data_.get(); }
  [[nodiscard]] const T* data() const noexcept { return data_.get(); }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_.get()[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_.get()[i]; }

 private:
  struct Free {
    void* block = nullptr;
    void operator()(T* /*first*/) const noexcept { std::free(block); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace growpage::detail
