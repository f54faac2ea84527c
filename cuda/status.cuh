// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/core/status.hpp"
#include "growpage/core/stream.hpp"
#include "simt.cuh"

namespace growpage::cuda {

/// ok, or device_error with CUDA's own words about the call `what`.
[[nodiscard]] inline Status device_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  return Status::error(StatusCode::device_error, what, cudaGetErrorString(error), "cudaSuccess");
}

[[nodiscard]] inline cudaStream_t to_cuda(StreamView stream) noexcept {
  return static_cast<cudaStream_t>(stream.handle);
}

}  // namespace growpage::cuda
