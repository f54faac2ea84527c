// SPDX-License-Identifier: Apache-2.0
#include "simt/runtime/shared_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "simt/runtime/sanitizer.hpp"
#include "simt/thread.hpp"

namespace simt {

namespace {

constexpr int garbage = 0xCB;  // a float of -2.7e7

// By slot; what no thread of the block has asked for yet is null.
std::vector<void*>& variables() {
  static auto& memory = *new std::vector<void*>;
  return memory;
}
void* dynamic_memory = nullptr;

void* allocate(std::size_t alignment, std::size_t bytes) {
  void* memory = nullptr;
  // A power of two, as posix_memalign wants it.
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), bytes) != 0) std::abort();
  std::memset(memory, garbage, bytes);
  return memory;
}

}  // namespace

BlockMemory::BlockMemory(std::size_t dynamic_bytes) {
  if (dynamic_bytes > 0) dynamic_memory = allocate(128, dynamic_bytes);
}

BlockMemory::~BlockMemory() {
  // Under the scope the race detector takes neither this nor the next block's allocation for an
  // access: memory that two blocks have after each other is no race between them.
  const sanitizer::RuntimeScope scope;
  std::free(dynamic_memory);
  dynamic_memory = nullptr;
  for (void*& variable : variables()) {
    std::free(variable);
    variable = nullptr;
  }
}

void* shared_memory(SharedSlot& slot) {
  self();
  const sanitizer::RuntimeScope scope;
  if (slot.id < 0) {
    slot.id = static_cast<int>(variables().size());
    variables().push_back(nullptr);
  }
  void*& variable = variables()[static_cast<std::size_t>(slot.id)];
  if (variable == nullptr) variable = allocate(slot.alignment, slot.size);
  return variable;
}

unsigned char* dynamic_shared_memory() {
  self();
  return static_cast<unsigned char*>(dynamic_memory);
}

}  // namespace simt
