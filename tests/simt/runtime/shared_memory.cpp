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
// CUB's storage types ask for less than what they hold; on a device nobody notices.
constexpr std::size_t least_alignment = 128;

// By slot; what no thread of the block has asked for yet is null.
std::vector<void*>& variables() {
  static auto& memory = *new std::vector<void*>;
  return memory;
}
void* dynamic_memory = nullptr;

void* allocate(std::size_t alignment, std::size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, least_alignment), bytes) != 0) std::abort();
  std::memset(memory, garbage, bytes);
  return memory;
}

}  // namespace

BlockMemory::BlockMemory(std::size_t dynamic_bytes) {
  if (dynamic_bytes > 0) dynamic_memory = allocate(least_alignment, dynamic_bytes);
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
