// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "simt/shared.hpp"

namespace simt {

/// The shared memory of one block: while it lives, shared_memory() and dynamic_shared_memory() give
/// out its parts.
class BlockMemory {
 public:
  explicit BlockMemory(std::size_t dynamic_bytes);
  ~BlockMemory();
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(const BlockMemory&) = delete;
};

}  // namespace simt
