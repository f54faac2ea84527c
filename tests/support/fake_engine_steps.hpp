// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/fake_engine.hpp"

// How a step is carried out.
namespace growpage::test {

template <CapacityPolicy Policy>
void FakeEngine<Policy>::start_step() {
  const std::int64_t kv = scheduler_.counters().kv_token_steps;
  const std::int64_t running = scheduler_.counters().running_steps;
  const Result<const StepPlan*> planned = scheduler_.schedule();
  expect(planned.ok(), "schedule() after complete()");
  plan_ = *planned;
  ++step_;
  expect(plan_->step == step_, "steps are counted");
  check_plan();
  for (const RequestId id : plan_->preempted) {
    Live& live = live_.at(id.bits());
    if (*scheduler_.state(id) == RequestState::waiting) {  // to be recomputed
      live.sequence = {};
      live.summary = 0;
      live.decoded = false;
      live.slot = {};
    }
  }
  check_accounting(kv, running);
  check_progress();
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::execute() {
  tokens_.clear();
  demand_.clear();
  fences_.clear();
  failed_.clear();
  const StepPlan& plan = *plan_;
  for (const SwapItem& item : plan.swap_outs) swap_out(item);
  for (const SwapItem& item : plan.swap_ins) swap_in(item);
  memory_.copy(plan.copies);
  for (const CompactionItem& item : plan.compactions) compact(item);
  for (const PrefillChunk& chunk : plan.prefills) prefill(chunk);
  for (const DecodeItem& item : plan.decodes) decode(item);
  for (const DemandItem& item : plan.demand) measure(item);
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::complete() {
  memory_.run_due(step_, fences_);
  random_.shuffle(tokens_);
  random_.shuffle(demand_);
  random_.shuffle(fences_);
  for (const SampledToken& t : tokens_) {
    if (Live* live = find(t.request)) live->text.push_back(t.token);
  }
  const Status completed = scheduler_.complete({tokens_, demand_, fences_, failed_});
  expect(completed.ok(), "complete(): " + completed.message());
  for (auto& [bits, live] : live_) {
    const Result<RequestState> state = scheduler_.state(RequestId::from_bits(bits));
    if (state.ok() && *state != RequestState::compacting) live.compacting_pages = 0;
  }
  forget_finished();
  for (const auto& [bits, live] : live_) {
    const auto text = scheduler_.text(RequestId::from_bits(bits));
    expect(text.ok() && text->size() == live.text.size() && text->back() == live.text.back(),
           "the scheduler has the text");
  }
  if (!options_.check_invariants) return;
  const Status pages = cache_.check_invariants();
  expect(pages.ok(), pages.message());
  const Status requests = scheduler_.check_invariants();
  expect(requests.ok(), requests.message());
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::take_slot(Live& live, SummarySlot slot) {
  if (!live.slot.valid()) live.slot = slot;
  expect(live.slot == slot, "a request keeps its summary slot while it runs");
}

/// A sequence seen for the first time: what was matched must be its text's K/V.
template <CapacityPolicy Policy>
void FakeEngine<Policy>::begin(Live& live, SequenceId sequence, std::int64_t matched) {
  live.sequence = sequence;
  live.compacted = false;
  live.decoded = false;
  live.summary = 0;
  live.length = 0;
  live.rows.clear();
  while (live.length < matched) {
    live.rows.push_back(next_word(live));
    ++live.length;
  }
}

/// The row of the next token, as a function of all the text before it.
template <CapacityPolicy Policy>
std::uint64_t FakeEngine<Policy>::next_word(const Live& live) const {
  const std::uint64_t before = live.rows.empty() ? live.key : live.rows.back();
  const std::uint64_t seen =
      live.length == live.modality_from ? mix(before, live.modality) : before;
  return mix(seen, static_cast<std::uint64_t>(live.text[static_cast<std::size_t>(live.length)]));
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::append(Live& live, RequestId id, std::int64_t position) {
  expect(position == live.length, "positions are true lengths");
  const auto token = static_cast<std::uint64_t>(live.text[static_cast<std::size_t>(position)]);
  const auto slot = static_cast<std::int32_t>(live.rows.size());
  const std::uint64_t word = live.compacted ? mix(mix(id.bits(), live.sequence.bits()),
                                                  mix(token, static_cast<std::uint64_t>(position)))
                                            : next_word(live);
  live.rows.push_back(word);
  ++live.length;
  expect(memory_.write(cache_.physical_slot(live.sequence, slot), word, id.bits(), step_),
         "slots written belong to the request alone and no fence guards them");
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::start_summary(Live& live, std::int64_t position, bool first) {
  std::uint64_t& row = memory_.summary(live.slot);
  expect(first || (live.summary != 0 && row == live.summary), "summaries are the request's own");
  row = mix(first ? live.tag + 1 : row, static_cast<std::uint64_t>(position));
  live.summary = row;
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::swap_out(const SwapItem& item) {
  EngineMemory::Work work;
  work.fence = item.fence;
  work.due = due();
  for (std::size_t i = 0; i < item.transfers; ++i) {
    const PageTransfer& t = plan_->transfers_out[item.first_transfer + i];
    work.to_host.push_back(t);
    work.reads.push_back(t.device);
  }
  if (Live* live = find(item.request)) {
    expect(item.summary.valid() == (live->summary != 0), "summaries go along");
    const std::size_t used = (live->rows.size() + static_cast<std::size_t>(page_size_) - 1) /
                             static_cast<std::size_t>(page_size_);
    expect(item.transfers == used, "every page with a row goes along");
    if (item.summary.valid()) {
      take_slot(*live, item.summary);
      expect(memory_.summary(item.summary) == live->summary, "the summaries saved are its own");
      work.save_row = item.summary.value;
    }
    live->slot = {};
  }
  work.host_row = item.sequence.index;
  memory_.begin(std::move(work));
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::swap_in(const SwapItem& item) {
  EngineMemory::Work work;
  work.fence = item.fence;
  work.due = due();
  for (std::size_t i = 0; i < item.transfers; ++i) {
    const PageTransfer& t = plan_->transfers_in[item.first_transfer + i];
    work.from_host.push_back(t);
    work.rewrites.push_back(t.device);
  }
  if (Live* live = find(item.request)) {
    expect(item.summary.valid() == (live->summary != 0), "summaries come back");
    if (item.summary.valid()) {
      take_slot(*live, item.summary);
      work.load_row = item.summary.value;
    }
  }
  work.host_row = item.sequence.index;
  memory_.begin(std::move(work));
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::compact(const CompactionItem& item) {
  EngineMemory::Work work;
  work.fence = item.ticket.fence;
  work.due = due();
  const SequenceId sequence = item.ticket.sequence;
  Live* live = find(item.request);
  if (live != nullptr && cache_.alive(sequence)) {
    expect(live->sequence == sequence, "the sequence compacted is the request's");
    expect(item.position == live->length - 1, "compaction at the latest position");
    take_slot(*live, item.summary);
    expect(live->summary != 0 && memory_.summary(item.summary) == live->summary,
           "the summaries that rank are its own");
    const SequenceView before = *cache_.view(sequence);
    const std::vector<PageId> table(before.pages.begin(), before.pages.end());
    expect(live->rows.size() == table.size() * static_cast<std::size_t>(page_size_),
           "compaction only at a boundary");
    live->compacting_pages = static_cast<std::int32_t>(table.size());
    std::vector<std::uint8_t> marks(table.size());
    expect(cache_.page_marks(sequence, item.protected_slots, marks).ok(), "page marks");
    const auto compaction = random_compaction(marks, page_size_, item.protected_slots,
                                              scheduler_.policy().retention().recent,
                                              item.ticket.victims, item.ticket.strategy, random_);
    expect(compaction.ok(), "a compaction begun can be planned");
    if (random_.uniform() < options_.cancel_probability) {
      expect(cache_.cancel_compaction(item.ticket).ok(), "cancel");
    } else {
      const auto physical = [&](std::int32_t slot) {
        return table[static_cast<std::size_t>(slot / page_size_)].offset() * page_size_ +
               slot % page_size_;
      };
      for (const auto& [from, to] : compaction->moves) {
        work.moves.emplace_back(physical(from), physical(to));
      }
      // A page that keeps all its rows where they are may still be read, even by a newcomer.
      std::vector<bool> changes(table.size(), false);
      for (std::size_t p = 0; p < table.size(); ++p) {
        changes[p] = compaction->page_kept[p] < page_size_;
      }
      for (const auto& move : compaction->moves) {
        changes[static_cast<std::size_t>(move.first / page_size_)] = true;
        changes[static_cast<std::size_t>(move.second / page_size_)] = true;
      }
      for (std::size_t p = 0; p < table.size(); ++p) {
        (changes[p] ? work.rewrites : work.reads).push_back(table[p]);
      }
      compact_rows(live->rows, *compaction, page_size_);
      live->compacted = true;
      const Status applied =
          cache_.apply_compaction(item.ticket, compaction->plan, compaction->page_kept, page_size_);
      expect(applied.ok(), applied.message());
    }
  }
  memory_.begin(std::move(work));
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::sample(const Live& live, RequestId id) {
  const auto position = static_cast<std::int64_t>(live.text.size());
  const bool ends = position + 1 - live.prompt == live.output;
  tokens_.push_back(
      {id, token_of(live.voice, position), ends && live.output < live.max_new_tokens});
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::prefill(const PrefillChunk& chunk) {
  Live* live = find(chunk.request);
  if (live == nullptr) return;
  if (!(live->sequence == chunk.sequence)) begin(*live, chunk.sequence, chunk.first_position);
  expect(chunk.first_slot == static_cast<std::int32_t>(live->rows.size()), "first slot of a chunk");
  expect(chunk.first_position == live->length, "first position of a chunk");
  for (std::int32_t i = 0; i < chunk.tokens; ++i) {
    append(*live, chunk.request, chunk.first_position + i);
  }
  check_rows(*live, chunk.request);
  const bool last = live->length == static_cast<std::int64_t>(live->text.size());
  expect(chunk.last == last, "the last chunk ends the text");
  if (chunk.summary.valid()) {
    take_slot(*live, chunk.summary);
    start_summary(*live, chunk.first_position + chunk.tokens - 1, true);
    expect(!live->decoded, "summaries restart only before decoding");
  }
  if (random_.uniform() < options_.fail_probability) {
    failed_.push_back(chunk.request);
  } else if (last) {
    sample(*live, chunk.request);
  }
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::decode(const DecodeItem& item) {
  Live* live = find(item.request);
  if (live == nullptr) return;
  expect(live->sequence == item.sequence, "the request's sequence");
  expect(item.tag == live->tag, "the request's tag");
  expect(item.position + 1 == static_cast<std::int64_t>(live->text.size()), "the latest token");
  expect(item.token == live->text.back(), "the token generated last goes in");
  const auto slot = static_cast<std::int32_t>(live->rows.size());
  expect(item.slot == cache_.physical_slot(live->sequence, slot), "the slot to write");
  expect(item.kv_length == slot + 1, "kv_length counts this token");
  append(*live, item.request, item.position);
  check_rows(*live, item.request);
  take_slot(*live, item.summary);
  expect(item.summary_first == !live->decoded, "summary_first at the first decode after a start");
  start_summary(*live, item.position, item.summary_first);
  live->decoded = true;
  if (random_.uniform() < options_.fail_probability) {
    failed_.push_back(item.request);
    return;
  }
  sample(*live, item.request);
}

template <CapacityPolicy Policy>
void FakeEngine<Policy>::measure(const DemandItem& item) {
  Live* live = find(item.request);
  if (live == nullptr) return;
  if (std::find(failed_.begin(), failed_.end(), item.request) != failed_.end()) return;
  expect(scheduler_.policy().needs_demand(), "demand only for a policy that wants it");
  expect(item.position == live->length - 1, "demand at the latest position");
  expect(item.summary == live->slot && memory_.summary(item.summary) == live->summary,
         "demand of the request's own summaries");
  const SequenceView view = *cache_.view(live->sequence);
  const auto left = static_cast<std::int64_t>(view.pages.size()) * page_size_ - view.slots;
  expect(left <= limits_.early_slots, "demand at a boundary or early_slots before it");
  Demand demand{0.5, 0.5, 1};
  demand.short_sum += options_.delta ? options_.delta(live->tag) : random_.uniform() - 0.5;
  demand_.push_back({item.request, demand});
}

}  // namespace growpage::test
