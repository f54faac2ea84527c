// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numbers>

#include "boundary_stage.cuh"
#include "numeric.cuh"
#include "simt.cuh"
#include "warp.cuh"

/// From summaries (or the window) to the queries that meet the keys: calibrated, rotated, rounded.
/// In double up to the last step, as in the CPU backend: rounding to bf16 is then the same but for
/// numbers on the edge to within double's precision. It is a few operations per element of a
/// summary, against thousands of keys: noise even where double is slow.
namespace growpage::cuda {

inline constexpr int rope_threads = 128;
inline constexpr int query_threads = 128;
inline constexpr int query_warps = query_threads / warp_lanes;

/// Grid (request, lag): cosines and sines of a position, once for all layers and heads. At position
/// 10^6 a float angle is off by several hundredths of a radian, so angles are double. Also the
/// first kernel of a pass: it clears the sums.
__global__ void __launch_bounds__(rope_threads)
    rope_kernel(const __grid_constant__ BoundaryStage stage) {
  const std::int64_t request = blockIdx.x;
  const std::int32_t lag = static_cast<std::int32_t>(blockIdx.y);
  const BoundaryBatch& batch = stage.batch;
  if (lag == 0 && threadIdx.x < 2 && batch.sums != nullptr) {
    batch.sums[2 * request + threadIdx.x] = 0;
  }
  const BoundaryRequest input = batch.inputs[request];
  const std::int64_t position = input.position - lag;
  if (input.slots == 0 || position < 0) return;
  const RopeParams& rope = batch.rope;
  const std::int32_t half = rope.rotary_dim / 2;
  double* out = stage.scratch.rope + (request * stage.scratch.lags + lag) * rope.rotary_dim;
  const double scale = static_cast<double>(rope.attention_scale);
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < half; i += rope_threads) {
    double cosine = 0;
    double sine = 0;
    if (rope.cos_table != nullptr) {
      cosine = static_cast<double>(rope.cos_table[position * half + i]);
      sine = static_cast<double>(rope.sin_table[position * half + i]);
    } else {
      const double angle = static_cast<double>(position) * static_cast<double>(rope.inv_freq[i]);
      // In units of π the reduction is exact and short: that of sin and cos takes a table in local
      // memory for angles as large as positions make them.
      sincospi(angle * std::numbers::inv_pi, &sine, &cosine);
    }
    out[i] = cosine * scale;
    out[half + i] = sine * scale;
  }
}

/// Element `i` of the query `q` after rotation by a row of `rope_kernel`.
__device__ __forceinline__ double rotated(const RopeParams& rope, const double* row,
                                          const double* q, std::int32_t i) {
  if (i >= rope.rotary_dim) return q[i];
  const std::int32_t half = rope.rotary_dim / 2;
  const bool split = rope.pairing == RopePairing::half_split;
  const bool second = split ? i >= half : i % 2 != 0;
  const std::int32_t pair = split ? i % half : i / 2;
  const double a = q[split ? pair : 2 * pair];
  const double b = q[split ? half + pair : 2 * pair + 1];
  const double cosine = row[pair];
  const double sine = row[half + pair];
  return second ? b * cosine + a * sine : a * cosine - b * sine;
}

/// Loads query `j` of a task into `q` [head_dim], calibrated; false when there is no such query.
/// All lanes of a warp call it.
__device__ __forceinline__ bool load_query(const BoundaryStage& stage, const BoundaryTask& task,
                                           std::int32_t j, double* q) {
  const SummaryView& state = stage.batch.summaries;
  const std::int32_t dim = state.head_dim;
  const std::int32_t query_head = task.head * stage.group + j % stage.group;
  const std::int64_t row = std::int64_t{task.layer} * state.slots + task.input.summary_slot;
  if (stage.window) {
    const std::int64_t lag = stage.first_lag + j / stage.group;
    if (lag >= window_count(stage, task)) return false;
    const std::int64_t index = (state.steps[row] - 1 - lag) % state.window_size;
    const float* source =
        state.window + ((row * state.window_size + index) * state.query_heads + query_head) * dim;
    for (std::int32_t i = lane_id(); i < dim; i += warp_lanes) {
      q[i] = static_cast<double>(source[i]);
    }
    __syncwarp();
    return true;
  }
  const DType dtype = state.storage == SummaryOptions::Storage::f32 ? DType::f32 : DType::f16;
  const std::int64_t first = ((row * 2 + j / stage.group) * state.query_heads + query_head) * dim;
  double squares = 0;
  for (std::int32_t i = lane_id(); i < dim; i += warp_lanes) {
    const auto x = static_cast<double>(load_as_float(state.summaries, dtype, first + i));
    q[i] = x;
    squares += x * x;
  }
  const double rms = sqrt(warp_sum(squares) / dim);
  const double factor =
      static_cast<double>(state.query_rms[row * state.query_heads + query_head]) / (rms + 1e-6);
  for (std::int32_t i = lane_id(); i < dim; i += warp_lanes) q[i] *= factor;
  __syncwarp();
  return true;
}

