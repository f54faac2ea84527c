// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

namespace growpage::detail {

enum class MemorySpace { device, host };

/// Memory of a backend, returned to it when the owner goes away. The backend outlives it.
template <class Backend, MemorySpace space = MemorySpace::device>
class BackendMemory {
 public:
  BackendMemory() = default;
  BackendMemory(Backend& backend, std::int64_t bytes) : backend_(&backend), bytes_(bytes) {
    if (bytes <= 0) return;
    if constexpr (space == MemorySpace::device) data_ = backend.allocate(bytes);
    if constexpr (space == MemorySpace::host) data_ = backend.allocate_host(bytes);
  }
  BackendMemory(BackendMemory&& other) noexcept
      : backend_(other.backend_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  BackendMemory& operator=(BackendMemory&& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  BackendMemory(const BackendMemory&) = delete;
  BackendMemory& operator=(const BackendMemory&) = delete;
  ~BackendMemory() {
    if (data_ == nullptr) return;
    if constexpr (space == MemorySpace::device) backend_->deallocate(data_, bytes_);
    if constexpr (space == MemorySpace::host) backend_->deallocate_host(data_, bytes_);
  }

  /// False when memory was asked for and not to be had.
  [[nodiscard]] bool ok() const noexcept { return bytes_ <= 0 || data_ != nullptr; }
  [[nodiscard]] char* data() const noexcept { return static_cast<char*>(data_); }

 private:
  Backend* backend_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace growpage::detail
