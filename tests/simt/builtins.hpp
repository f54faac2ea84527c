// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simt/thread.hpp"

/// The qualifiers and variables that CUDA C++ has built in, for kernel sources only: some are
/// macros whose names are ordinary members elsewhere.

// Blocks run one at a time, so a plain static is the block's copy. Not thread_local: only ordinary
// globals have red zones under AddressSanitizer.
#undef __shared__
#define __shared__ static

#undef __launch_bounds__
#undef __cluster_dims__
#undef __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__

#define threadIdx (::simt::self().thread)
#define blockIdx (::simt::self().block)
#define blockDim (::simt::self().block_dim)
#define gridDim (::simt::self().grid_dim)
inline constexpr int warpSize = 32;

inline void __threadfence() { simt::fence(); }
inline void __threadfence_block() { simt::fence(); }
inline void __threadfence_system() { simt::fence(); }
inline void __nanosleep(unsigned) { simt::yield_thread(); }
[[noreturn]] inline void __trap(simt::Location at = simt::Location::current()) {
  simt::trap("__trap()", at);
}
