// SPDX-License-Identifier: Apache-2.0
// Copies and fills. Copies from pageable memory are as late as all others: CUDA may or may not read
// it within the call, so a caller that changes it before a synchronisation is wrong.
#include <cstdint>
#include <cstring>

#include "simt/runtime/device.hpp"
#include "simt/runtime/memory.hpp"
#include "simt/runtime/stream.hpp"

namespace simt {

namespace {

struct Copy {
  void* to;
  std::size_t to_pitch;
  const void* from;
  std::size_t from_pitch;
  std::size_t width;  ///< bytes of a row
  std::size_t rows;

  void run() const {
    auto* target = static_cast<unsigned char*>(to);
    const auto* source = static_cast<const unsigned char*>(from);
    for (std::size_t row = 0; row < rows; ++row) {
      std::memcpy(target + row * to_pitch, source + row * from_pitch, width);
    }
  }
};

cudaError_t enqueue_copy(const Copy& copy, cudaMemcpyKind kind, cudaStream_t stream) {
  if (copy.rows == 0 || copy.width == 0) return device_error();
  if (copy.width > copy.to_pitch || copy.width > copy.from_pitch) {
    return refuse(cudaErrorInvalidPitchValue, "a row is longer than its pitch");
  }
  const bool any = kind == cudaMemcpyDefault;
  const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  const std::size_t before_last = copy.rows - 1;
  if (const cudaError_t error = check_range(copy.to, before_last * copy.to_pitch + copy.width,
                                            any || to_host, any || !to_host);
      error != cudaSuccess) {
    return error;
  }
  if (const cudaError_t error = check_range(copy.from, before_last * copy.from_pitch + copy.width,
                                            any || from_host, any || !from_host);
      error != cudaSuccess) {
    return error;
  }
  return enqueue(stream, [copy] { copy.run(); });
}

Copy flat(void* to, const void* from, std::size_t bytes) {
  return {to, bytes, from, bytes, bytes, 1};
}

/// The synchronous form: in the default stream, to its end.
cudaError_t copy_now(const char* call, const Copy& copy, cudaMemcpyKind kind) {
  if (const cudaError_t error = not_while_capturing(call, nullptr); error != cudaSuccess) {
    return error;
  }
  if (const cudaError_t error = enqueue_copy(copy, kind, nullptr); error != cudaSuccess) {
    return error;
  }
  const auto stream = find_stream(nullptr);
  drain(*stream, stream->enqueued);
  return device_error();
}

}  // namespace

}  // namespace simt

using simt::ApiCall;

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const ApiCall call;
  return simt::enqueue_copy(simt::flat(to, from, bytes), kind, stream);
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const ApiCall call;
  return simt::copy_now("cudaMemcpy", simt::flat(to, from, bytes), kind);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t rows,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  const ApiCall call;
  return simt::enqueue_copy({to, to_pitch, from, from_pitch, width, rows}, kind, stream);
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t rows, cudaMemcpyKind kind) {
  const ApiCall call;
  return simt::copy_now("cudaMemcpy2D", {to, to_pitch, from, from_pitch, width, rows}, kind);
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  const ApiCall call;
  if (const cudaError_t error = simt::check_range(memory, bytes, false, true);
      error != cudaSuccess) {
    return error;
  }
  return simt::enqueue(stream, [=] { std::memset(memory, value, bytes); });
}

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}

}  // extern "C"
