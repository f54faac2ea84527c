// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "boundary_stage.cuh"
#include "normalise.cuh"
#include "numeric.cuh"
#include "simt.cuh"

/// From logits to retention scores (algorithm, sections 4 and 6).
namespace growpage::cuda {

inline constexpr int score_threads = 256;
inline constexpr int widest_pool = 63;

/// Copies a task's normalisers to shared memory; all threads of the block.
__device__ __forceinline__ void load_normalisers(const BoundaryStage& stage,
                                                 const BoundaryTask& task, Normaliser* out) {
  const Normaliser* source = stage.scratch.normalisers + query_row(stage, task, 0);
  for (auto j = static_cast<std::int32_t>(threadIdx.x); j < stage.queries;
       j += static_cast<std::int32_t>(blockDim.x)) {
    out[j] = source[j];
  }
}

/// max(aˢ, aᴸ), max over the group, of one slot.
__device__ __forceinline__ float summary_score(const BoundaryStage& stage, const BoundaryTask& task,
                                               const Normaliser* normalisers, std::int32_t slot) {
  const float* logits = stage.scratch.logits + query_row(stage, task, 0) * stage.scratch.row + slot;
  const bool candidate = slot < task.input.candidates;
  float best = 0.0F;
  for (std::int32_t j = 0; j < stage.queries; ++j) {
    const Normaliser& n = normalisers[j];
    const float logit = logits[j * stage.scratch.row];
    best = fmaxf(best, candidate ? n.candidate_factor * softmax_weight(logit, n.candidate_max)
                                 : n.later_factor * softmax_weight(logit, n.max));
  }
  return best;
}

/// Grid (slot / score_threads, task), after the logits of each batch of window queries: adds their
/// share of the mean over the window of the max over the group, lag by lag. Dynamic shared memory
/// for the normalisers.
__global__ void __launch_bounds__(score_threads)
    window_kernel(const __grid_constant__ BoundaryStage stage) {
  GROWPAGE_DYNAMIC_SHARED(shared);
  auto* const normalisers = reinterpret_cast<Normaliser*>(shared);
  const BoundaryTask task = boundary_task(stage);
  const auto first = static_cast<std::int32_t>(blockIdx.x) * score_threads;
  if (first >= task.slots) return;
  load_normalisers(stage, task, normalisers);
  __syncthreads();
  const std::int32_t slot = first + static_cast<std::int32_t>(threadIdx.x);
  if (slot >= task.slots) return;
  const BoundaryScratch& scratch = stage.scratch;
  float& score = scratch.window_scores[task.local * scratch.row + slot];
  float sum = stage.first_lag == 0 ? 0.0F : score;
  const std::int64_t count = window_count(stage, task);
  const float* logits = scratch.logits + query_row(stage, task, 0) * scratch.row + slot;
  for (std::int32_t i = 0; i < stage.queries / stage.group; ++i) {
    const std::int32_t lag = stage.first_lag + i;
    if (lag >= count || slot >= task.slots - lag) break;  // the rest sees even less
    float best = 0.0F;
    for (std::int32_t g = 0; g < stage.group; ++g) {
      const std::int32_t j = i * stage.group + g;
      const Normaliser& n = normalisers[j];
      best = fmaxf(best,
                   n.candidate_factor * softmax_weight(logits[j * scratch.row], n.candidate_max));
    }
    sum += best;
  }
  score = sum;
}

/// Grid (slot / score_threads, task): the scores, refined in this order: max-pool along slots,
/// global score, redundancy. A CTA computes its neighbours' scores, too, rather than wait for them,
/// so old_scores may be scores: a slot's old score is read by the thread that writes its new one.
/// Dynamic shared memory for the normalisers.
__global__ void __launch_bounds__(score_threads)
    score_kernel(const __grid_constant__ BoundaryStage stage) {
  GROWPAGE_DYNAMIC_SHARED(shared);
  GROWPAGE_SHARED(float, plain, [score_threads + widest_pool]);
  GROWPAGE_SHARED(RowSoftmax, redundancy);
  auto* const normalisers = reinterpret_cast<Normaliser*>(shared);
  const BoundaryBatch& batch = stage.batch;
  const BoundaryScratch& scratch = stage.scratch;
  const RetentionOptions& options = batch.retention;
  const BoundaryTask task = boundary_task(stage);
  const auto first = static_cast<std::int32_t>(blockIdx.x) * score_threads;
  if (first >= task.slots) return;
  const bool by_window = options.score == ScoreKind::window;
  const bool redundant = options.redundancy_weight > 0.0F;
  if (!by_window) load_normalisers(stage, task, normalisers);
  if (redundant && warp_id() == 0) {
    const std::int32_t chunks = (task.slots + chunk_slots - 1) / chunk_slots;
    const RowSoftmax whole =
        combine_parts(scratch.similarity_parts + task.local * scratch.chunks, 1, chunks);
    if (lane_id() == 0) redundancy = whole;
  }
  __syncthreads();

  const std::int32_t reach = options.max_pool / 2;
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < score_threads + 2 * reach;
       i += score_threads) {
    const std::int32_t slot = first - reach + i;
    float score = 0.0F;  // no score is less
    if (slot >= 0 && slot < task.slots) {
      score = by_window ? scratch.window_scores[task.local * scratch.row + slot]
                        : summary_score(stage, task, normalisers, slot);
    }
    plain[i] = score;
  }
  __syncthreads();

  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const std::int32_t slot = first + thread;
  if (slot >= task.slots) return;
  float score = plain[thread + reach];
  for (std::int32_t i = 0; i <= 2 * reach; ++i) score = fmaxf(score, plain[thread + i]);
  const std::int64_t at = score_row(stage, task) + slot;
  if (options.global_decay > 0.0F && batch.old_scores != nullptr && slot < task.input.old_slots) {
    score = fmaxf(score, options.global_decay * batch.old_scores[at]);
  }
  if (redundant) {
    const double weight = static_cast<double>(options.redundancy_weight);
    const float similarity = scratch.similarity[task.local * scratch.row + slot];
    const double share =
        static_cast<double>(softmax_weight(similarity, redundancy.max)) / redundancy.sum;
    score = static_cast<float>((1.0 - weight) * static_cast<double>(score) - weight * share);
  }
  batch.scores[at] = score;
}

}  // namespace growpage::cuda
