// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "error.hpp"
#include "growpage/core/status.hpp"
#include "growpage/growpage.h"
#include "hooks.hpp"

/// Handles are (generation, index) pairs that look like pointers, resolved through a table, so that
/// a handle that was destroyed, is of another type or never was one is recognised without touching
/// memory that may be gone.
namespace growpage::capi {

enum class HandleKind : std::uint32_t { cache = 1, policy, scheduler, prefix_index };

/// A handle's value for the object; 0 when the table is full. Takes a lock.
[[nodiscard]] std::uintptr_t add_handle(HandleKind kind, void* object) noexcept;
/// Forgets it. Precondition: found. Takes a lock.
void remove_handle(std::uintptr_t handle) noexcept;
/// The object, or null. Takes no lock.
[[nodiscard]] void* find_handle(HandleKind kind, std::uintptr_t handle) noexcept;

template <class Object>
[[nodiscard]] Object* find(const typename Object::Handle* handle) noexcept {
  return static_cast<Object*>(find_handle(Object::kind, reinterpret_cast<std::uintptr_t>(handle)));
}

inline Status unknown_handle(const void* handle, const char* name) {
  return Status::invalid(name, handle == nullptr ? "null" : "destroyed, foreign or never created",
                         "a live handle");
}

/// Runs `f(object)` for the object behind `handle`.
template <class Object, class F>
growpage_status with(const typename Object::Handle* handle, F&& f) noexcept {
  Object* const object = find<Object>(handle);
  if (object == nullptr) {
    return run(nullptr, [&] { return unknown_handle(handle, Object::name); });
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
