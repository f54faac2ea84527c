// SPDX-License-Identifier: Apache-2.0
#pragma once

/// CUDA on the CPU, for tests: this header stands where nvcc's built-ins would. The toolkit's own
/// headers give the types and the runtime's prototypes; tests/simt/runtime replaces libcudart. A
/// CUDA thread is a fibre, blocks run one after the other, and the order of both comes from a seed.
///
/// Kernel sources do not include this but cuda/simt.cuh. Not covered: clusters, cooperative groups,
/// grid-wide synchronisation, inline PTX. A loop that waits for another thread needs __nanosleep().
/// Kernels can read pageable host memory here, which most devices cannot.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "simt/atomics.hpp"
#include "simt/barriers.hpp"
#include "simt/builtins.hpp"
#include "simt/half.hpp"
#include "simt/intrinsics.hpp"
#include "simt/launch.hpp"
#include "simt/settings.hpp"
#include "simt/shared.hpp"
#include "simt/warp.hpp"
