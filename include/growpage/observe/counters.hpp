// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace growpage {

/// Pages of a pool by state. free + cached + referenced + in_flight = total, always.
struct PageCounts {
  std::int64_t total = 0;
  std::int64_t free = 0;
  std::int64_t cached = 0;      ///< published, read by nobody, evictable
  std::int64_t referenced = 0;  ///< in at least one block table
  std::int64_t in_flight = 0;   ///< in no table, but a fence or pin still guards them
};

/// What a cache and its scheduler have done since construction. Plain sums; read them at any time
/// from the thread that owns the scheduler.
struct Counters {
  std::int64_t steps = 0;
  std::int64_t submitted = 0;
  std::int64_t refused = 0;  ///< at submission: can never fit
  std::int64_t finished = 0;
  std::int64_t aborted = 0;
  std::int64_t prefill_tokens = 0;  ///< computed, prefix hits not counted
  std::int64_t decode_tokens = 0;   ///< tokens generated, the one a prefill ends with included

  std::int64_t grow = 0;     ///< decisions: one page appended
  std::int64_t compact = 0;  ///< decisions: Compress & Hold
  std::int64_t shrink = 0;   ///< decisions: Shrink
  std::int64_t fallback =
      0;  ///< Grow wanted, no page: Compress & Hold instead (counted in compact too)
  std::int64_t free_growth = 0;  ///< pages taken without a decision (prompt, initial pages)

  std::int64_t preempt = 0;  ///< = swap_out + recompute
  std::int64_t swap_out = 0;
  std::int64_t swap_in = 0;
  std::int64_t recompute = 0;

  std::int64_t prefix_query_tokens = 0;  ///< prompt tokens looked up at first admission
  std::int64_t prefix_hit_tokens = 0;    ///< of these, found
  std::int64_t evicted_pages = 0;        ///< cached pages taken for reuse
  std::int64_t copied_pages = 0;         ///< copy-on-write and shared = copy

  /// Σ over steps of KV tokens held (pages · b) by running requests, and of their number: their
  /// quotient is the paper's "avg KV tokens".
  std::int64_t kv_token_steps = 0;
  std::int64_t running_steps = 0;
};

}  // namespace growpage
