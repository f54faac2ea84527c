// SPDX-License-Identifier: Apache-2.0
#include "hooks.hpp"

#include <cstring>

#include "defaults.hpp"
#include "growpage/detail/require.hpp"
#include "structs.hpp"

namespace growpage::capi {

Status Hooks::read(const growpage_hooks* in, Hooks& out) {
  out.hooks_ = default_hooks();
  if (Status s = read_struct("growpage_hooks", in, out.hooks_); !s.ok()) return s;
  if ((out.hooks_.allocate == nullptr) != (out.hooks_.deallocate == nullptr)) {
    return Status::invalid("growpage_hooks.deallocate", "given without its partner",
                           "both of allocate and deallocate, or neither");
  }
  Status s;
  detail::require_range(s, "growpage_hooks.log_level", out.hooks_.log_level, GROWPAGE_LOG_ERROR,
                        GROWPAGE_LOG_DEBUG);
  return s;
}

void* Hooks::allocate(std::size_t bytes, std::size_t alignment) const {
  void* memory = nullptr;
  if (allocates()) {
    memory = hooks_.allocate(hooks_.allocator_context, bytes, alignment);
    if (reinterpret_cast<std::uintptr_t>(memory) % alignment != 0) {
      deallocate(memory, bytes, alignment);
      memory = nullptr;
    }
  } else {
    memory = ::operator new(bytes, std::align_val_t{alignment}, std::nothrow);
  }
  if (memory != nullptr) std::memset(memory, 0, bytes);
  return memory;
}

void Hooks::deallocate(void* memory, std::size_t bytes, std::size_t alignment) const noexcept {
  if (!allocates()) {
    ::operator delete(memory, std::align_val_t{alignment});
    return;
  }
  try {
    hooks_.deallocate(hooks_.allocator_context, memory, bytes);
  } catch (...) {  // a call-back in C++ that threw: the memory is its own affair
  }
}

void Hooks::log(std::int32_t level, const char* message) const noexcept {
  if (!logs(level)) return;
  try {
    hooks_.log(hooks_.log_context, level, message);
  } catch (...) {  // a log that throws must not change what the call answers
  }
}

}  // namespace growpage::capi
