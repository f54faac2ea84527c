// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace simt {

/// The part of a launch that is not the kernel's arguments.
struct LaunchShape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
};

/// `run_thread` is the kernel with its arguments, `kernel` its identity (function attributes).
cudaError_t launch_kernel(std::function<void()> run_thread, const void* kernel,
                          const LaunchShape& shape, cudaStream_t stream);

/// Enqueues a kernel, as growpage::cuda::launch does under nvcc.
template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes,
                   cudaStream_t stream, A&&... arguments) {
  std::tuple<std::decay_t<P>...> values(std::forward<A>(arguments)...);
  return launch_kernel([kernel, values = std::move(values)] { std::apply(kernel, values); },
                       reinterpret_cast<const void*>(kernel), {grid, block, shared_bytes}, stream);
}

}  // namespace simt

/// nvcc has this overload for kernels; the toolkit's header only under nvcc.
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
