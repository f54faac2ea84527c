// SPDX-License-Identifier: Apache-2.0
#include "plan.cuh"

#include "status.cuh"

namespace growpage::cuda {

Status plan_compaction(const PlanBatch& batch, StreamView stream) {
  if (batch.requests <= 0) return {};
  constexpr int warps = plan_threads / warp_lanes;
  const auto blocks = static_cast<unsigned>((batch.requests + warps - 1) / warps);
  return device_status(launch(plan_kernel, blocks, plan_threads, 0, to_cuda(stream), batch),
                       "launch of plan_compaction");
}

}  // namespace growpage::cuda
