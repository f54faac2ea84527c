// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

#include "error.hpp"
#include "growpage/core/status.hpp"
#include "growpage/growpage.h"
#include "hooks.hpp"

/// Handles are (kind, generation, index) triples that look like pointers, resolved through a table,
/// so that a handle that was destroyed, is of another type or never was one is recognised without
/// touching memory that may be gone.
namespace growpage::capi {

enum class HandleKind : std::uintptr_t { cache = 1, policy, scheduler, prefix_index };

inline constexpr std::uint32_t handle_index_bits = 16, handle_kind_shift = 60;
static_assert(sizeof(std::uintptr_t) == 8, "kind, generation and index share a pointer");

/// A place in the table: 1.5 MiB of zeros that the operating system backs as they are used.
struct HandleEntry {
  std::atomic<std::uintptr_t> live{0};  // the handle's value while it is alive
  void* object = nullptr;               // written before `live`, read after it
  std::uint32_t generation = 0;
  std::uint32_t next_free = 0;  // index + 1
};
extern HandleEntry handle_table[1U << handle_index_bits];

/// A handle's value for the object; 0 when the table is full. Takes a lock.
[[nodiscard]] std::uintptr_t add_handle(HandleKind kind, void* object) noexcept;
/// Forgets it. Precondition: found. Takes a lock.
void remove_handle(std::uintptr_t handle) noexcept;

/// The object, or null. Takes no lock.
[[nodiscard]] inline void* find_handle(HandleKind kind, std::uintptr_t handle) noexcept {
  const HandleEntry& entry = handle_table[handle & ((1U << handle_index_bits) - 1)];
  if (handle >> handle_kind_shift != static_cast<std::uintptr_t>(kind)) return nullptr;
  if (entry.live.load(std::memory_order_acquire) != handle) return nullptr;
  if (entry.object == nullptr) __builtin_unreachable();  // spares the callers a second test
  return entry.object;
}

template <class Object>
[[nodiscard]] Object* find(const typename Object::Handle* handle) noexcept {
  return static_cast<Object*>(find_handle(Object::kind, reinterpret_cast<std::uintptr_t>(handle)));
}

inline Status unknown_handle(const void* handle, const char* name) {
  return Status::invalid(name, handle == nullptr ? "null" : "destroyed, foreign or never created",
                         "a live handle");
}
/// fail() of that.
growpage_status fail_handle(const void* handle, const char* name) noexcept;

/// Runs `f(object)` for the object behind `handle`.
template <class Object, class F>
growpage_status with(const typename Object::Handle* handle, F&& f) noexcept {
  Object* const object = find<Object>(handle);
  if (object == nullptr) [[unlikely]] {
    return fail_handle(handle, Object::name);
  }
  return run(&object->hooks, [&] { return f(*object); });
}

/// An Object in the memory of its hooks, which its handle owns.
template <class Object>
class Owned {
 public:
  explicit Owned(const Hooks& hooks) {
    void* memory = hooks.allocate(sizeof(Object), alignof(Object));
    if (memory == nullptr) throw std::bad_alloc();
    object_ = new (memory) Object(hooks);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (object_ != nullptr) destroy(object_);
  }

  [[nodiscard]] Object* operator->() const noexcept { return object_; }
  [[nodiscard]] Object& operator*() const noexcept { return *object_; }

  /// Gives the object to a new handle.
  Status publish(typename Object::Handle** handle) {
    const std::uintptr_t value = add_handle(Object::kind, object_);
    if (value == 0) throw std::bad_alloc();
    object_ = nullptr;
    *handle = reinterpret_cast<typename Object::Handle*>(value);
    return {};
  }

  static void destroy(Object* object) noexcept {
    const Hooks hooks = object->hooks;
    object->~Object();
    hooks.deallocate(object, sizeof(Object), alignof(Object));
  }

 private:
  Object* object_ = nullptr;
};

/// Destroys the object behind a handle that may be null. `f(object)` may refuse.
template <class Object, class F>
growpage_status destroy(typename Object::Handle* handle, F&& f) noexcept {
  if (handle == nullptr) return GROWPAGE_OK;
  const growpage_status status = with<Object>(handle, f);
  if (status != GROWPAGE_OK) return status;
  Object* const object = find<Object>(handle);
  remove_handle(reinterpret_cast<std::uintptr_t>(handle));
  Owned<Object>::destroy(object);
  return GROWPAGE_OK;
}

}  // namespace growpage::capi
