// SPDX-License-Identifier: Apache-2.0
#include "compact.cuh"

#include "status.cuh"

namespace growpage::cuda {

Status compact(const CompactionBatch& batch, StreamView stream) {
  if (batch.requests <= 0) return {};
  CompactionBatch resolved = batch;
  resolve(resolved.shape, resolved.kv);
  const dim3 grid(static_cast<unsigned>(batch.requests), static_cast<unsigned>(batch.shape.layers),
                  static_cast<unsigned>(batch.shape.kv_heads));
  return device_status(launch(compact_kernel, grid, compact_threads, 0, to_cuda(stream), resolved),
                       "launch of compact");
}

}  // namespace growpage::cuda
