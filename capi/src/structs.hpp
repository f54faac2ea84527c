// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "growpage/core/status.hpp"
#include "growpage/growpage.h"

/// How structs with `struct_size` cross the boundary, whichever of caller and library is newer.
namespace growpage::capi {

/// No struct will ever be longer: a larger size is an uninitialised one. No version's size is odd
/// either, so that what is copied never ends inside a pointer.
inline constexpr std::size_t max_struct_size = 4096;

constexpr bool possible_struct_size(std::size_t size) noexcept {
  return size >= sizeof(std::size_t) && size <= max_struct_size && size % alignof(void*) == 0;
}

inline Status check_struct_size(const char* type, std::size_t size) {
  if (possible_struct_size(size)) return {};
  return Status::invalid(std::string(type) + ".struct_size", static_cast<std::int64_t>(size),
                         "sizeof of the struct");
}

/// The known part of `in` over the defaults in `out`. Null leaves the defaults; a tail that this
/// library does not know must be zero.
template <class T>
  requires std::is_trivially_copyable_v<T>
Status read_struct(const char* type, const T* in, T& out) {
  if (in == nullptr) return {};
  std::size_t size = 0;
  std::memcpy(&size, in, sizeof size);
  if (Status s = check_struct_size(type, size); !s.ok()) return s;
  const char* bytes = reinterpret_cast<const char*>(in);
  for (std::size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      return Status::invalid(std::string(type) + ".struct_size", static_cast<std::int64_t>(size),
                             "at most " + std::to_string(sizeof(T)) +
                                 " when newer fields are set, which this library does not know");
    }
  }
  std::memcpy(static_cast<void*>(&out), in, std::min(size, sizeof(T)));
  out.struct_size = sizeof(T);
  return {};
}

/// The same for a struct that must be there.
template <class T>
Status read_required(const char* type, const T* in, T& out) {
  if (in == nullptr) return Status::invalid(type, "null", "a non-null pointer");
  return read_struct(type, in, out);
}

/// The first `size` bytes of `value`, then zeros, with struct_size = size. False, and nothing
/// written, for a null pointer or a bad size.
template <class T>
  requires std::is_trivially_copyable_v<T>
bool write_sized(T* out, std::size_t size, const T& value) noexcept {
  if (out == nullptr || !possible_struct_size(size)) return false;
  char* bytes = reinterpret_cast<char*>(out);
  const std::size_t known = std::min(size, sizeof(T));
  std::memcpy(bytes, &value, known);
  std::memset(bytes + known, 0, size - known);
  std::memcpy(bytes, &size, sizeof size);
  return true;
}

/// Checks an output struct before work is done whose result it is to take.
template <class T>
Status check_output(const char* type, const T* out) {
  if (out == nullptr) return Status::invalid(type, "null", "a non-null pointer");
  std::size_t size = 0;
  std::memcpy(&size, out, sizeof size);
  return check_struct_size(type, size);
}

/// Writes `value` as far as the caller's struct goes. Precondition: check_output.
template <class T>
void write_struct(T* out, const T& value) noexcept {
  std::size_t size = 0;
  std::memcpy(&size, out, sizeof size);
  (void)write_sized(out, size, value);
}

/// True when `pointer` may stand for an array of `count`.
inline bool require_array(Status& status, const char* argument, const void* pointer,
                          std::size_t count) {
  if (count > static_cast<std::size_t>(PTRDIFF_MAX) / 64) {
    status = Status::invalid(std::string(argument) + " count", "beyond the address space",
                             "the number of elements");
    return false;
  }
  if (pointer != nullptr || count == 0) return true;
  status = Status::invalid(argument, "null", "a non-null pointer");
  return false;
}

}  // namespace growpage::capi
