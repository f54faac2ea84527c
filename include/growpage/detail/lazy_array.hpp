// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <type_traits>

namespace growpage::detail {

/// A fixed array of zeroed T that the operating system backs page by page on first touch, so that a
/// bound far above the usual use (2^31 pages, the longest sequence) costs address space, not
/// memory.
template <class T>
  requires std::is_trivially_copyable_v<T>
class LazyArray {
 public:
  LazyArray() = default;
  explicit LazyArray(std::size_t size)
      : data_(size == 0 ? nullptr : static_cast<T*>(std::calloc(size, sizeof(T)))), size_(size) {}

  /// False when the memory was not to be had.
  [[nodiscard]] bool ok() const noexcept { return size_ == 0 || data_ != nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T* data() noexcept { return data_.get(); }
  [[nodiscard]] const T* data() const noexcept { return data_.get(); }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_.get()[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace growpage::detail
