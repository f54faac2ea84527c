// SPDX-License-Identifier: Apache-2.0
#include "select.cuh"

#include <cstdint>

#include "select.hpp"
#include "status.cuh"

namespace growpage::cuda {
namespace {

/// What a CTA may have on every architecture from sm_80 on, less the histogram: rows of 24576
/// slots.
constexpr std::int64_t max_key_bytes = 96 << 10;
/// Above this a kernel has to opt in.
constexpr std::int64_t default_shared_bytes = 48 << 10;

template <class Keys, int page_keys>
Status launch_select(const SelectionBatch& batch, std::int64_t key_bytes, StreamView stream) {
  const auto kernel = select_kernel<Keys, page_keys>;
  const std::int64_t shared = Keys::in_shared ? key_bytes : 0;
  if (shared > default_shared_bytes) {
    const cudaError_t error =
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    if (error != cudaSuccess) return device_status(error, "shared memory of select");
  }
  const dim3 grid(static_cast<unsigned>(batch.requests), static_cast<unsigned>(batch.shape.layers),
                  static_cast<unsigned>(batch.shape.kv_heads));
  return device_status(
      launch(kernel, grid, select_threads, static_cast<std::size_t>(shared), to_cuda(stream), batch,
             batch.retention.local_quota(batch.shape.page_size)),
      "launch of select");
}

template <class Keys>
Status launch_page_size(const SelectionBatch& batch, std::int64_t key_bytes, StreamView stream) {
  switch (batch.shape.page_size) {
    case 16:
    case 32:
      return launch_select<Keys, 1>(batch, key_bytes, stream);
    case 64:
      return launch_select<Keys, 2>(batch, key_bytes, stream);
    case 128:
      return launch_select<Keys, 4>(batch, key_bytes, stream);
    case 256:
      return launch_select<Keys, 8>(batch, key_bytes, stream);
    case 512:
      return launch_select<Keys, 16>(batch, key_bytes, stream);
    default:
      return launch_select<Keys, 0>(batch, key_bytes, stream);
  }
}

}  // namespace

Status select_within(const SelectionBatch& batch, std::int64_t key_bytes, StreamView stream) {
  if (batch.requests <= 0) return {};
  const std::int64_t counts = batch.requests * batch.page_kept_stride;
  const cudaError_t error = cudaMemsetAsync(
      batch.page_kept, 0, static_cast<std::size_t>(counts) * sizeof(std::int32_t), to_cuda(stream));
  if (error != cudaSuccess) return device_status(error, "page counts of select");
  if (batch.max_slots <= 0) return {};
  const std::int64_t needed = std::int64_t{batch.max_slots} * 4;
  return needed <= key_bytes ? launch_page_size<SharedKeys>(batch, needed, stream)
                             : launch_page_size<ScoreKeys>(batch, needed, stream);
}

Status select(const SelectionBatch& batch, StreamView stream) {
  return select_within(batch, max_key_bytes, stream);
}

}  // namespace growpage::cuda
