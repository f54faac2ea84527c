// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "boundary_stage.cuh"
#include "numeric.cuh"
#include "products.cuh"
#include "simt.cuh"
#include "warp.cuh"

/// The one read of K: logits of all queries of a group, and the parts of their softmaxes.
namespace growpage::cuda {

inline constexpr int logit_threads = 256;
inline constexpr int logit_warps = logit_threads / warp_lanes;
inline constexpr int warp_tiles = 2;  ///< of 16 keys each, a warp's share of a chunk
static_assert(logit_warps * warp_tiles * 16 == chunk_slots);

/// Rows of the 16 slots from `first` on. A page holds a multiple of 16, so they lie in one.
__device__ __forceinline__ KeyRows tile_rows(const BoundaryStage& stage, const BoundaryTask& task,
                                             std::int32_t first) {
  if (first >= task.slots) return {nullptr, nullptr, false};
  const KvTensor& k = stage.batch.kv.k;
  const std::int64_t stride = k.layout.token_stride;
  const char* row = key_address(stage, task, first);
  const std::int32_t i = lane_id() / 4;
  const auto at = [&](std::int32_t offset) {
    return first + offset < task.slots ? row + offset * stride * element_bytes(k.dtype) : nullptr;
  };
  return {at(i), at(i + 8), vector_rows(row, stride, stage.batch.shape.head_dim, k.dtype)};
}

/// Largest and Σ over the lanes that share lane_id() % 4.
__device__ __forceinline__ float column_max(float x) {
  for (int step = 4; step < warp_lanes; step *= 2) {
    x = fmaxf(x, __shfl_xor_sync(full_warp, x, step));
  }
  return x;
}
__device__ __forceinline__ float column_sum(float x) {
  for (int step = 4; step < warp_lanes; step *= 2) x += __shfl_xor_sync(full_warp, x, step);
  return x;
}

/// A column's softmax over the slots of [first, end) among a lane's four, which are `slots`.
__device__ __forceinline__ PartialSoftmax
column_softmax(const float (&logits)[2 * warp_tiles], const std::int32_t (&slots)[2 * warp_tiles],
               std::int32_t first, std::int32_t end) {
  float largest = minus_infinity();
#pragma unroll
  for (int i = 0; i < 2 * warp_tiles; ++i) {
    if (slots[i] >= first && slots[i] < end) largest = fmaxf(largest, logits[i]);
  }
  largest = column_max(largest);
  float sum = 0.0F;
#pragma unroll
  for (int i = 0; i < 2 * warp_tiles; ++i) {
    if (slots[i] >= first && slots[i] < end && logits[i] > minus_infinity()) {
      sum += expf(logits[i] - largest);
    }
  }
  return {largest, column_sum(sum)};
}

/// Grid (chunk · query block, task): blocks of Products::queries queries of one chunk lie side by
/// side, so that all but the first find the keys in L2.
template <class Products>
__global__ void __launch_bounds__(logit_threads, Products::ctas)
    logit_kernel(const __grid_constant__ BoundaryStage stage) {
  constexpr int tiles = Products::queries / 8;
  GROWPAGE_DYNAMIC_SHARED(shared);
  GROWPAGE_SHARED(PartialSoftmax, parts, [logit_warps][Products::queries][2]);
  auto* const queries = reinterpret_cast<typename Products::Query*>(shared);
  const BoundaryScratch& scratch = stage.scratch;
  const BoundaryTask task = boundary_task(stage);
  const std::int32_t query_blocks = (stage.queries + Products::queries - 1) / Products::queries;
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t first_query = block % query_blocks * Products::queries;
  const std::int32_t chunk = block / query_blocks;
  if (chunk * chunk_slots >= task.slots) return;
  const std::int32_t first = chunk * chunk_slots + warp_id() * warp_tiles * 16;

  // The first keys are on their way while the queries come in.
  typename Products::Keys keys;
  Products::load(stage, tile_rows(stage, task, first), keys);
  Products::stage_queries(stage, task, first_query, queries);
  __syncthreads();

  float acc[warp_tiles][tiles][4] = {};
#pragma unroll
  for (int u = 0; u < warp_tiles; ++u) {
    if (u > 0) Products::load(stage, tile_rows(stage, task, first + u * 16), keys);
    Products::multiply(stage, keys, queries, acc[u]);
  }

  std::int32_t slots[2 * warp_tiles];
#pragma unroll
  for (int i = 0; i < 2 * warp_tiles; ++i) slots[i] = first + i * 8 + lane_id() / 4;
#pragma unroll
  for (int c = 0; c < 2 * tiles; ++c) {
    const int column = c / 2 * 8 + lane_id() % 4 * 2 + c % 2;
    const std::int32_t query = first_query + column;
    const bool wanted = query < stage.queries;
    const std::int64_t row = query_row(stage, task, wanted ? query : 0);
    const float scale = scratch.query_scales[row];
    float* out = scratch.logits + row * scratch.row;
    float logits[2 * warp_tiles];
#pragma unroll
    for (int i = 0; i < 2 * warp_tiles; ++i) {
      logits[i] = sanitize(acc[i / 2][c / 2][i % 2 * 2 + c % 2] * scale);
      if (wanted && slots[i] < task.slots) out[slots[i]] = logits[i];
    }
    const std::int32_t split = min(split_slot(stage, task, query), task.slots);
    const PartialSoftmax before = column_softmax(logits, slots, 0, split);
    const PartialSoftmax behind = column_softmax(logits, slots, split, task.slots);
    if (lane_id() < 4) {
      parts[warp_id()][column][0] = before;
      parts[warp_id()][column][1] = behind;
    }
  }
  __syncthreads();
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int32_t query = first_query + thread / 2;
  if (thread >= 2 * Products::queries || query >= stage.queries) return;
  PartialSoftmax whole{minus_infinity(), 0.0F};
  for (const auto& part : parts) whole.max = fmaxf(whole.max, part[thread / 2][thread % 2].max);
  for (const auto& part : parts) {
    const PartialSoftmax& p = part[thread / 2][thread % 2];
    if (p.max > minus_infinity()) whole.sum += p.sum * expf(p.max - whole.max);
  }
  scratch.parts[(query_row(stage, task, query) * scratch.chunks + chunk) * 2 + thread % 2] = whole;
}

}  // namespace growpage::cuda
