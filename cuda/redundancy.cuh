// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "block.cuh"
#include "boundary_stage.cuh"
#include "numeric.cuh"
#include "simt.cuh"
#include "warp.cuh"

/// Redundancy of keys, an option that is off by default: plain code for all dtypes, K read twice
/// more.
///
/// sim_i is the mean cosine of key i with the other used slots' keys. Since Σ_j k̂_i·k̂_j =
/// k̂_i·(Σ_j k̂_j) it takes two linear passes, not n² products. A key of length 0 or not finite is
/// similar to nothing.
namespace growpage::cuda {

inline constexpr int redundancy_threads = block_threads;
inline constexpr int redundancy_warps = redundancy_threads / warp_lanes;
static_assert(redundancy_threads == chunk_slots, "a warp's lanes hold its rows' results");

/// Grid (chunk, task): Σ of a chunk's unit keys, in double, and every key's inverse norm.
__global__ void __launch_bounds__(redundancy_threads)
    direction_kernel(const __grid_constant__ BoundaryStage stage) {
  GROWPAGE_SHARED(double, inverse, [chunk_slots]);
  GROWPAGE_SHARED(const char*, rows, [chunk_slots]);
  const BoundaryTask task = boundary_task(stage);
  const BoundaryScratch& scratch = stage.scratch;
  const auto chunk = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t first = chunk * chunk_slots;
  if (first >= task.slots) return;
  const DType dtype = stage.batch.kv.k.dtype;
  const std::int32_t dim = stage.batch.shape.head_dim;
  const std::int32_t count = min(task.slots - first, chunk_slots);
  for (std::int32_t i = warp_id(); i < count; i += redundancy_warps) {
    const char* row = key_address(stage, task, first + i);
    double squares = 0;
    for (std::int32_t d = lane_id(); d < dim; d += warp_lanes) {
      const auto x = static_cast<double>(load_as_float(row, dtype, d));
      squares += x * x;
    }
    const double norm = sqrt(warp_sum(squares));
    if (lane_id() > 0) continue;
    const bool usable = norm > 0 && norm < static_cast<double>(FLT_MAX);
    rows[i] = row;
    inverse[i] = usable ? 1.0 / norm : 0.0;
    scratch.similarity[task.local * scratch.row + first + i] = static_cast<float>(inverse[i]);
  }
  __syncthreads();
  double* out = scratch.directions + (task.local * scratch.chunks + chunk) * dim;
  for (auto d = static_cast<std::int32_t>(threadIdx.x); d < dim; d += redundancy_threads) {
    double sum = 0;
    for (std::int32_t i = 0; i < count; ++i) {
      if (inverse[i] > 0) {
        sum += static_cast<double>(load_as_float(rows[i], dtype, d)) * inverse[i];
      }
    }
    out[d] = sum;
  }
}

/// Grid (chunk, task): similarity over temperature of a chunk's keys, and its part of their
/// softmax. Dynamic shared memory for head_dim floats.
__global__ void __launch_bounds__(redundancy_threads)
    similarity_kernel(const __grid_constant__ BoundaryStage stage) {
  GROWPAGE_DYNAMIC_SHARED(shared);
  GROWPAGE_SHARED(float, largest, [redundancy_warps]);
  GROWPAGE_SHARED(BlockScratch<float>, sums, );
  auto* const total = reinterpret_cast<float*>(shared);
  const BoundaryTask task = boundary_task(stage);
  const BoundaryScratch& scratch = stage.scratch;
  const auto chunk = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t first = chunk * chunk_slots;
  if (first >= task.slots) return;
  const DType dtype = stage.batch.kv.k.dtype;
  const std::int32_t dim = stage.batch.shape.head_dim;
  const std::int32_t chunks = (task.slots + chunk_slots - 1) / chunk_slots;
  const double* directions = scratch.directions + task.local * scratch.chunks * dim;
  for (auto d = static_cast<std::int32_t>(threadIdx.x); d < dim; d += redundancy_threads) {
    double sum = 0;
    for (std::int32_t c = 0; c < chunks; ++c) sum += directions[std::int64_t{c} * dim + d];
    total[d] = static_cast<float>(sum);
  }
  __syncthreads();

  const double others = static_cast<double>(max(task.slots - 1, 1));
  const double temperature = static_cast<double>(stage.batch.retention.redundancy_temperature);
  float mine = minus_infinity();  // of the warp's row lane_id()
  for (std::int32_t r = 0; r < warp_lanes; ++r) {
    const std::int32_t slot = first + warp_id() * warp_lanes + r;
    if (slot >= task.slots) break;
    const char* row = key_address(stage, task, slot);
    double product = 0;
    for (std::int32_t d = lane_id(); d < dim; d += warp_lanes) {
      product += static_cast<double>(total[d]) * static_cast<double>(load_as_float(row, dtype, d));
    }
    const auto dot = static_cast<double>(static_cast<float>(warp_sum(product)));
    if (lane_id() != r) continue;
    float& similarity = scratch.similarity[task.local * scratch.row + slot];
    const double mean =
        similarity == 0.0F ? 0.0 : (dot * static_cast<double>(similarity) - 1.0) / others;
    mine = sanitize(static_cast<float>(mean / temperature));
    similarity = mine;
  }
  const float warp_largest = warp_max(mine);
  if (lane_id() == 0) largest[warp_id()] = warp_largest;
  __syncthreads();
  float block_largest = minus_infinity();
  for (const float x : largest) block_largest = fmaxf(block_largest, x);
  const float sum = block_sum(mine > minus_infinity() ? expf(mine - block_largest) : 0.0F, sums);
  if (threadIdx.x == 0) {
    scratch.similarity_parts[task.local * scratch.chunks + chunk] = {block_largest, sum};
  }
}

}  // namespace growpage::cuda
