// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <source_location>

namespace simt {

/// Where a kernel calls a barrier or a collective; errors name it.
using Location = std::source_location;

/// Who the running CUDA thread is. The built-in variables of a kernel read it.
struct ThreadView {
  uint3 thread;
  uint3 block;
  dim3 block_dim;
  dim3 grid_dim;
  unsigned lane;    ///< within the warp
  unsigned linear;  ///< within the block, x fastest
};

/// Null while host code runs. Every switch between threads sets it.
extern constinit const ThreadView* running_thread;

/// Ends the process: there is no way to go on, and no error code that the caller would look at.
[[noreturn]] void outside_kernel();

inline const ThreadView& self() {
  if (running_thread == nullptr) outside_kernel();
  return *running_thread;
}

/// Memory fence. Threads take turns, so it only tells the race detector.
void fence();

/// Lets another thread of the block run, so that a loop that waits for one ends.
void yield_thread();

/// Fails the kernel with a text that names the place.
[[noreturn]] void trap(const char* what, Location at);

}  // namespace simt
