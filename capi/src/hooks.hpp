// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>

#include "growpage/backend/cpu.hpp"
#include "growpage/core/status.hpp"
#include "growpage/growpage.h"

namespace growpage::capi {

/// The hooks of a handle, checked and copied.
class Hooks {
 public:
  /// `in` may be null: the library's own allocator, no log.
  static Status read(const growpage_hooks* in, Hooks& out);

  /// Zeroed memory; null = none.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) const;
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment) const noexcept;
  [[nodiscard]] bool allocates() const noexcept { return hooks_.allocate != nullptr; }

  void log(std::int32_t level, const char* message) const noexcept;
  [[nodiscard]] bool logs(std::int32_t level) const noexcept {
    return hooks_.log != nullptr && level <= hooks_.log_level;
  }

 private:
  growpage_hooks hooks_{};
};

/// The CPU backend with the memory of the hooks.
class HookedCpuBackend : public CpuBackend {
 public:
  HookedCpuBackend(const Hooks& hooks, Executor executor, Isa isa) noexcept
      : CpuBackend(executor, isa), hooks_(hooks) {}

  [[nodiscard]] void* allocate(std::int64_t bytes) {
    if (!hooks_.allocates()) return CpuBackend::allocate(bytes);
    return bytes < 0 ? nullptr : hooks_.allocate(static_cast<std::size_t>(bytes), 64);
  }
  void deallocate(void* memory, std::int64_t bytes) noexcept {
    if (!hooks_.allocates()) return CpuBackend::deallocate(memory, bytes);
    hooks_.deallocate(memory, static_cast<std::size_t>(bytes), 64);
  }
  [[nodiscard]] void* allocate_host(std::int64_t bytes) { return allocate(bytes); }
  void deallocate_host(void* memory, std::int64_t bytes) noexcept { deallocate(memory, bytes); }

 private:
  Hooks hooks_;
};

static_assert(KvBackend<HookedCpuBackend>);

}  // namespace growpage::capi
