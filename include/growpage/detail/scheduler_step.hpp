// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "growpage/schedule/scheduler.hpp"

// Planning one step.
namespace growpage {

template <CapacityPolicy Policy, PageCache Cache>
Result<const StepPlan*> Scheduler<Policy, Cache>::schedule() {
  if (plan_open_) {
    return Status::error(StatusCode::protocol_error, "schedule()", "called twice",
                         "complete() between two calls");
  }
  ++step_;
  ++counters_.steps;
  plan_.step = step_;
  plan_.swap_outs.clear();
  plan_.swap_ins.clear();
  plan_.transfers_out.clear();
  plan_.transfers_in.clear();
  plan_.copies.clear();
  plan_.compactions.clear();
  plan_.prefills.clear();
  plan_.decodes.clear();
  plan_.demand.clear();
  plan_.preempted.clear();
  plan_.batched_tokens = 0;
  preempted_now_ = false;

  plan_running();
  drop_from_running();
  counters_.evicted_pages = cache_->evicted_pages();
  counters_.copied_pages = cache_->copied_pages();
  plan_open_ = true;
  return &plan_;
}

/// Walks the running requests by rank, so that whoever is preempted for a page has not been planned
/// yet, then admits with what is left of the budget. Decodes take one token each; prefills share
/// the rest.
template <CapacityPolicy Policy, PageCache Cache>
void Scheduler<Policy, Cache>::plan_running() {
  std::int64_t decodes_left = decoding_;
  std::int64_t budget = options_.max_batched_tokens;
  std::int64_t held_pages = 0;
  promised_pages_ = 0;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Request& r = table_[running_[i]];
    if (!r.live || !r.running) continue;
    if (r.state == RequestState::decoding) {
      --decodes_left;
      if (budget > 0 && plan_decode(r) == Outcome::proceed) --budget;
    } else if (r.state == RequestState::prefilling) {
      std::int64_t share = budget - decodes_left;
      const std::int64_t before = share;
      (void)plan_prefill(r, share);
      budget -= before - share;
    }
    if (!r.running) continue;
    held_pages += r.pages;
    promise(r);
  }
  drop_from_running();
  counters_.kv_token_steps += held_pages * page_size_;
  counters_.running_steps += running();
  if (!preempted_now_) plan_admissions(budget);
  plan_.batched_tokens = options_.max_batched_tokens - budget;
}

template <CapacityPolicy Policy, PageCache Cache>
auto Scheduler<Policy, Cache>::plan_decode(Request& r) -> Outcome {
  if (r.slots == r.pages * page_size_ && at_boundary(r) == Outcome::sits_out) {
    return Outcome::sits_out;
  }
  const TokenId token = r.newest;
  const Status appended = cache_->append(r.sequence, 1, &token, plan_.copies);
  if (!appended.ok()) {  // a copy-on-write page was not to be had: make one, go on next step
    (void)make_room(r, one_page);
    return Outcome::sits_out;
  }
  DecodeItem& item = plan_.decodes.emplace_back();
  item.request = r.id();
  item.sequence = r.sequence;
  item.tag = r.tag;
  item.token = token;
  item.position = r.length;
  item.slot = cache_->physical_slot(r.sequence, r.slots);
  item.summary = r.slot;
  item.summary_first = !r.summary_started;
  ++r.length;
  ++r.slots;
  item.kv_length = r.slots;
  r.planned = true;
  r.expects_token = true;
  ++expected_tokens_;

  // Measure demand for the boundary to come, unless the text ends before it, growth is free, or
  // there is nothing to evict.
  const std::int32_t left = r.pages * page_size_ - r.slots;
  if (policy_.needs_demand() && !r.measured && left <= options_.early_slots &&
      r.pages >= free_pages_limit(r) && r.slots > page_size_ && r.length + left + 1 < r.max_text) {
    plan_.demand.push_back({r.id(), r.sequence, r.tag, r.slot, item.position});
    r.expects_demand = true;
    ++expected_demand_;
  }
  return Outcome::proceed;
}

