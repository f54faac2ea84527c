// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "growpage/backend/contract.hpp"
#include "growpage/cache/page_manager.hpp"
#include "growpage/core/ids.hpp"
#include "growpage/demand/demand.hpp"

namespace growpage {

/// A chunk of a prompt (or of a recomputed text) to prefill: tokens
/// [first_position, first_position + tokens) of the request, which have their slots already.
struct PrefillChunk {
  RequestId request;
  SequenceId sequence;
  std::uint64_t tag = 0;
  std::int64_t first_position = 0;
  std::int32_t first_slot = 0;  ///< logical slot of the first token; = position until a compaction
  std::int32_t tokens = 0;
  bool last = false;  ///< the chunk ends the text: sample a token from its last position
  /// When valid: the chunk ends at a capacity boundary, where a compaction may follow before any
  /// decode step: start the summaries with the query of the chunk's LAST token
  /// (SummaryEntry::first).
  SummarySlot summary;
};

/// One token to decode.
struct DecodeItem {
  RequestId request;
  SequenceId sequence;
  std::uint64_t tag = 0;
  TokenId token = 0;           ///< the input token (the last one generated)
  std::int64_t position = 0;   ///< true position, for RoPE: never the slot
  std::int64_t slot = 0;       ///< physical slot page · b + offset for its K/V (`slot_mapping`)
  std::int32_t kv_length = 0;  ///< used slots with this token (`cache_seqlens`)
  SummarySlot summary;         ///< update its summaries with this step's query
  bool summary_first = false;  ///< first decode step of the slot
};

/// Measure the demand of this request after the forward pass; give the result to complete().
struct DemandItem {
  RequestId request;
  SequenceId sequence;
  std::uint64_t tag = 0;
  SummarySlot summary;
  std::int64_t position = 0;  ///< of the query the summaries were last updated with
};

/// Compact this sequence (begun already: PageManager::begin_compaction).
struct CompactionItem {
  RequestId request;
  CompactionTicket ticket;
  std::uint64_t tag = 0;
  SummarySlot summary;
  std::int64_t position = 0;
  std::int32_t protected_slots = 0;  ///< sinks and protected prompt, in slots from the front
};

struct SwapItem {
  RequestId request;
  SequenceId sequence;
  FenceId fence;
  SummarySlot summary;             ///< row to save (out) or to restore into (in); invalid = none
  std::size_t first_transfer = 0;  ///< its page copies in StepPlan::transfers_out / transfers_in
  std::size_t transfers = 0;
};

/// What the engine does in one step: plain data, owned by the scheduler, valid until the next
/// schedule(). Carry it out in this order (a stream keeps it):
///   1. swap_outs, 2. swap_ins, 3. copies, 4. compactions — `run_before_forward` does these —
///   5. one forward pass over prefills and decodes, updating summaries,
///   6. demand — `run_after_forward` — 7. Scheduler::complete.
/// Items that carry a fence may run on another stream. A fence may be reported in the complete() of
/// the same step (work done synchronously) or of any later one; its request sits out until then.
struct StepPlan {
  std::int64_t step = 0;
  std::vector<SwapItem> swap_outs;
  std::vector<SwapItem> swap_ins;
  std::vector<PageTransfer> transfers_out;
  std::vector<PageTransfer> transfers_in;
  std::vector<PageCopy> copies;
  std::vector<CompactionItem> compactions;
  std::vector<PrefillChunk> prefills;
  std::vector<DecodeItem> decodes;
  std::vector<DemandItem> demand;
  std::vector<RequestId> preempted;  ///< this step; for the engine's own bookkeeping
  std::int64_t batched_tokens = 0;   ///< prefill + decode tokens of the forward pass

  [[nodiscard]] bool empty() const noexcept {
    return prefills.empty() && decodes.empty() && compactions.empty() && swap_outs.empty() &&
           swap_ins.empty();
  }
};

/// A token the engine sampled: one for every decode and every last prefill chunk of the plan.
struct SampledToken {
  RequestId request;
  TokenId token = 0;
  bool stop = false;  ///< end of text: the request finishes with this token
};

struct MeasuredDemand {
  RequestId request;
  Demand demand;
};

/// What the engine reports of a step. Borrowed for the call.
struct StepResult {
  std::span<const SampledToken> tokens;    ///< any order
  std::span<const MeasuredDemand> demand;  ///< one per StepPlan::demand entry, any order
  std::span<const FenceId> fences;  ///< compactions and swaps finished since the last complete()
  /// Planned requests the engine could not run: aborted, their references rolled back; no token
  /// expected.
  std::span<const RequestId> failed;
};

}  // namespace growpage
