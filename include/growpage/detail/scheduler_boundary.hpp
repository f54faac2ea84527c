// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>

#include "growpage/schedule/scheduler.hpp"

// Capacity boundaries and memory pressure (algorithm, section 3).
namespace growpage {

template <CapacityPolicy Policy, PageCache Cache>
double Scheduler<Policy, Cache>::pressure() const noexcept {
  return 1.0 -
         static_cast<double>(cache_->allocatable()) / static_cast<double>(cache_->options().pages);
}

template <CapacityPolicy Policy, PageCache Cache>
std::int32_t Scheduler<Policy, Cache>::free_pages_limit(const Request& r) const noexcept {
  return r.boundaries > 0 ? 0 : r.free_pages;
}

/// Pages the text known so far is prefilled into. That of a preempted request is back in the pages
/// it held then: it goes in page by page, compacting at each boundary.
template <CapacityPolicy Policy, PageCache Cache>
std::int64_t Scheduler<Policy, Cache>::prefill_pages(const Request& r) const noexcept {
  const std::int64_t text =
      (static_cast<std::int64_t>(r.text.size()) + page_size_ - 1) / page_size_;
  if (!policy_.may_compact()) return text;
  const std::int64_t prompt = (r.prompt + page_size_ - 1) / page_size_;
  return std::min(text, std::max<std::int64_t>({prompt, r.restore_pages, r.pages}));
}

/// Pages the request comes to hold without a decision, those it has included.
template <CapacityPolicy Policy, PageCache Cache>
std::int64_t Scheduler<Policy, Cache>::pages_due(const Request& r) const noexcept {
  const bool prefills = r.length + 1 < static_cast<std::int64_t>(r.text.size());
  return std::max<std::int64_t>(
      {prefills ? prefill_pages(r) : 0, r.pages, options_.overcommit ? 0 : free_pages_limit(r)});
}

template <CapacityPolicy Policy, PageCache Cache>
std::int32_t Scheduler<Policy, Cache>::protected_slots(const Request& r) const noexcept {
  const std::int64_t prompt = retention_.protect_prompt ? r.prompt : 0;
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(std::max<std::int64_t>(retention_.sinks, prompt), r.slots));
}

/// The request's pages are full and it has more to append. `proceed`: it has a free slot now.
template <CapacityPolicy Policy, PageCache Cache>
auto Scheduler<Policy, Cache>::at_boundary(Request& r) -> Outcome {
  const bool decode = r.length + 1 == static_cast<std::int64_t>(r.text.size());
  if (!decode) {
    // The text of a preempted request, computed again: back to the capacity it had, not beyond.
    if (compactable(r, 1, retention_.shared)) {
      return compact(r, DecisionKind::compact, retention_.shared);
    }
    return grow(r, false);
  }
  if (r.pages < free_pages_limit(r)) return grow(r, false);
  if (!r.decided) {
    BoundaryContext context;
    context.request = r.tag;
    context.boundary = r.boundaries;
    context.length = r.length;
    context.pages = r.pages;
    context.page_size = page_size_;
    context.measured = r.measured;
    context.demand = r.demand;
    context.pressure = pressure();
    r.decided = true;
    r.decision = policy_.decide(context);
    const std::int32_t most = cache_->options().max_pages_per_sequence;
    const std::int32_t bound = limits_.max_pages > 0 ? std::min(limits_.max_pages, most) : most;
    if (r.decision == Decision::grow && r.pages >= bound) r.decision = Decision::compact;
  }
  if (r.decision == Decision::grow) return grow(r, true);
  const bool shrinks = r.decision == Decision::shrink && compactable(r, 2, retention_.shared);
  if (shrinks) return compact(r, DecisionKind::shrink, retention_.shared);
  if (compactable(r, 1, retention_.shared)) {
    return compact(r, DecisionKind::compact, retention_.shared);
  }
  return grow(r, true);  // too few private pages: what it shares cannot be evicted
}