/// The power of two that brings numbers up to `largest` into the middle of half's range.
__device__ __forceinline__ float split_scale(float largest) {
  if (!(largest > 0.0F) || largest > FLT_MAX) return 1.0F;
  const int exponent = static_cast<int>(__float_as_uint(largest) >> 23) - 127;  // 0: subnormal
  return ldexpf(1.0F, min(10 - exponent, 126));
}

/// Grid (query / query_warps, task), a warp per query; dynamic shared memory for query_warps rows
/// of doubles.
// Eight blocks: left alone, ptxas spills for more of them on sm_89.
__global__ void __launch_bounds__(query_threads, 8)
    query_kernel(const __grid_constant__ BoundaryStage stage) {
  GROWPAGE_DYNAMIC_SHARED(shared);
  const BoundaryTask task = boundary_task(stage);
  const std::int32_t j = static_cast<std::int32_t>(blockIdx.x) * query_warps + warp_id();
  if (task.slots == 0 || j >= stage.queries) return;
  const BoundaryScratch& scratch = stage.scratch;
  const RopeParams& rope = stage.batch.rope;
  const std::int32_t dim = stage.batch.shape.head_dim;
  double* q = reinterpret_cast<double*>(shared) + warp_id() * dim;
  const bool present = load_query(stage, task, j, q);
  const std::int64_t lag = stage.window ? stage.first_lag + j / stage.group : 0;
  const double* row =
      scratch.rope + (task.request * std::int64_t{scratch.lags} + lag) * rope.rotary_dim;
  const auto value = [&](std::int32_t i) {
    return present && i < dim ? static_cast<float>(rotated(rope, row, q, i)) : 0.0F;
  };

  std::byte* out = scratch.queries + query_row(stage, task, j) * scratch.query_bytes;
  float scale = 1.0F;
  if (stage.form == QueryForm::split_f16) {
    float largest = 0.0F;
    for (std::int32_t i = lane_id(); i < dim; i += warp_lanes) {
      largest = fmaxf(largest, fabsf(value(i)));
    }
    scale = split_scale(warp_max(largest));
  }
  for (std::int32_t i = lane_id(); i < scratch.padded_dim; i += warp_lanes) {
    const float x = value(i);
    if (stage.form == QueryForm::bf16) {
      reinterpret_cast<__nv_bfloat16*>(out)[i] = from_float<__nv_bfloat16>(x);
    } else if (stage.form == QueryForm::split_f16) {
      const float scaled = x * scale;
      const __half high = from_float<__half>(scaled);
      const float rest = scaled - to_float(high);
      auto* halves = reinterpret_cast<__half*>(out);
      halves[i] = high;
      // What is left of infinity is NaN: its products alone decide.
      halves[scratch.padded_dim + i] = from_float<__half>(rest == rest ? rest : 0.0F);
    } else {
      // Rows too long for the matrix units: rounded all the same when keys are bf16.
      const bool round = stage.batch.kv.k.dtype == DType::bf16;
      reinterpret_cast<float*>(out)[i] = round ? to_float(from_float<__nv_bfloat16>(x)) : x;
    }
  }
  if (lane_id() == 0) {
    scratch.query_scales[query_row(stage, task, j)] = stage.softmax_scale / scale;
  }
}

}  // namespace growpage::cuda
