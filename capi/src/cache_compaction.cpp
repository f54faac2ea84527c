// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cache.hpp"
#include "convert.hpp"
#include "layouts.hpp"
#include "structs.hpp"

using namespace growpage;
using namespace growpage::capi;
using growpage::detail::require_not_null;
using growpage::detail::require_range;

namespace {

Status read_ticket(const growpage_ticket* in, CompactionTicket& out) {
  Status s;
  if (!require_not_null(s, "ticket", in) ||
      !require_range(s, "growpage_ticket.victims", in->victims, 1, CompactionPlan::max_victims) ||
      !read_enum(s, "growpage_ticket.strategy", in->strategy, CompactionStrategy::in_order,
                 out.strategy)) {
    return s;
  }
  out.sequence = SequenceId::from_bits(in->sequence);
  out.fence = FenceId::from_bits(in->fence);
  out.victims = in->victims;
  return {};
}

/// The caller's array must hold one entry for each page of the sequence.
Status require_room(const Cache& c, SequenceId id, const char* name, const void* rows,
                    std::size_t capacity) {
  const Result<SequenceView> view = c.manager->view(id);
  if (!view.ok()) return view.status();
  Status s;
  if (!require_array(s, name, rows, view->pages.size())) return s;
  require_range(s, "capacity",
                static_cast<std::int64_t>(std::min<std::size_t>(capacity, INT64_MAX)),
                static_cast<std::int64_t>(view->pages.size()), INT64_MAX);
  return s;
}

/// Swap in either direction.
template <class Move>
growpage_status swap(growpage_cache* cache, uint64_t sequence, growpage_page_transfer* transfers,
                     size_t capacity, size_t* count, uint64_t* fence, Move&& move) noexcept {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s = c.require_own(sequence);
    if (!s.ok()) return s;
    const SequenceId id = SequenceId::from_bits(sequence);
    if (!require_not_null(s, "count", count) || !require_not_null(s, "fence", fence)) return s;
    if (s = require_room(c, id, "transfers", transfers, capacity); !s.ok()) return s;
    c.transfers.clear();
    const Result<FenceId> opened = move(*c.manager, id, c.transfers);
    if (!opened.ok()) return opened.status();
    c.remember(*opened);
    std::copy_n(twin<const growpage_page_transfer>(c.transfers.data()), c.transfers.size(),
                transfers);
    *count = c.transfers.size();
    *fence = opened->bits();
    return {};
  });
}

}  // namespace

extern "C" {

growpage_status growpage_cache_begin_compaction(growpage_cache* cache, uint64_t sequence,
                                                int32_t victims, int32_t strategy, int32_t shared,
                                                growpage_page_copy* copies, size_t capacity,
                                                size_t* count, growpage_ticket* ticket) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s = c.require_own(sequence);
    if (!s.ok()) return s;
    const SequenceId id = SequenceId::from_bits(sequence);
    CompactionStrategy how{};
    SharedPages sharing{};
    if (!read_enum(s, "strategy", strategy, CompactionStrategy::in_order, how) ||
        !read_enum(s, "shared", shared, SharedPages::copy, sharing) ||
        !require_not_null(s, "count", count) || !require_not_null(s, "ticket", ticket)) {
      return s;
    }
    if (sharing == SharedPages::copy) {
      if (s = require_room(c, id, "copies", copies, capacity); !s.ok()) return s;
    }
    c.copies.clear();
    const Result<CompactionTicket> begun =
        c.manager->begin_compaction(id, victims, how, sharing, c.copies);
    if (!begun.ok()) return begun.status();
    c.remember(begun->fence);
    std::copy_n(twin<const growpage_page_copy>(c.copies.data()), c.copies.size(), copies);
    *count = c.copies.size();
    *ticket = {begun->sequence.bits(), begun->fence.bits(), begun->victims,
               static_cast<std::int32_t>(begun->strategy)};
    return {};
  });
}

growpage_status growpage_cache_page_marks(const growpage_cache* cache, uint64_t sequence,
                                          int32_t protected_slots, uint8_t* marks, size_t size) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s;
    if (!require_array(s, "marks", marks, size)) return s;
    return c.manager->page_marks(SequenceId::from_bits(sequence), protected_slots, {marks, size});
  });
}

growpage_status growpage_cache_apply_compaction(growpage_cache* cache,
                                                const growpage_ticket* ticket,
                                                const growpage_compaction_plan* plan,
                                                const int32_t* page_kept, size_t pages,
                                                int32_t rows_per_page) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    CompactionTicket t;
    Status s = read_ticket(ticket, t);
    if (!s.ok()) return s;
    CompactionPlan p;
    if (!require_not_null(s, "plan", plan) || !require_array(s, "page_kept", page_kept, pages) ||
        !require_range(s, "growpage_compaction_plan.victims", plan->victims, 1,
                       CompactionPlan::max_victims) ||
        !read_enum(s, "growpage_compaction_plan.strategy", plan->strategy,
                   CompactionStrategy::in_order, p.strategy)) {
      return s;
    }
    p.victims = plan->victims;
    std::copy_n(plan->victim, plan->victims, p.victim);
    return c.manager->apply_compaction(t, p, {page_kept, pages}, rows_per_page);
  });
}

growpage_status growpage_cache_cancel_compaction(growpage_cache* cache,
                                                 const growpage_ticket* ticket) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    CompactionTicket t;
    if (Status s = read_ticket(ticket, t); !s.ok()) return s;
    if (Status s = c.require_own(ticket->sequence); !s.ok()) return s;
    return c.manager->cancel_compaction(t);
  });
}

growpage_status growpage_cache_swap_out(growpage_cache* cache, uint64_t sequence,
                                        growpage_page_transfer* transfers, size_t capacity,
                                        size_t* count, uint64_t* fence) {
  return swap(cache, sequence, transfers, capacity, count, fence,
              [](PageManager& m, SequenceId id, auto& out) { return m.swap_out(id, out); });
}

growpage_status growpage_cache_swap_in(growpage_cache* cache, uint64_t sequence,
                                       growpage_page_transfer* transfers, size_t capacity,
                                       size_t* count, uint64_t* fence) {
  return swap(cache, sequence, transfers, capacity, count, fence,
              [](PageManager& m, SequenceId id, auto& out) { return m.swap_in(id, out); });
}

growpage_status growpage_cache_complete_fence(growpage_cache* cache, uint64_t fence) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    if (Status s = c.require_own_fence(fence); !s.ok()) return s;
    return c.manager->complete_fence(FenceId::from_bits(fence));
  });
}

growpage_status growpage_cache_guard(growpage_cache* cache, uint64_t sequence, uint64_t* fence) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s;
    if (!require_not_null(s, "fence", fence)) return s;
    const Result<FenceId> opened = c.manager->guard(SequenceId::from_bits(sequence));
    if (!opened.ok()) return opened.status();
    c.remember(*opened);
    *fence = opened->bits();
    return {};
  });
}

growpage_status growpage_cache_compact(growpage_cache* cache, const growpage_ticket* ticket,
                                       int32_t summary_slot, int64_t position,
                                       int32_t protected_slots, void* stream) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    CompactionTicket t;
    Status s = c.require_kernels();
    if (s.ok()) s = read_ticket(ticket, t);
    if (!s.ok()) return s;
    if (!c.manager->alive(t.sequence)) return StatusCode::stale_id;
    if (!c.manager->is_compacting(t)) return StatusCode::protocol_error;
    return c.kv->compact(t, {summary_slot}, position, protected_slots, {stream});
  });
}
}
