// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>

#include "simt/launch.hpp"

namespace simt {

struct KernelFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs all blocks of a launch, in random order unless the order is `forward`. Throws
/// KernelFailure.
void run_grid(const std::function<void()>& run_thread, const LaunchShape& shape);

/// The opt-in of cudaFuncAttributeMaxDynamicSharedMemorySize.
void allow_shared_memory(const void* kernel, std::size_t bytes);

inline constexpr std::size_t shared_memory_default = 48U << 10;
inline constexpr std::size_t shared_memory_limit = 227U << 10;

}  // namespace simt
