// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/cuda/compaction.hpp"
#include "simt.cuh"
#include "warp.cuh"

namespace growpage::cuda {

inline constexpr int plan_threads = 128;

/// The best victim of a request other than `taken`, or −1. Called by a warp. Among the pages that
/// qualify the smallest rank wins: fewest retained rows, then the later page.
[[nodiscard]] __device__ inline std::int32_t best_victim(const PlanBatch& batch,
                                                         const std::uint8_t* marks,
                                                         const std::int32_t* page_kept,
                                                         std::int32_t pages, std::int32_t taken) {
  constexpr std::uint64_t none = ~std::uint64_t{0};
  const bool holes = batch.strategy == CompactionStrategy::fill_holes;
  std::uint64_t best = none;
  // fill_holes never takes the newest page; in_order always empties the last private ones.
  for (std::int32_t p = lane_id(); p < (holes ? pages - 1 : pages); p += warp_lanes) {
    const std::uint8_t mark = marks[p];
    if ((mark & page_private) == 0 || p == taken) continue;
    if (holes && (mark & page_protected) != 0) continue;
    const std::uint64_t kept = holes ? static_cast<std::uint32_t>(page_kept[p]) : 0;
    const std::uint64_t rank = kept << 32 | (0xffffffffU - static_cast<std::uint32_t>(p));
    best = rank < best ? rank : best;
  }
  for (int step = warp_lanes / 2; step > 0; step /= 2) {
    const std::uint64_t other = __shfl_xor_sync(full_warp, best, step);
    best = other < best ? other : best;
  }
  return best == none ? -1
                      : static_cast<std::int32_t>(0xffffffffU - static_cast<std::uint32_t>(best));
}

/// A warp per request.
__global__ void __launch_bounds__(plan_threads) plan_kernel(PlanBatch batch) {
  const std::int64_t request = std::int64_t{blockIdx.x} * (plan_threads / warp_lanes) + warp_id();
  if (request >= batch.requests) return;
  const RetentionRequest input = batch.inputs[request];
  const std::uint8_t* const marks = batch.marks + request * batch.mark_stride;
  const std::int32_t* const page_kept = batch.page_kept + request * batch.page_kept_stride;
  const std::int32_t pages = (input.slots + batch.page_size - 1) / batch.page_size;
  RequestPlan plan;
  if (input.victims > 0) {
    const std::int32_t first = best_victim(batch, marks, page_kept, pages, -1);
    std::int32_t second = -1;
    bool found = first >= 0;
    if (found && input.victims > 1) {
      second = best_victim(batch, marks, page_kept, pages, first);
      found = second >= 0;
    }
    if (found) {
      plan.victims = input.victims;
      plan.victim[0] = second >= 0 ? min(first, second) : first;
      plan.victim[1] = second >= 0 ? max(first, second) : -1;
    } else {
      plan.status = static_cast<std::int32_t>(StatusCode::at_capacity);
    }
  }
  if (lane_id() == 0) batch.plans[request] = plan;
}

}  // namespace growpage::cuda
