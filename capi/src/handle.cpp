// SPDX-License-Identifier: Apache-2.0
#include "handle.hpp"

#include <atomic>
#include <mutex>

namespace growpage::capi {

namespace {

constexpr std::uint32_t chunk_bits = 8;
constexpr std::uint32_t index_bits = 16;
constexpr std::uint32_t chunk_size = 1U << chunk_bits;
constexpr std::uint32_t chunks_max = 1U << (index_bits - chunk_bits);
static_assert(sizeof(std::uintptr_t) == 8, "generation and index share a pointer");

struct Entry {
  // The handle's value while it is alive. Kind and object are written before it and read after it.
  std::atomic<std::uintptr_t> live{0};
  HandleKind kind{};
  void* object = nullptr;
  std::uintptr_t generation = 0;
  std::uint32_t next_free = 0;  // index + 1
};

struct Table {
  std::mutex mutex;  // of everything but `live`
  std::atomic<Entry*> chunks[chunks_max]{};
  std::uint32_t used = 0;
  std::uint32_t free = 0;  // index + 1
};

// Constant initialised and trivially destroyed: handles may be looked up by constructors and
// destructors of other static objects.
constinit Table table;

Entry* entry_of(std::uintptr_t handle) noexcept {
  const auto index = static_cast<std::uint32_t>(handle & ((1U << index_bits) - 1));
  Entry* chunk = table.chunks[index >> chunk_bits].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : chunk + (index & (chunk_size - 1));
}

}  // namespace

std::uintptr_t add_handle(HandleKind kind, void* object) noexcept {
  const std::lock_guard lock(table.mutex);
  std::uint32_t index = table.free != 0 ? table.free - 1 : table.used;
  if (index >> index_bits != 0) return 0;
  std::atomic<Entry*>& chunk = table.chunks[index >> chunk_bits];
  if (chunk.load(std::memory_order_relaxed) == nullptr) {
    Entry* entries = new (std::nothrow) Entry[chunk_size];
    if (entries == nullptr) return 0;
    chunk.store(entries, std::memory_order_release);
  }
  Entry& entry = *entry_of(index);
  if (table.free != 0) {
    table.free = entry.next_free;
  } else {
    ++table.used;
  }
  entry.kind = kind;
  entry.object = object;
  const std::uintptr_t handle = (++entry.generation << index_bits) | index;
  entry.live.store(handle, std::memory_order_release);
  return handle;
}

void remove_handle(std::uintptr_t handle) noexcept {
  const std::lock_guard lock(table.mutex);
  Entry& entry = *entry_of(handle);
  entry.live.store(0, std::memory_order_release);
  entry.next_free = table.free;
  table.free = static_cast<std::uint32_t>(handle & ((1U << index_bits) - 1)) + 1;
}

void* find_handle(HandleKind kind, std::uintptr_t handle) noexcept {
  const Entry* entry = entry_of(handle);
  if (entry == nullptr || handle == 0) return nullptr;
  if (entry->live.load(std::memory_order_acquire) != handle) return nullptr;
  return entry->kind == kind ? entry->object : nullptr;
}

}  // namespace growpage::capi
