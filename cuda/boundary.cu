// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "boundary_stage.cuh"
#include "growpage/backend/cuda/boundary.hpp"
#include "launch_logits.cuh"
#include "normalise.cuh"
#include "queries.cuh"
#include "redundancy.cuh"
#include "scores.cuh"
#include "status.cuh"
#include "working_set.cuh"

namespace growpage::cuda {
namespace {

/// Keys longer than this do not fit into the registers of the matrix form.
constexpr std::int32_t widest_matrix = 256;
/// Keys longer than this have queries that do not fit into shared memory.
constexpr std::int32_t widest_key = 1024;

Status check(const BoundaryBatch& batch) {
  if (batch.shape.head_dim < 1 || batch.shape.head_dim > widest_key) {
    return Status::error(StatusCode::unsupported, "BoundaryBatch::shape.head_dim",
                         std::to_string(batch.shape.head_dim),
                         "1 to " + std::to_string(widest_key));
  }
  if (batch.requests > 65535) {
    return Status::error(StatusCode::unsupported, "BoundaryBatch::requests",
                         std::to_string(batch.requests), "at most 65535");
  }
  if (batch.scores != nullptr && batch.score_stride < batch.max_slots) {
    return Status::invalid("BoundaryBatch::score_stride", batch.score_stride,
                           "at least max_slots (" + std::to_string(batch.max_slots) + ")");
  }
  if (batch.retention.max_pool > widest_pool) {
    return Status::invalid("BoundaryBatch::retention.max_pool",
                           std::int64_t{batch.retention.max_pool},
                           "at most " + std::to_string(widest_pool));
  }
  return {};
}

QueryForm query_form(const BoundaryBatch& batch) {
  if (batch.kv.k.dtype == DType::f32 || batch.shape.head_dim > widest_matrix) return QueryForm::f32;
  return batch.kv.k.dtype == DType::bf16 ? QueryForm::bf16 : QueryForm::split_f16;
}

constexpr unsigned ceil_div(std::int64_t value, std::int64_t divisor) {
  return static_cast<unsigned>((value + divisor - 1) / divisor);
}

/// A pass being enqueued. After the first failure nothing more is.
class BoundaryLaunch {
 public:
  BoundaryLaunch(const BoundaryBatch& batch, const BoundaryLayout& layout, void* workspace,
                 cudaStream_t stream)
      : stream_(stream),
        tasks_(std::int64_t{batch.requests} * batch.shape.layers * batch.shape.kv_heads),
        wave_(layout.tasks()) {
    stage_.batch = batch;
    stage_.scratch = layout.at(workspace);
    stage_.form = query_form(batch);
    stage_.softmax_scale =
        batch.softmax_scale != 0.0F
            ? batch.softmax_scale
            : static_cast<float>(1.0 / std::sqrt(static_cast<double>(batch.shape.head_dim)));
    stage_.group = batch.shape.group();
    score_blocks_ = ceil_div(batch.max_slots, score_threads);
  }

  Status run() {
    const BoundaryBatch& batch = stage_.batch;
    const bool window = batch.scores != nullptr && batch.retention.score == ScoreKind::window;
    const bool summaries = batch.scores != nullptr && !window;
    enqueue("rope", rope_kernel,
            dim3(static_cast<unsigned>(batch.requests), static_cast<unsigned>(stage_.scratch.lags)),
            rope_threads, 0);
    for (std::int64_t first = 0; first < tasks_ && error_ == cudaSuccess; first += wave_) {
      stage_.first_task = first;
      wave_tasks_ = static_cast<unsigned>(std::min(wave_, tasks_ - first));
      if (summaries || batch.sums != nullptr) run_summaries(summaries);
      if (window) run_window();
    }
    return device_status(error_, stage_name_);
  }

 private:
  void run_summaries(bool scores) {
    stage_.queries = 2 * stage_.group;
    stage_.window = false;
    stage_.first_lag = 0;
    stage_.candidates_only = !scores;
    run_logits();
    if (scores) run_scores(normaliser_bytes());
    if (stage_.batch.sums != nullptr) {
      enqueue("working_set", spread_kernel, dim3(2, wave_tasks_), spread_threads, 0);
    }
  }

