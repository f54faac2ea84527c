// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "boundary_scratch.cuh"
#include "growpage/backend/cuda/boundary.hpp"
#include "layout.cuh"
#include "simt.cuh"

/// What every kernel of a boundary pass is given, by value.
///
/// Bytes per used slot and (request, layer, KV head), bf16 keys, G = 4, d = 128, one wave. What is
/// written in one stage and read in the next stays in L2, so HBM sees K, scores and little else:
///
///   stage        reads                             writes
///   queries      summaries (once per pass)         queries
///   logits       K: 256                            logits: 2·G·4 = 32
///   normalise    partial softmaxes: 2·G·16/256     –
///   scores       logits: 32                        scores: 4
///   working set  logits: 32, weights: 2·2·4 = 16   weights: 2·4 = 8, over a logit row
namespace growpage::cuda {

/// How a query is stored for the logit kernels.
enum class QueryForm : std::int32_t {
  bf16,       ///< [padded_dim], zeros behind head_dim
  split_f16,  ///< [2, padded_dim]: a half and the half of what it lost, over the query's scale
  f32,        ///< [padded_dim]
};

struct BoundaryStage {
  BoundaryBatch batch;
  BoundaryScratch scratch;
  QueryForm form;
  float softmax_scale;
  std::int32_t group;
  std::int64_t first_task;  ///< of the wave, among all (request, layer, KV head)
  std::int32_t queries;     ///< of a task: 2·G, short and long; or some lags' G each
  bool window;              ///< the queries are the window's, from `first_lag` on
  std::int32_t first_lag;
  bool candidates_only;  ///< demand alone: later slots are not read
};

/// The (request, layer, KV head) that a CTA works on.
struct BoundaryTask {
  BoundaryRequest input;
  std::int64_t local;  ///< row of the wave's scratch
  std::int32_t request;
  std::int32_t layer;
  std::int32_t head;
  std::int32_t slots;  ///< whose keys are read; 0 = nothing to do
  bool counted;        ///< it has a term in the demand
};

__device__ __forceinline__ BoundaryTask boundary_task(const BoundaryStage& stage) {
  const BoundaryBatch& batch = stage.batch;
  BoundaryTask task;
  task.local = blockIdx.y;
  const std::int64_t index = stage.first_task + task.local;
  const std::int64_t per_request = std::int64_t{batch.shape.layers} * batch.shape.kv_heads;
  task.request = static_cast<std::int32_t>(index / per_request);
  const auto rest = static_cast<std::int32_t>(index % per_request);
  task.layer = rest / batch.shape.kv_heads;
  task.head = rest % batch.shape.kv_heads;
  task.input = batch.inputs[task.request];
  const std::uint8_t* mask = batch.demand.layer_mask;
  task.counted = batch.sums != nullptr && task.input.slots > 0 && task.input.candidates > 0 &&
                 (mask == nullptr || mask[task.layer] != 0);
  task.slots = !stage.candidates_only ? task.input.slots : task.counted ? task.input.candidates : 0;
  return task;
}

/// Row `query` of an array [task, query_rows].
__device__ __forceinline__ std::int64_t query_row(const BoundaryStage& stage,
                                                  const BoundaryTask& task, std::int32_t query) {
  return task.local * stage.scratch.query_rows + query;
}

/// The first softmax of a row ends here: behind the candidates, or behind what a window's query
/// saw.
__device__ __forceinline__ std::int32_t split_slot(const BoundaryStage& stage,
                                                   const BoundaryTask& task, std::int32_t query) {
  return stage.window ? task.input.slots - (stage.first_lag + query / stage.group)
                      : task.input.candidates;
}

/// Queries of the window that this request has.
__device__ __forceinline__ std::int64_t window_count(const BoundaryStage& stage,
                                                     const BoundaryTask& task) {
  const SummaryView& state = stage.batch.summaries;
  if (state.window == nullptr) return 0;
  std::int64_t count =
      state.steps[std::int64_t{task.layer} * state.slots + task.input.summary_slot];
  count = min(count, static_cast<std::int64_t>(task.input.slots));
  count = min(count, static_cast<std::int64_t>(stage.batch.retention.window));
  count = min(count, static_cast<std::int64_t>(state.window_size));
  return min(count, task.input.position + 1);
}

/// Where a task's scores start in arrays of scores.
__device__ __forceinline__ std::int64_t score_row(const BoundaryStage& stage,
                                                  const BoundaryTask& task) {
  const std::int64_t row = std::int64_t{task.layer} * stage.batch.shape.kv_heads + task.head;
  return task.request * stage.batch.score_request_stride + row * stage.batch.score_stride;
}

/// Address of the key of `slot`.
__device__ __forceinline__ const char* key_address(const BoundaryStage& stage,
                                                   const BoundaryTask& task, std::int32_t slot) {
  const BoundaryBatch& batch = stage.batch;
  const std::int32_t b = batch.shape.page_size;
  const std::int32_t page = batch.block_table[task.request * batch.block_table_stride + slot / b];
  return row_address(batch.kv.k, layer_address(batch.kv.k, task.layer), page, task.head, slot % b);
}

}  // namespace growpage::cuda
