// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>

#include "growpage/backend/contract.hpp"
#include "growpage/cache/page_manager.hpp"
#include "growpage/growpage.h"
#include "growpage/observe/decision_log.hpp"
#include "growpage/observe/kv_events.hpp"
#include "growpage/schedule/scheduler.hpp"
#include "growpage/schedule/step_plan.hpp"

/// Rows that cross the boundary without a copy: the C struct has the C++ struct's layout.
namespace growpage::capi {

static_assert(std::endian::native == std::endian::little, "ids cross as their bits()");
static_assert(sizeof(SequenceId) == 8 && sizeof(RequestId) == 8 && sizeof(FenceId) == 8);
static_assert(offsetof(SequenceId, index) == 0 && offsetof(SequenceId, generation) == 4);
static_assert(sizeof(PageId) == 4 && sizeof(SummarySlot) == 4 && sizeof(bool) == 1);

#define GROWPAGE_SAME_SIZE(c, cpp) static_assert(sizeof(c) == sizeof(cpp))
#define GROWPAGE_SAME_PLACE(c, cpp, field, cpp_field)             \
  static_assert(offsetof(c, field) == offsetof(cpp, cpp_field) && \
                sizeof(c::field) == sizeof(cpp::cpp_field))

GROWPAGE_SAME_SIZE(growpage_page_copy, PageCopy);
GROWPAGE_SAME_PLACE(growpage_page_copy, PageCopy, source, source);
GROWPAGE_SAME_PLACE(growpage_page_copy, PageCopy, target, target);

GROWPAGE_SAME_SIZE(growpage_page_transfer, PageTransfer);
GROWPAGE_SAME_PLACE(growpage_page_transfer, PageTransfer, device, device);
GROWPAGE_SAME_PLACE(growpage_page_transfer, PageTransfer, host, host);

GROWPAGE_SAME_SIZE(growpage_ticket, CompactionTicket);
GROWPAGE_SAME_PLACE(growpage_ticket, CompactionTicket, sequence, sequence);
GROWPAGE_SAME_PLACE(growpage_ticket, CompactionTicket, fence, fence);
GROWPAGE_SAME_PLACE(growpage_ticket, CompactionTicket, victims, victims);
GROWPAGE_SAME_PLACE(growpage_ticket, CompactionTicket, strategy, strategy);

GROWPAGE_SAME_SIZE(growpage_compaction_plan, CompactionPlan);
GROWPAGE_SAME_PLACE(growpage_compaction_plan, CompactionPlan, strategy, strategy);
GROWPAGE_SAME_PLACE(growpage_compaction_plan, CompactionPlan, victims, victims);
GROWPAGE_SAME_PLACE(growpage_compaction_plan, CompactionPlan, victim, victim);

GROWPAGE_SAME_SIZE(growpage_summary_entry, SummaryEntry);
GROWPAGE_SAME_PLACE(growpage_summary_entry, SummaryEntry, slot, slot);
GROWPAGE_SAME_PLACE(growpage_summary_entry, SummaryEntry, first, first);

GROWPAGE_SAME_SIZE(growpage_demand, Demand);
GROWPAGE_SAME_PLACE(growpage_demand, Demand, short_sum, short_sum);
GROWPAGE_SAME_PLACE(growpage_demand, Demand, long_sum, long_sum);
GROWPAGE_SAME_PLACE(growpage_demand, Demand, count, count);

GROWPAGE_SAME_SIZE(growpage_hash, Hash128);
GROWPAGE_SAME_PLACE(growpage_hash, Hash128, low, low);
GROWPAGE_SAME_PLACE(growpage_hash, Hash128, high, high);

GROWPAGE_SAME_SIZE(growpage_prefix_link, PrefixLink);
GROWPAGE_SAME_PLACE(growpage_prefix_link, PrefixLink, hash, hash);
GROWPAGE_SAME_PLACE(growpage_prefix_link, PrefixLink, id, id);

GROWPAGE_SAME_SIZE(growpage_kv_event, KvEvent);
GROWPAGE_SAME_PLACE(growpage_kv_event, KvEvent, kind, kind);
GROWPAGE_SAME_PLACE(growpage_kv_event, KvEvent, page, page);
GROWPAGE_SAME_PLACE(growpage_kv_event, KvEvent, hash, hash);
GROWPAGE_SAME_PLACE(growpage_kv_event, KvEvent, parent, parent);
GROWPAGE_SAME_PLACE(growpage_kv_event, KvEvent, tokens, tokens);

GROWPAGE_SAME_SIZE(growpage_swap, SwapItem);
GROWPAGE_SAME_PLACE(growpage_swap, SwapItem, request, request);
GROWPAGE_SAME_PLACE(growpage_swap, SwapItem, sequence, sequence);
GROWPAGE_SAME_PLACE(growpage_swap, SwapItem, fence, fence);
GROWPAGE_SAME_PLACE(growpage_swap, SwapItem, summary, summary);
GROWPAGE_SAME_PLACE(growpage_swap, SwapItem, first_transfer, first_transfer);
GROWPAGE_SAME_PLACE(growpage_swap, SwapItem, transfers, transfers);

GROWPAGE_SAME_SIZE(growpage_compaction, CompactionItem);
GROWPAGE_SAME_PLACE(growpage_compaction, CompactionItem, request, request);
GROWPAGE_SAME_PLACE(growpage_compaction, CompactionItem, ticket, ticket);
GROWPAGE_SAME_PLACE(growpage_compaction, CompactionItem, tag, tag);
GROWPAGE_SAME_PLACE(growpage_compaction, CompactionItem, summary, summary);
GROWPAGE_SAME_PLACE(growpage_compaction, CompactionItem, position, position);
GROWPAGE_SAME_PLACE(growpage_compaction, CompactionItem, protected_slots, protected_slots);

GROWPAGE_SAME_SIZE(growpage_prefill, PrefillChunk);
GROWPAGE_SAME_PLACE(growpage_prefill, PrefillChunk, request, request);
GROWPAGE_SAME_PLACE(growpage_prefill, PrefillChunk, sequence, sequence);
GROWPAGE_SAME_PLACE(growpage_prefill, PrefillChunk, tag, tag);
GROWPAGE_SAME_PLACE(growpage_prefill, PrefillChunk, first_position, first_position);
GROWPAGE_SAME_PLACE(growpage_prefill, PrefillChunk, first_slot, first_slot);
GROWPAGE_SAME_PLACE(growpage_prefill, PrefillChunk, tokens, tokens);
GROWPAGE_SAME_PLACE(growpage_prefill, PrefillChunk, last, last);
GROWPAGE_SAME_PLACE(growpage_prefill, PrefillChunk, summary, summary);

GROWPAGE_SAME_SIZE(growpage_decode, DecodeItem);
GROWPAGE_SAME_PLACE(growpage_decode, DecodeItem, request, request);
GROWPAGE_SAME_PLACE(growpage_decode, DecodeItem, sequence, sequence);
GROWPAGE_SAME_PLACE(growpage_decode, DecodeItem, tag, tag);
GROWPAGE_SAME_PLACE(growpage_decode, DecodeItem, token, token);
GROWPAGE_SAME_PLACE(growpage_decode, DecodeItem, position, position);
GROWPAGE_SAME_PLACE(growpage_decode, DecodeItem, slot, slot);
GROWPAGE_SAME_PLACE(growpage_decode, DecodeItem, kv_length, kv_length);
GROWPAGE_SAME_PLACE(growpage_decode, DecodeItem, summary, summary);
GROWPAGE_SAME_PLACE(growpage_decode, DecodeItem, summary_first, summary_first);

GROWPAGE_SAME_SIZE(growpage_demand_request, DemandItem);
GROWPAGE_SAME_PLACE(growpage_demand_request, DemandItem, request, request);
GROWPAGE_SAME_PLACE(growpage_demand_request, DemandItem, sequence, sequence);
GROWPAGE_SAME_PLACE(growpage_demand_request, DemandItem, tag, tag);
GROWPAGE_SAME_PLACE(growpage_demand_request, DemandItem, summary, summary);
GROWPAGE_SAME_PLACE(growpage_demand_request, DemandItem, position, position);

GROWPAGE_SAME_SIZE(growpage_measured_demand, MeasuredDemand);
GROWPAGE_SAME_PLACE(growpage_measured_demand, MeasuredDemand, request, request);
GROWPAGE_SAME_PLACE(growpage_measured_demand, MeasuredDemand, demand, demand);

GROWPAGE_SAME_SIZE(growpage_sampled_token, SampledToken);
GROWPAGE_SAME_PLACE(growpage_sampled_token, SampledToken, request, request);
GROWPAGE_SAME_PLACE(growpage_sampled_token, SampledToken, token, token);
GROWPAGE_SAME_PLACE(growpage_sampled_token, SampledToken, stop, stop);

GROWPAGE_SAME_SIZE(growpage_decision, DecisionRecord);
GROWPAGE_SAME_PLACE(growpage_decision, DecisionRecord, request, request);
GROWPAGE_SAME_PLACE(growpage_decision, DecisionRecord, tag, tag);
GROWPAGE_SAME_PLACE(growpage_decision, DecisionRecord, step, step);
GROWPAGE_SAME_PLACE(growpage_decision, DecisionRecord, kind, kind);
GROWPAGE_SAME_PLACE(growpage_decision, DecisionRecord, measured, measured);
GROWPAGE_SAME_PLACE(growpage_decision, DecisionRecord, delta, delta);
GROWPAGE_SAME_PLACE(growpage_decision, DecisionRecord, short_ratio, short_ratio);
GROWPAGE_SAME_PLACE(growpage_decision, DecisionRecord, long_ratio, long_ratio);
GROWPAGE_SAME_PLACE(growpage_decision, DecisionRecord, pages_before, pages_before);
GROWPAGE_SAME_PLACE(growpage_decision, DecisionRecord, pages_after, pages_after);
GROWPAGE_SAME_PLACE(growpage_decision, DecisionRecord, length, length);
GROWPAGE_SAME_PLACE(growpage_decision, DecisionRecord, pressure, pressure);

#undef GROWPAGE_SAME_SIZE
#undef GROWPAGE_SAME_PLACE

/// Rows as their twin on the other side.
template <class To, class From>
[[nodiscard]] To* twin(From* rows) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return reinterpret_cast<To*>(rows);
}

}  // namespace growpage::capi