/// The next chunk of the text, as far as the budget, the pages and, when a preempted request's text
/// is computed again, its capacity reach. `budget` shrinks by what was planned.
template <CapacityPolicy Policy, PageCache Cache>
auto Scheduler<Policy, Cache>::plan_prefill(Request& r, std::int64_t& budget) -> Outcome {
  if (budget <= 0) return Outcome::sits_out;
  const std::int64_t remaining = static_cast<std::int64_t>(r.text.size()) - r.length;
  std::int64_t tokens = std::min(remaining, budget);
  if (options_.max_prefill_chunk > 0) tokens = std::min(tokens, options_.max_prefill_chunk);

  std::int64_t capacity = prefill_pages(r);
  if (r.slots == capacity * page_size_) {
    if (at_boundary(r) == Outcome::sits_out) return Outcome::sits_out;
    capacity = r.pages;
  }
  tokens = std::min(tokens, capacity * page_size_ - r.slots);

  // Take what pages there are rather than wait for all.
  const std::int64_t room = std::int64_t{r.pages} * page_size_ - r.slots;
  if (tokens > room) {
    if (cache_->allocatable() == 0 && room == 0) {
      if (make_room(r, one_page) == Outcome::sits_out) return Outcome::sits_out;
    }
    tokens = std::min(tokens, room + cache_->allocatable() * page_size_);
  }
  const Status reserved = cache_->reserve(r.sequence, tokens);
  if (!reserved.ok()) return Outcome::sits_out;
  const auto pages = static_cast<std::int32_t>((r.slots + tokens + page_size_ - 1) / page_size_);
  counters_.free_growth += std::max(0, pages - r.pages);
  r.pages = std::max(r.pages, pages);
  const Status appended =
      cache_->append(r.sequence, tokens, r.text.data() + r.length, plan_.copies);
  if (!appended.ok()) {
    (void)make_room(r, one_page);
    return Outcome::sits_out;
  }

  PrefillChunk& chunk = plan_.prefills.emplace_back();
  chunk.request = r.id();
  chunk.sequence = r.sequence;
  chunk.tag = r.tag;
  chunk.first_position = r.length;
  chunk.first_slot = r.slots;
  chunk.tokens = static_cast<std::int32_t>(tokens);
  chunk.last = tokens == remaining;
  r.length += tokens;
  r.slots += static_cast<std::int32_t>(tokens);
  if (r.slots == r.pages * page_size_ && (chunk.last || r.slots == capacity * page_size_)) {
    chunk.summary = r.slot;
  }
  r.planned = true;
  if (chunk.last) {
    r.expects_token = true;
    ++expected_tokens_;
  }
  budget -= tokens;
  return Outcome::proceed;
}

/// Sets aside what the request may still take without a decision.
template <CapacityPolicy Policy, PageCache Cache>
void Scheduler<Policy, Cache>::promise(const Request& r) noexcept {
  if (!options_.overcommit) promised_pages_ += pages_due(r) - r.pages;
}

template <CapacityPolicy Policy, PageCache Cache>
void Scheduler<Policy, Cache>::plan_admissions(std::int64_t& budget) {
  while (budget > 0 && running() < options_.max_running && !free_slots_.empty()) {
    Request* r = table_.front();
    if (r == nullptr || r->state == RequestState::swapping_out || !worth_trying(*r)) return;
    const bool swapped = r->state == RequestState::swapped;
    if (!(swapped ? swap_in(*r) : admit(*r))) {
      r->seen_allocatable = cache_->allocatable();
      r->seen_step = step_;
      return;  // the best-ranked waits: nobody overtakes it
    }
    table_.pop_front();
    r->slot = SummarySlot{free_slots_.back()};
    free_slots_.pop_back();
    r->running = true;
    const auto place = std::upper_bound(
        running_.begin(), running_.end(), r->index,
        [this](std::uint32_t a, std::uint32_t b) { return ranks_before(table_[a], table_[b]); });
    running_.insert(place, r->index);
    if (swapped) {
      plan_.swap_ins.back().summary = r->summary_valid ? r->slot : SummarySlot{};
    } else {
      (void)plan_prefill(*r, budget);
    }
    promise(*r);
  }
}

