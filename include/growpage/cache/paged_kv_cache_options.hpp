// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/cache/page_manager.hpp"
#include "growpage/core/cache_shape.hpp"
#include "growpage/core/kv_layout.hpp"
#include "growpage/demand/demand.hpp"
#include "growpage/demand/query_summary.hpp"
#include "growpage/demand/rope.hpp"
#include "growpage/retention/retention.hpp"

namespace growpage {

/// Layout of a page in library-owned memory.
enum class PageLayout : std::int32_t {
  hnd = 0,  ///< [head, token, dim]: each head's rows are contiguous, which the kernels like best
  nhd = 1,  ///< [token, head, dim]: what most attention kernels of engines expect
};

/// What a PagedKVCache is made of.
struct PagedKVCacheOptions {
  CacheShape shape;
  PageManagerOptions pages;  ///< `page_size` is taken from `shape`

  /// The engine's KV memory, borrowed; null K = the library allocates it through the backend, with
  /// the dtype and layout below (V separate).
  KvView kv;
  DType dtype = DType::bf16;
  PageLayout layout = PageLayout::hnd;

  SummaryOptions summary;      ///< `slots` must be what the scheduler hands out (summary_slots)
  RopeParams rope;             ///< borrowed tables
  DemandOptions demand;        ///< borrowed mask
  RetentionOptions retention;  ///< usually `policy.retention()`
  float softmax_scale = 0.0F;  ///< 0 = 1/√head_dim

  /// Requests whose scores are kept from the demand pass for the compaction that may follow, so
  /// that K is read once; more boundaries than that in one step read K again at their compaction.
  std::int32_t score_buffers = 8;

  [[nodiscard]] Status validate() const;
};

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/paged_kv_cache_options.ipp"
#endif