/// One page more, by decision or freely. Without a page: Compress & Hold, else someone makes room.
template <CapacityPolicy Policy, PageCache Cache>
auto Scheduler<Policy, Cache>::grow(Request& r, bool decided) -> Outcome {
  const Status grown = cache_->grow(r.sequence);
  if (grown.ok()) {
    ++r.pages;
    if (decided) {
      ++counters_.grow;
      log_decision(r, DecisionKind::grow, r.pages);
    } else {
      ++counters_.free_growth;
    }
    boundary_passed(r);
    return Outcome::proceed;
  }
  const auto fall_back = [&]() -> bool {
    for (const SharedPages shared : {retention_.shared, SharedPages::copy, SharedPages::keep}) {
      if (!compactable(r, 1, shared)) continue;
      (void)compact(r, DecisionKind::fallback, shared);
      return true;
    }
    return false;
  };
  if (fall_back()) return Outcome::sits_out;
  if (r.pages < cache_->options().max_pages_per_sequence) {
    return make_room(r, one_page) == Outcome::proceed ? grow(r, decided) : Outcome::sits_out;
  }
  // At the end of the block table one page more does not help: copies of those it shares do, or
  // that those who share them go. A swap may still be reading some of these: then the next step.
  const auto needed = [&]() -> std::int64_t {
    return compactable(r, 1, SharedPages::keep) ? 0 : r.pages - cache_->private_pages(r.sequence);
  };
  if (make_room(r, needed) == Outcome::proceed) (void)fall_back();
  return Outcome::sits_out;
}

/// Whether `victims` pages of the request can be emptied now: it has summaries to rank by, enough
/// pages that may be rewritten, and what must stay fits into what is kept.
template <CapacityPolicy Policy, PageCache Cache>
bool Scheduler<Policy, Cache>::compactable(const Request& r, std::int32_t victims,
                                           SharedPages shared) {
  if (!policy_.may_compact() || !r.summary_valid || r.pages <= victims) return false;
  const std::int32_t kept_slots = protected_slots(r);
  const std::span<std::uint8_t> marks(marks_.data(), static_cast<std::size_t>(r.pages));
  if (!cache_->page_marks(r.sequence, kept_slots, marks).ok()) return false;
  if (shared == SharedPages::copy) {
    const auto to_copy = std::count_if(
        marks.begin(), marks.end(), [](std::uint8_t mark) { return (mark & page_private) == 0; });
    if (to_copy > cache_->allocatable()) return false;
  }
  return compaction_room(marks, page_size_, kept_slots, retention_, shared)
      .fits(victims, page_size_);
}

/// Takes the request out of the batch until its compaction's fence is reported.
template <CapacityPolicy Policy, PageCache Cache>
auto Scheduler<Policy, Cache>::compact(Request& r, DecisionKind kind, SharedPages shared)
    -> Outcome {
  if (compacting_pages_ > 0 && compacting_pages_ + r.pages > options_.max_compacting_pages) {
    return Outcome::sits_out;
  }
  const std::int32_t victims = kind == DecisionKind::shrink ? 2 : 1;
  const Result<CompactionTicket> ticket =
      cache_->begin_compaction(r.sequence, victims, retention_.strategy, shared, plan_.copies);
  if (!ticket.ok()) return Outcome::sits_out;  // no fence, or pages outrun: next step
  CompactionItem& item = plan_.compactions.emplace_back();
  item.request = r.id();
  item.ticket = *ticket;
  item.tag = r.tag;
  item.summary = r.slot;
  item.position = r.length - 1;
  item.protected_slots = protected_slots(r);
  in_flight_.push_back({ticket->fence, r.id(), RequestState::compacting, r.pages});
  compacting_pages_ += r.pages;

  ++(kind == DecisionKind::shrink ? counters_.shrink : counters_.compact);
  if (kind == DecisionKind::fallback) ++counters_.fallback;
  log_decision(r, kind, r.pages - (victims - 1));
  r.resume = r.state;
  leave_batch(r, RequestState::compacting);
  return Outcome::sits_out;
}

template <CapacityPolicy Policy, PageCache Cache>
void Scheduler<Policy, Cache>::boundary_passed(Request& r) {
  // A page end met while recomputing is not the boundary the policy was asked about.
  if (r.length + 1 != static_cast<std::int64_t>(r.text.size())) return;
  if (r.decided) ++r.boundaries;
  r.measured = false;
  r.decided = false;
  r.demand = {};
}

template <CapacityPolicy Policy, PageCache Cache>
void Scheduler<Policy, Cache>::leave_batch(Request& r, RequestState state) {
  if (r.state == RequestState::decoding) --decoding_;
  r.state = state;
}

