// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/cache_shape.hpp"
#include "growpage/core/status.hpp"
#include "growpage/core/stream.hpp"
#include "growpage/retention/retention.hpp"

namespace growpage::cuda {

/// What selection, planning and compaction have to know of one request. In device memory, so that a
/// captured graph serves other lengths; `slots` = 0 is padding, for which nothing is read or
/// written but its `page_kept` (zeros) and its plan (no victims).
struct RetentionRequest {
  std::int32_t slots = 0;            ///< n; the request has ceil(n / b) pages
  std::int32_t protected_slots = 0;  ///< slots [0, protected_slots) are kept (sinks, prompt)
  std::int32_t keep = 0;             ///< rows to keep among the private pages' slots
  std::int32_t victims = 0;          ///< pages to empty: 1 = Compress & Hold, 2 = Shrink, 0 = none
};

/// `Selection` of a batch of requests; everything but the struct itself in device memory.
struct SelectionBatch {
  CacheShape shape;
  RetentionOptions retention;
  std::int32_t requests = 0;
  std::int32_t max_slots = 0;                ///< no request has more
  const RetentionRequest* inputs = nullptr;  ///< [request]
  const float* scores = nullptr;             ///< [request, layer, kv_head, score_stride]
  std::int64_t score_stride = 0;
  std::int64_t score_request_stride = 0;  ///< in elements
  const std::uint8_t* marks = nullptr;    ///< [request, mark_stride] PageMark bits per page
  std::int64_t mark_stride = 0;
  /// Out, [request, layer, kv_head, words]: bit s%64 of word s/64 = slot s stays; 0 past `slots`.
  std::uint64_t* bits = nullptr;
  std::int64_t words = 0;             ///< ≥ ceil(max_slots / 64)
  std::int32_t* page_kept = nullptr;  ///< out, [request, page_kept_stride] rows kept, all heads
  std::int64_t page_kept_stride = 0;  ///< ≥ ceil(max_slots / b)
};

/// Chooses the rows that stay, the same bits as the CPU backend's `select`. Needs no workspace.
/// Enqueues only.
[[nodiscard]] Status select(const SelectionBatch& batch, StreamView stream);

}  // namespace growpage::cuda
