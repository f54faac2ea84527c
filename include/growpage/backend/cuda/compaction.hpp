// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/cuda/selection.hpp"
#include "growpage/core/cache_shape.hpp"
#include "growpage/core/kv_layout.hpp"
#include "growpage/core/status.hpp"
#include "growpage/core/stream.hpp"
#include "growpage/retention/compaction_plan.hpp"
#include "growpage/retention/retention.hpp"

namespace growpage::cuda {

/// The compaction plan of one request, made on the device; 16 bytes for the host to read.
struct RequestPlan {
  std::int32_t status = 0;   ///< a StatusCode: ok, or at_capacity when too few pages qualify
  std::int32_t victims = 0;  ///< 0 unless ok
  /// Logical indices of the pages that end up empty, ascending; −1 = none.
  std::int32_t victim[CompactionPlan::max_victims] = {-1, -1};
};

/// `plan_compaction` of a batch of requests; all pointers are device memory.
struct PlanBatch {
  std::int32_t page_size = 0;
  CompactionStrategy strategy = CompactionStrategy::fill_holes;
  std::int32_t requests = 0;
  const RetentionRequest* inputs = nullptr;  ///< [request]; victims 0 to 2
  const std::uint8_t* marks = nullptr;       ///< [request, mark_stride] PageMark bits per page
  std::int64_t mark_stride = 0;
  const std::int32_t* page_kept = nullptr;  ///< [request, page_kept_stride] as `select` counts
  std::int64_t page_kept_stride = 0;
  RequestPlan* plans = nullptr;  ///< out, [request]
};

/// Chooses the victims, the same pages as `plan_compaction`. Enqueues only.
[[nodiscard]] Status plan_compaction(const PlanBatch& batch, StreamView stream);

/// `CompactionMove` of a batch of requests; all pointers are device memory, those of `kv` too.
/// Requests whose plan has no victims stay as they are. A page that one request rewrites is in no
/// other request's table.
struct CompactionBatch {
  CacheShape shape;
  KvView kv;
  CompactionStrategy strategy = CompactionStrategy::fill_holes;
  std::int32_t requests = 0;
  const RetentionRequest* inputs = nullptr;  ///< [request]
  const RequestPlan* plans = nullptr;        ///< [request]
  const std::int32_t* block_table =
      nullptr;  ///< [request, block_table_stride], before the compaction
  std::int64_t block_table_stride = 0;
  const std::uint8_t* marks = nullptr;  ///< [request, mark_stride] PageMark bits per page
  std::int64_t mark_stride = 0;
  const std::uint64_t* bits =
      nullptr;  ///< [request, layer, kv_head, words] as `select` writes them
  std::int64_t words = 0;
  /// In and out, [request, layer, kv_head, score_stride], or null: scores follow their rows into
  /// the new logical order.
  float* scores = nullptr;
  std::int64_t score_stride = 0;
  std::int64_t score_request_stride = 0;  ///< in elements
};

/// Moves the retained rows so that the victims hold none. Needs no workspace. Enqueues only.
[[nodiscard]] Status compact(const CompactionBatch& batch, StreamView stream);

}  // namespace growpage::cuda
