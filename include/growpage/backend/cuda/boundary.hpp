// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/cache_shape.hpp"
#include "growpage/core/kv_layout.hpp"
#include "growpage/core/status.hpp"
#include "growpage/core/stream.hpp"
#include "growpage/demand/demand.hpp"
#include "growpage/demand/query_summary.hpp"
#include "growpage/demand/rope.hpp"
#include "growpage/retention/retention.hpp"

namespace growpage::cuda {

/// One request of a boundary pass. In device memory, so that a captured graph serves other lengths;
/// `slots` = 0 is padding: its sums become 0, nothing else of it is read or written.
struct BoundaryRequest {
  std::int32_t slots = 0;         ///< n used slots
  std::int32_t candidates = 0;    ///< |C| = slots of all pages but the newest; 0 = no demand
  std::int32_t summary_slot = 0;  ///< row of the summary state
  std::int32_t old_slots = 0;     ///< slots [0, old_slots) have old scores
  std::int64_t position = 0;      ///< of the latest query, for RoPE: the true length − 1
};

/// `BoundaryPass` of a batch of requests; everything but the struct itself in device memory, the
/// arrays behind `kv`, `summaries`, `rope` and `demand.layer_mask`, too.
struct BoundaryBatch {
  CacheShape shape;
  KvView kv;  ///< only K is read
  SummaryView summaries;
  RopeParams rope;
  DemandOptions demand;
  RetentionOptions retention;
  float softmax_scale = 0.0F;  ///< 0 = 1/√head_dim
  std::int32_t requests = 0;
  std::int32_t max_slots = 0;                 ///< no request has more
  const BoundaryRequest* inputs = nullptr;    ///< [request]
  const std::int32_t* block_table = nullptr;  ///< [request, block_table_stride]
  std::int64_t block_table_stride = 0;        ///< ≥ ceil(max_slots / b)
  /// Out, [request, layer, kv_head, score_stride] retention score per slot; null = demand only.
  float* scores = nullptr;
  std::int64_t score_stride = 0;          ///< ≥ max_slots
  std::int64_t score_request_stride = 0;  ///< in elements
  /// In, same strides: scores of the previous compaction; null = none. May be `scores` itself.
  const float* old_scores = nullptr;
  /// Out, [request, 2]: Σ r over the counted layers and the KV heads, of the short and of the long
  /// summary, in units of 2^-40; null = scores only. Integers, so that the order of addition does
  /// not show: tensor-parallel ranks, each with its KV heads, add theirs exactly (ncclSum, uint64).
  std::uint64_t* sums = nullptr;
};

/// Bytes that `boundary_pass` needs; `window` is RetentionOptions::window for ScoreKind::window, 0
/// otherwise. Large batches are worked off in waves whose logits stay in a GPU's L2 cache, so that
/// this hardly grows with `requests`.
[[nodiscard]] std::int64_t boundary_workspace_bytes(const CacheShape& shape, std::int32_t requests,
                                                    std::int32_t max_slots,
                                                    std::int32_t window) noexcept;

/// Demand and scores of a batch, in one pass over K (window scores and redundancy read it again).
/// `workspace` is 16-byte aligned. Enqueues only. Equal inputs give equal bits; against the scalar
/// CPU backend weights agree to about 1e-5, relative.
[[nodiscard]] Status boundary_pass(const BoundaryBatch& batch, void* workspace, StreamView stream);

/// Δ of every request from its sums, after the reduction over ranks if there is one: 4 bytes per
/// request for the host. `terms` is the number of terms in each sum: counted layers × KV heads of
/// all ranks. Δ of a request without candidates is 0. Enqueues only.
[[nodiscard]] Status demand_delta(const std::uint64_t* sums,         ///< [request, 2]
                                  std::int64_t terms, float* delta,  ///< [request]
                                  std::int32_t requests, StreamView stream);

namespace detail {

/// `boundary_pass` with a bound on the logits of a wave, `wave_bytes` ≥ 1: for tests, which cannot
/// afford more than one wave of the usual size. Needs no more workspace than the usual one.
[[nodiscard]] Status boundary_pass_within(const BoundaryBatch& batch, std::int64_t wave_bytes,
                                          void* workspace, StreamView stream);

}  // namespace detail

}  // namespace growpage::cuda
