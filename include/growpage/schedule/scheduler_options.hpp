// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/status.hpp"

namespace growpage {

/// How preempted requests come back.
enum class Preemption : std::int32_t {
  recompute = 0,  ///< drop the pages, prefill the text again
  swap = 1,       ///< copy them to host memory (exact); recompute when host memory is full
};

struct SchedulerOptions {
  std::int64_t max_batched_tokens = 8192;  ///< prefill + decode tokens in one forward pass, ≥ 1
  std::int32_t max_running = 512;      ///< max_num_seqs: requests in the batch, incl. compacting
  std::int32_t summary_slots = 512;    ///< rows of the query-summary state (SummaryOptions::slots)
  std::int64_t max_prefill_chunk = 0;  ///< tokens of one request's chunk; 0 = the whole budget

  Preemption preemption = Preemption::recompute;
  std::int64_t max_compacting_pages =
      600;  ///< pages of requests under compaction at once (paper, App. I)
  /// e: demand is measured when at most this many slots remain (≤ RetentionOptions::recent), so
  /// that the decision is at hand when the boundary comes; 0 = measured at the boundary itself.
  std::int32_t early_slots = 0;

  /// False: admission sets the pages aside that running requests may still take without a decision
  /// (their prompts, their initial pages), so that only growth by decision can run out. True: it
  /// asks for the pages of the new request's own text only. More requests run at once, at the price
  /// of more fallbacks and preemptions.
  bool overcommit = false;

  /// A waiting request gains one priority level every `aging_steps` steps, so that none starves
  /// behind a stream of more urgent ones; 0 = off.
  std::int64_t aging_steps = 1024;
  std::int64_t decision_capacity = 0;  ///< decision-log entries kept; 0 = none recorded

  [[nodiscard]] Status validate() const;
};

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/schedule.ipp"
#endif
