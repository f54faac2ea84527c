// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>

namespace simt {

/// One shared variable of one kernel. Its memory belongs to the block: fresh, filled with garbage
/// and of exactly its size, so that reading before writing, and beyond the end, both show.
struct SharedSlot {
  std::size_t size;
  std::size_t alignment;
  int id = -1;
};

void* shared_memory(SharedSlot& slot);

/// The launch's dynamic shared memory; null when the launch asked for none.
unsigned char* dynamic_shared_memory();

/// `Tag` is a lambda's type, so every declaration has a slot of its own.
template <class T, class Tag>
T& shared_variable(Tag) {
  static constinit SharedSlot slot{sizeof(T), alignof(T)};
  return *static_cast<T*>(shared_memory(slot));
}

}  // namespace simt

#define SIMT_SHARED(T, name, ...) \
  auto& name = ::simt::shared_variable<::std::type_identity_t<T> __VA_ARGS__>([] {})
#define SIMT_DYN_SHARED(name) unsigned char* const name = ::simt::dynamic_shared_memory()
