// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "boundary_stage.cuh"
#include "numeric.cuh"
#include "simt.cuh"
#include "warp.cuh"

/// From the chunks' parts of a softmax to the whole.
namespace growpage::cuda {

inline constexpr int normalise_threads = 128;
inline constexpr int normalise_warps = normalise_threads / warp_lanes;

/// Part `which` of a row's softmax over all its chunks, in all lanes of a warp, Σ in double.
struct RowSoftmax {
  float max;
  double sum;
};
__device__ __forceinline__ RowSoftmax combine_parts(const PartialSoftmax* parts, int stride,
                                                    std::int32_t count) {
  float largest = minus_infinity();
  for (std::int32_t i = lane_id(); i < count; i += warp_lanes) {
    largest = fmaxf(largest, parts[std::int64_t{i} * stride].max);
  }
  largest = warp_max(largest);
  double sum = 0;
  for (std::int32_t i = lane_id(); i < count; i += warp_lanes) {
    const PartialSoftmax p = parts[std::int64_t{i} * stride];
    if (p.max > minus_infinity()) {
      sum += static_cast<double>(p.sum) * static_cast<double>(expf(p.max - largest));
    }
  }
  return {largest, warp_sum(sum)};
}

/// Grid (query / normalise_warps, task), a warp per query: one normaliser from its parts.
__global__ void __launch_bounds__(normalise_threads)
    normalise_kernel(const __grid_constant__ BoundaryStage stage) {
  const BoundaryScratch& scratch = stage.scratch;
  const BoundaryTask task = boundary_task(stage);
  const std::int32_t query = static_cast<std::int32_t>(blockIdx.x) * normalise_warps + warp_id();
  if (task.slots == 0 || query >= stage.queries) return;
  const std::int32_t chunks = (task.slots + chunk_slots - 1) / chunk_slots;
  const std::int64_t row = query_row(stage, task, query);
  const PartialSoftmax* parts = scratch.parts + row * scratch.chunks * 2;
  RowSoftmax before = combine_parts(parts, 2, chunks);
  const std::int32_t split = min(split_slot(stage, task, query), task.slots);
  // A row whose logits are all −inf is uniform.
  if (before.max == minus_infinity()) before.sum = static_cast<double>(max(split, 0));
  Normaliser n{};
  n.candidate_max = before.max;
  if (stage.window) {  // the mean over the window's queries, of what each saw
    n.candidate_factor =
        static_cast<float>(1.0 / (before.sum * static_cast<double>(window_count(stage, task))));
  } else {
    const RowSoftmax behind = combine_parts(parts + 1, 2, chunks);
    n.max = fmaxf(before.max, behind.max);
    const double shift = before.max == n.max ? 1.0
                         : before.max == minus_infinity()
                             ? 0.0
                             : exp(static_cast<double>(before.max) - static_cast<double>(n.max));
    double later = 0;
    if (n.max == minus_infinity()) {
      later = static_cast<double>(task.slots - split);
    } else if (behind.max > minus_infinity()) {
      later = behind.sum * exp(static_cast<double>(behind.max) - static_cast<double>(n.max));
    }
    const double sum = before.sum * shift + later;
    n.demand_factor = static_cast<float>(1.0 / (before.sum * stage.group));
    n.candidate_factor = static_cast<float>(shift / sum);
    n.later_factor = static_cast<float>(1.0 / sum);
  }
  if (lane_id() == 0) scratch.normalisers[row] = n;
}

}  // namespace growpage::cuda