/// Frees the pages that `r` needs, `needed()` as things stand, by preempting the worst-ranked.
/// `proceed`: they are there. Otherwise `r` sits this step out: pages are on their way (in flight,
/// or with requests under a fence), or it was preempted itself because it ranks last.
template <CapacityPolicy Policy, PageCache Cache>
template <class Needed>
auto Scheduler<Policy, Cache>::make_room(Request& r, Needed&& needed) -> Outcome {
  for (std::int64_t pages = needed(); cache_->allocatable() < pages; pages = needed()) {
    if (cache_->allocatable() + cache_->counts().in_flight >= pages) return Outcome::sits_out;
    Request* victim = nullptr;
    for (std::size_t i = running_.size(); i-- > 0 && victim == nullptr;) {
      Request& candidate = table_[running_[i]];
      if (!candidate.live || !candidate.running) continue;
      if (&candidate == &r) break;
      if (candidate.state == RequestState::decoding ||
          candidate.state == RequestState::prefilling) {
        victim = &candidate;
      }
    }
    if (victim == nullptr) {
      if (in_flight_.empty()) preempt(r);  // else pages come back with the fences
      return Outcome::sits_out;
    }
    preempt(*victim);
  }
  return Outcome::proceed;
}

/// Back to the queue: by swap when asked for and possible, otherwise to be recomputed.
template <CapacityPolicy Policy, PageCache Cache>
void Scheduler<Policy, Cache>::preempt(Request& r) {
  preempted_now_ = true;
  ++counters_.preempt;
  plan_.preempted.push_back(r.id());
  r.resume = r.state;
  bool swapped = false;
  if (options_.preemption == Preemption::swap) {
    const std::size_t first = plan_.transfers_out.size();
    const Result<FenceId> fence = cache_->swap_out(r.sequence, plan_.transfers_out);
    if (fence.ok()) {
      swapped = true;
      plan_.swap_outs.push_back({r.id(), r.sequence, *fence,
                                 r.summary_valid ? r.slot : SummarySlot{}, first,
                                 plan_.transfers_out.size() - first});
      in_flight_.push_back({*fence, r.id(), RequestState::swapping_out, 0});
    }
  }
  log_decision(r, swapped ? DecisionKind::swap_out : DecisionKind::recompute, 0);
  if (swapped) {
    ++counters_.swap_out;
    leave_batch(r, RequestState::swapping_out);  // its summaries are being read: keeps its slot
  } else {
    ++counters_.recompute;
    leave_batch(r, RequestState::waiting);
    drop_state(r);
    return_slot(r);
  }
  r.seen_allocatable = -1;
  r.running = false;
  running_dirty_ = true;
  table_.enqueue(r);
}

template <CapacityPolicy Policy, PageCache Cache>
void Scheduler<Policy, Cache>::return_slot(Request& r) {
  if (!r.slot.valid()) return;
  free_slots_.push_back(r.slot.value);
  r.slot = {};
}

/// Gives up everything computed for the request: its text will be prefilled again. What the policy
/// decided for the boundary it stands at is kept.
template <CapacityPolicy Policy, PageCache Cache>
void Scheduler<Policy, Cache>::drop_state(Request& r) {
  (void)cache_->release(r.sequence);
  r.sequence = {};
  r.restore_pages = std::max({r.resume == RequestState::prefilling ? r.restore_pages : 1, r.pages});
  r.length = 0;
  r.slots = 0;
  r.pages = 0;
  r.summary_valid = false;
  r.summary_started = false;
}

template <CapacityPolicy Policy, PageCache Cache>
void Scheduler<Policy, Cache>::log_decision(const Request& r, DecisionKind kind,
                                            std::int32_t pages_after) {
  if (decisions_.capacity() == 0) return;
  DecisionRecord record;
  record.request = r.id();
  record.tag = r.tag;
  record.step = step_;
  record.kind = kind;
  record.measured = r.measured;
  record.delta = r.demand.delta();
  record.short_ratio = r.demand.short_ratio();
  record.long_ratio = r.demand.long_ratio();
  record.pages_before = kind == DecisionKind::grow ? pages_after - 1 : r.pages;
  record.pages_after = pages_after;
  record.length = r.length;
  record.pressure = pressure();
  decisions_.push(record);
}

}  // namespace growpage
