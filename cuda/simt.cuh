// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The one place where a kernel source learns what compiles it. With nvcc the kernels are CUDA;
/// with any other compiler they run on the CPU, every CUDA thread a fibre, so that CI without a GPU
/// executes them (tests/simt). Every file under cuda/ includes this instead of the CUDA headers.

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

/// A static shared-memory variable: `GROWPAGE_SHARED(float, tile, [32][33]);`.
#define GROWPAGE_SHARED(T, name, ...) __shared__ T name __VA_ARGS__
/// The dynamic shared memory of the launch, `unsigned char* name`, 128-byte aligned.
#define GROWPAGE_DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]

namespace growpage::cuda {

/// Enqueues `kernel`; what a launch can refuse at once comes back, nothing is printed.
template <class... P, class... A>
inline cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes,
                          cudaStream_t stream, A&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<A>(arguments)...);
}

}  // namespace growpage::cuda

#else

#define GROWPAGE_SIMT_EMULATION 1
#include "simt/emulation.hpp"

#define GROWPAGE_SHARED(T, name, ...) SIMT_SHARED(T, name, __VA_ARGS__)
#define GROWPAGE_DYNAMIC_SHARED(name) SIMT_DYN_SHARED(name)

namespace growpage::cuda {
using simt::launch;
}  // namespace growpage::cuda

#endif
