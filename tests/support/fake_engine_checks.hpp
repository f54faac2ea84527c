// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_set>

#include "support/fake_engine.hpp"

// What must hold of every plan.
namespace growpage::test {

template <CapacityPolicy Policy>
void FakeEngine<Policy>::check_plan() {
  const StepPlan& plan = *plan_;
  std::int64_t tokens = static_cast<std::int64_t>(plan.decodes.size());
  std::unordered_set<std::uint64_t> seen;  // one entry a request, whatever it is
  std::unordered_set<std::int32_t> slots;
  const auto once = [&](RequestId id, SummarySlot slot) {
    expect(live_.contains(id.bits()), "planned requests are live");
    expect(seen.insert(id.bits()).second, "a request is planned once");
    if (!slot.valid()) return;
    expect(slot.value < limits_.summary_slots, "summary slots exist");
    expect(slots.insert(slot.value).second, "summary slots are not shared");
  };
  for (const SwapItem& item : plan.swap_outs) once(item.request, item.summary);
  for (const SwapItem& item : plan.swap_ins) once(item.request, item.summary);
  for (const CompactionItem& item : plan.compactions) {
    once(item.request, item.summary);
    expect(item.summary.valid(), "a compaction has summaries");
  }
  for (const DecodeItem& item : plan.decodes) {
    once(item.request, item.summary);
    expect(item.summary.valid(), "a decode has a summary slot");
  }
  for (const PrefillChunk& chunk : plan.prefills) {
    once(chunk.request, chunk.summary);
    expect(chunk.tokens > 0, "chunks are not empty");
    expect(limits_.max_prefill_chunk == 0 || chunk.tokens <= limits_.max_prefill_chunk,
           "max_prefill_chunk is respected");
    tokens += chunk.tokens;
  }
  expect(plan.batched_tokens == tokens, "batched_tokens is the sum");
  expect(tokens <= limits_.max_batched_tokens, "the token budget is respected");
  expect(scheduler_.running() <= limits_.max_running, "max_running is respected");
  std::int64_t compacting = 0;
  std::int64_t compactions = 0;
  for (const auto& [bits, live] : live_) {
    compacting += live.compacting_pages;
    compactions += live.compacting_pages > 0 ? 1 : 0;
  }
  for (const CompactionItem& item : plan.compactions) {
    compacting += static_cast<std::int64_t>(cache_.view(item.ticket.sequence)->pages.size());
    ++compactions;
  }
  expect(compactions <= 1 || compacting <= limits_.max_compacting_pages,
         "max_compacting_pages is respected");
  items_ += static_cast<std::int64_t>(seen.size());
}

/// The KV integral: pages of whoever runs, newcomers from their second step on.
template <CapacityPolicy Policy>
void FakeEngine<Policy>::check_accounting(std::int64_t kv_before, std::int64_t running_before) {
  std::int64_t pages = 0;
  std::int64_t running = 0;
  for (const auto& [bits, live] : live_) {
    const Result<RequestState> state = scheduler_.state(RequestId::from_bits(bits));
    expect(state.ok(), "live requests have a state");
    const bool runs = *state == RequestState::decoding || *state == RequestState::prefilling ||
                      *state == RequestState::compacting || *state == RequestState::swapping_in;
    if (!runs) continue;
    const auto in = [&](const auto& items) {
      return std::any_of(items.begin(), items.end(),
                         [&](const auto& i) { return i.request.bits() == bits; });
    };
    if (in(plan_->swap_ins)) continue;
    if (live.sequence.generation == 0 || !cache_.alive(live.sequence)) continue;  // just admitted
    ++running;
    pages += live.compacting_pages > 0
                 ? live.compacting_pages
                 : static_cast<std::int64_t>(cache_.view(live.sequence)->pages.size());
  }
  const Counters& c = scheduler_.counters();
  expect(c.kv_token_steps - kv_before == pages * page_size_, "KV tokens held are counted");
  expect(c.running_steps - running_before == running, "running requests are counted");
  expect(c.preempt == c.swap_out + c.recompute, "preemptions are counted by kind");
}

/// While nothing is in flight, a step without work is a step lost; a few in a row are a deadlock.
template <CapacityPolicy Policy>
void FakeEngine<Policy>::check_progress() {
  const bool works = !plan_->empty() || memory_.pending() > 0 || live_.empty();
  idle_steps_ = works ? 0 : idle_steps_ + 1;
  expect(idle_steps_ < 3, "somebody makes progress");
}

/// The block table leads to the request's own content, readable now.
template <CapacityPolicy Policy>
void FakeEngine<Policy>::check_rows(const Live& live, RequestId id) {
  const Result<SequenceView> view = cache_.view(live.sequence);
  expect(view.ok() && !view->busy && !view->swapped, "the batch is at rest");
  expect(view->length == live.length, "the cache knows the true length");
  expect(view->slots == static_cast<std::int32_t>(live.rows.size()), "used slots");
  for (std::size_t s = 0; s < live.rows.size(); ++s) {
    const auto slot = static_cast<std::int32_t>(s);
    const PageId page = view->pages[s / static_cast<std::size_t>(page_size_)];
    if (slot % page_size_ == 0) {
      expect(memory_.readable(page, id.bits(), step_), "pages are read when they are ready");
    }
    const std::int64_t physical = cache_.physical_slot(live.sequence, slot);
    expect(physical == page.offset() * page_size_ + slot % page_size_, "physical slots");
    if (memory_.word(physical) != live.rows[s]) {
      expect(false, "request " + std::to_string(live.tag) + " reads its own content at slot " +
                        std::to_string(s) + " of " + std::to_string(live.rows.size()));
    }
  }
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::forget_finished() {
  for (const auto& done : scheduler_.finished()) {
    const auto found = live_.find(done.request.bits());
    if (found == live_.end()) continue;  // an abort told before
    const Live& live = found->second;
    expect(done.tag == live.tag, "finished requests keep their tag");
    expect(done.generated == static_cast<std::int64_t>(live.text.size()) - live.prompt,
           "generated tokens are counted");
    if (!done.aborted) {
      expect(done.generated == live.output, "every request ends with its exact output length");
      ++finished_;
    }
    longest_wait_ = std::max(longest_wait_, step_ - live.submitted_step);
    live_.erase(found);
  }
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::maybe_abort() {
  if (live_.empty() || random_.uniform() >= options_.abort_probability / 3) return;
  auto victim = live_.begin();
  std::advance(victim, random_.below(static_cast<std::int32_t>(live_.size())));
  abort(RequestId::from_bits(victim->first));
}

}  // namespace growpage::test
