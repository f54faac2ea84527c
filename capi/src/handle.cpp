// SPDX-License-Identifier: Apache-2.0
#include "handle.hpp"

#include <mutex>

namespace growpage::capi {

// Constant initialised and never destroyed: handles may be looked up by constructors and
// destructors of other static objects.
constinit HandleEntry handle_table[1U << handle_index_bits];

namespace {

constinit std::mutex mutex;    // of all below, and of what is written in the table
std::uint32_t used = 0;        // places at or past this were never used
std::uint32_t first_free = 0;  // index + 1

constexpr std::uint32_t index_mask = (1U << handle_index_bits) - 1;

}  // namespace

std::uintptr_t add_handle(HandleKind kind, void* object) noexcept {
  const std::lock_guard lock(mutex);
  const std::uint32_t index = first_free != 0 ? first_free - 1 : used;
  if (index > index_mask) return 0;
  HandleEntry& entry = handle_table[index];
  if (first_free != 0) {
    first_free = entry.next_free;
  } else {
    ++used;
  }
  entry.object = object;
  const std::uintptr_t handle = static_cast<std::uintptr_t>(kind) << handle_kind_shift |
                                std::uintptr_t{++entry.generation} << handle_index_bits | index;
  entry.live.store(handle, std::memory_order_release);
  return handle;
}

void remove_handle(std::uintptr_t handle) noexcept {
  const std::lock_guard lock(mutex);
  HandleEntry& entry = handle_table[handle & index_mask];
  entry.live.store(0, std::memory_order_release);
  entry.next_free = first_free;
  first_free = static_cast<std::uint32_t>(handle & index_mask) + 1;
}

growpage_status fail_handle(const void* handle, const char* name) noexcept {
  return run(nullptr, [&] { return unknown_handle(handle, name); });
}

}  // namespace growpage::capi