/// Looking a long prompt up costs time: after a failure, only when more pages than then have come
/// free.
template <CapacityPolicy Policy, PageCache Cache>
bool Scheduler<Policy, Cache>::worth_trying(const Request& r) const noexcept {
  return running_.empty() || r.seen_allocatable < 0 || cache_->allocatable() > r.seen_allocatable ||
         step_ - r.seen_step >= 64;
}

/// Admits when the pages due to it and those promised to the running requests are there now: unless
/// asked to overcommit, admission does not promise the same page twice. (Growth by decision does;
/// that is what preemption is for.) When nothing runs, a page is enough.
template <CapacityPolicy Policy, PageCache Cache>
bool Scheduler<Policy, Cache>::admit(Request& r) {
  // Its last page is computed at any rate: the summaries begin there, without which nothing ranks
  // the rows at the boundary that follows.
  const std::int64_t due = pages_due(r);
  const std::span<const TokenId> text(r.text);
  const std::span<const TokenId> known =
      text.first(std::min(text.size(), static_cast<std::size_t>(prefill_pages(r) * page_size_)));
  auto admission = cache_->admit(known, r.key());
  if (admission.code() == StatusCode::out_of_sequences && recompute_swapped(r)) {
    admission = cache_->admit(known, r.key());
  }
  if (!admission.ok()) return false;
  const Result<SequenceView> view = cache_->view(admission->sequence);
  const auto matched_pages = static_cast<std::int64_t>(view->pages.size());
  const std::int64_t needed = std::max<std::int64_t>(due - matched_pages, 1);
  if (cache_->allocatable() < (running_.empty() ? 1 : needed + promised_pages_)) {
    (void)cache_->release(admission->sequence);
    return false;
  }
  r.sequence = admission->sequence;
  r.length = admission->matched;
  r.slots = static_cast<std::int32_t>(admission->matched);
  r.pages = static_cast<std::int32_t>(matched_pages);
  r.state = RequestState::prefilling;
  if (r.restore_pages == 0) {
    counters_.prefix_query_tokens += static_cast<std::int64_t>(text.size());
    counters_.prefix_hit_tokens += admission->matched;
  }
  return true;
}

template <CapacityPolicy Policy, PageCache Cache>
bool Scheduler<Policy, Cache>::swap_in(Request& r) {
  // With the page it was preempted for, or it would be back on the host at once.
  const std::int64_t needed =
      std::max<std::int64_t>(pages_due(r), r.slots / page_size_ + 1) + promised_pages_;
  if (!running_.empty() && cache_->allocatable() < needed) return false;
  const std::size_t first = plan_.transfers_in.size();
  const Result<FenceId> fence = cache_->swap_in(r.sequence, plan_.transfers_in);
  if (!fence.ok()) return false;
  plan_.swap_ins.push_back(
      {r.id(), r.sequence, *fence, SummarySlot{}, first, plan_.transfers_in.size() - first});
  in_flight_.push_back({*fence, r.id(), RequestState::swapping_in, 0});
  r.state = RequestState::swapping_in;
  ++counters_.swap_in;
  return true;
}

/// Swapped requests hold sequences. When `r` finds none, the worst-ranked swapped one gives its up
/// and will be recomputed, so that no better-ranked request waits for it.
template <CapacityPolicy Policy, PageCache Cache>
bool Scheduler<Policy, Cache>::recompute_swapped(const Request& r) {
  Request* worst = nullptr;
  for (const auto& entry : table_.all()) {
    Request& other = *entry;
    if (!other.live || other.state != RequestState::swapped || !ranks_before(r, other)) continue;
    if (worst == nullptr || ranks_before(*worst, other)) worst = &other;
  }
  if (worst == nullptr) return false;
  drop_state(*worst);
  worst->state = RequestState::waiting;
  return true;
}

}  // namespace growpage