  /// K is read again for every `window_queries` queries of a group.
  void run_window() {
    const std::int32_t at_once = std::max(window_queries / stage_.group, 1);
    stage_.window = true;
    stage_.candidates_only = false;
    for (std::int32_t lag = 0; lag < stage_.scratch.lags; lag += at_once) {
      stage_.first_lag = lag;
      stage_.queries = std::min(at_once, stage_.scratch.lags - lag) * stage_.group;
      run_logits();
      enqueue("window scores", window_kernel, dim3(score_blocks_, wave_tasks_), score_threads,
              normaliser_bytes());
    }
    run_scores(0);
  }

  void run_logits() {
    const auto row_bytes = static_cast<std::size_t>(stage_.batch.shape.head_dim) * sizeof(double);
    enqueue("queries", query_kernel, dim3(ceil_div(stage_.queries, query_warps), wave_tasks_),
            query_threads, query_warps * row_bytes);
    if (error_ == cudaSuccess) record("logits", launch_logits(stage_, wave_tasks_, stream_));
    enqueue("normalise", normalise_kernel,
            dim3(ceil_div(stage_.queries, normalise_warps), wave_tasks_), normalise_threads, 0);
  }

  void run_scores(std::size_t shared_bytes) {
    if (stage_.batch.retention.redundancy_weight > 0.0F) {
      const dim3 grid(static_cast<unsigned>(stage_.scratch.chunks), wave_tasks_);
      enqueue("redundancy", direction_kernel, grid, redundancy_threads, 0);
      enqueue("redundancy", similarity_kernel, grid, redundancy_threads,
              static_cast<std::size_t>(stage_.batch.shape.head_dim) * sizeof(float));
    }
    enqueue("scores", score_kernel, dim3(score_blocks_, wave_tasks_), score_threads, shared_bytes);
  }

  [[nodiscard]] std::size_t normaliser_bytes() const {
    return static_cast<std::size_t>(stage_.queries) * sizeof(Normaliser);
  }

  void record(const char* what, cudaError_t error) {
    error_ = error;
    stage_name_ = what;
  }
  void enqueue(const char* what, void (*kernel)(BoundaryStage), dim3 grid, int threads,
               std::size_t shared_bytes) {
    if (error_ != cudaSuccess) return;
    record(what,
           launch(kernel, grid, static_cast<unsigned>(threads), shared_bytes, stream_, stage_));
  }

  BoundaryStage stage_{};
  cudaStream_t stream_;
  std::int64_t tasks_;
  std::int64_t wave_;
  unsigned wave_tasks_ = 0;
  unsigned score_blocks_ = 0;
  cudaError_t error_ = cudaSuccess;
  const char* stage_name_ = "";  ///< of the latest launch
};

}  // namespace

std::int64_t boundary_workspace_bytes(const CacheShape& shape, std::int32_t requests,
                                      std::int32_t max_slots, std::int32_t window) noexcept {
  return BoundaryLayout(shape, requests, max_slots, window, window > 0, usual_wave_bytes).bytes();
}

Status boundary_pass(const BoundaryBatch& batch, void* workspace, StreamView stream) {
  return detail::boundary_pass_within(batch, usual_wave_bytes, workspace, stream);
}

Status detail::boundary_pass_within(const BoundaryBatch& batch, std::int64_t wave_bytes,
                                    void* workspace, StreamView stream) {
  if (batch.requests <= 0 || (batch.scores == nullptr && batch.sums == nullptr)) return {};
  if (Status s = check(batch); !s.ok()) return s;
  const bool window = batch.scores != nullptr && batch.retention.score == ScoreKind::window;
  const std::int32_t lags =
      window ? std::min(batch.retention.window, batch.summaries.window_size) : 1;
  const BoundaryLayout layout(batch.shape, batch.requests, batch.max_slots, lags, window,
                              wave_bytes);
  return BoundaryLaunch(batch, layout, workspace, to_cuda(stream)).run();
}

Status demand_delta(const std::uint64_t* sums, std::int64_t terms, float* delta,
                    std::int32_t requests, StreamView stream) {
  if (requests <= 0) return {};
  if (terms < 1) return Status::invalid("demand_delta: terms", terms, "at least 1");
  return device_status(launch(delta_kernel, ceil_div(requests, delta_threads), delta_threads, 0,
                              to_cuda(stream), sums, terms, delta, requests),
                       "demand_delta");
}

}  // namespace growpage::cuda
