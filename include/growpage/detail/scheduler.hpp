// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "growpage/detail/require.hpp"
#include "growpage/schedule/scheduler.hpp"

// Construction, submission, results. One step's planning is in scheduler_step.hpp, capacity
// boundaries and memory pressure in scheduler_boundary.hpp.
namespace growpage {

template <CapacityPolicy Policy, PageCache Cache>
Scheduler<Policy, Cache>::Scheduler(Cache& cache, Policy policy, const SchedulerOptions& options)
    : cache_(&cache),
      policy_(std::move(policy)),
      options_(options),
      retention_(policy_.retention()),
      limits_(policy_.limits(cache.options().page_size)),
      page_size_(cache.options().page_size),
      decisions_(static_cast<std::size_t>(options.decision_capacity)) {
  const auto running = static_cast<std::size_t>(options_.max_running);
  running_.reserve(running + 1);
  in_flight_.reserve(static_cast<std::size_t>(cache.options().max_fences));
  marks_.resize(static_cast<std::size_t>(cache.options().max_pages_per_sequence));
  finished_.reserve(running);
  plan_.decodes.reserve(running);
  plan_.prefills.reserve(running);
  plan_.demand.reserve(running);
  plan_.compactions.reserve(running);
  plan_.swap_outs.reserve(running);
  plan_.swap_ins.reserve(running);
  plan_.preempted.reserve(running);
  for (std::int32_t slot = options_.summary_slots - 1; slot >= 0; --slot) {
    free_slots_.push_back(slot);
  }
}

template <CapacityPolicy Policy, PageCache Cache>
Result<Scheduler<Policy, Cache>> Scheduler<Policy, Cache>::create(Cache& cache, Policy policy,
                                                                  const SchedulerOptions& options) {
  if (Status s = options.validate(); !s.ok()) return s;
  if (Status s = policy.validate(cache.options().page_size); !s.ok()) return s;
  if (options.early_slots > policy.retention().recent) {
    return Status::invalid(
        "SchedulerOptions::early_slots", std::int64_t{options.early_slots},
        "at most RetentionOptions::recent (" + std::to_string(policy.retention().recent) + ")");
  }
  if (options.max_running > cache.options().max_sequences) {
    return Status::invalid("SchedulerOptions::max_running", std::int64_t{options.max_running},
                           "at most PageManagerOptions::max_sequences (" +
                               std::to_string(cache.options().max_sequences) + ")");
  }
  if (options.preemption == Preemption::swap && cache.options().host_pages == 0) {
    return Status::invalid("PageManagerOptions::host_pages", std::int64_t{0},
                           "above 0 with Preemption::swap");
  }
  return Scheduler(cache, std::move(policy), options);
}

template <CapacityPolicy Policy, PageCache Cache>
Result<RequestId> Scheduler<Policy, Cache>::submit(const RequestSpec& spec) {
  const auto prompt = static_cast<std::int64_t>(spec.prompt.size());
  constexpr std::int64_t longest = std::int64_t{1} << 40;
  Status s;
  if (!detail::require_range(s, "RequestSpec::prompt.size()", prompt, 1, longest)) return s;
  if (!detail::require_range(s, "RequestSpec::max_new_tokens", spec.max_new_tokens, 1, longest)) {
    return s;
  }
  if (!detail::require_range(s, "RequestSpec::key.modality_from", spec.key.modality_from, 0,
                             longest)) {
    return s;
  }

  // The fewest pages the request can live with: all its text when it is short; else its prompt and
  // a page to grow into, and beside protected pages one to empty and the newest.
  const auto pages_of = [this](std::int64_t tokens) {
    return (tokens + page_size_ - 1) / page_size_;
  };
  const std::int64_t max_text = prompt + spec.max_new_tokens;
  std::int64_t needed = pages_of(max_text - 1);  // the last token generated needs no K/V
  if (policy_.may_compact()) {
    const std::int64_t kept = std::max<std::int64_t>(
        retention_.sinks, retention_.protect_prompt ? prompt : std::int64_t{0});
    const std::int64_t alive = std::max(
        {pages_of(prompt) + 1, std::int64_t{2}, kept > 0 ? pages_of(kept) + 2 : std::int64_t{0}});
    needed = std::min(needed, alive);
  }
  const std::int64_t most =
      std::min<std::int64_t>(cache_->options().pages, cache_->options().max_pages_per_sequence);
  if (needed > most) {
    ++counters_.refused;
    return Status::error(
        StatusCode::request_too_large, "RequestSpec::prompt",
        std::to_string(needed) + " pages at the least",
        "at most " + std::to_string(most) + " (PageManagerOptions::pages, max_pages_per_sequence)");
  }

  Request& r = table_.add();
  r.tag = spec.tag;
  r.rank_time = options_.aging_steps > 0
                    ? step_ + std::int64_t{spec.priority} * options_.aging_steps
                    : spec.priority;
  r.order = counters_.submitted++;
  r.prompt = prompt;
  r.max_text = max_text;
  r.text.reserve(static_cast<std::size_t>(max_text));
  r.text.assign(spec.prompt.begin(), spec.prompt.end());
  r.salt = spec.key.salt;
  r.lora = spec.key.lora;
  r.modality = spec.key.modality;
  r.modality_from = spec.key.modality_from;
  table_.enqueue(r);
  return r.id();
}

template <CapacityPolicy Policy, PageCache Cache>
Status Scheduler<Policy, Cache>::abort(RequestId id) {
  Request* r = table_.find(id);
  if (r == nullptr) return StatusCode::stale_id;
  finish(*r, true);
  drop_from_running();
  return {};
}

/// Returns what the request holds and forgets it. Its index stays in running_ until
/// drop_from_running.
template <CapacityPolicy Policy, PageCache Cache>
void Scheduler<Policy, Cache>::finish(Request& r, bool aborted) {
  if (r.expects_token) --expected_tokens_;
  if (r.expects_demand) --expected_demand_;
  if (r.state == RequestState::decoding) --decoding_;
  if (r.sequence.generation != 0) (void)cache_->release(r.sequence);
  if (r.slot.valid()) free_slots_.push_back(r.slot.value);
  ++(aborted ? counters_.aborted : counters_.finished);
  finished_.push_back({r.id(), r.tag, r.generated(), aborted});
  running_dirty_ = true;
  table_.remove(r);
}

template <CapacityPolicy Policy, PageCache Cache>
void Scheduler<Policy, Cache>::drop_from_running() {
  if (!running_dirty_) return;
  running_dirty_ = false;
  std::erase_if(running_, [this](std::uint32_t index) {
    const Request& r = table_[index];
    return !r.live || !r.running;
  });
}

template <CapacityPolicy Policy, PageCache Cache>
Status Scheduler<Policy, Cache>::check_result(const StepResult& result) {
  if (!plan_open_) {
    return Status::error(StatusCode::protocol_error, "complete()", "called without a plan",
                         "one call after each schedule()");
  }
  ++check_epoch_;
  std::int64_t tokens = 0;
  std::int64_t demand = 0;
  for (const RequestId id : result.failed) {
    Request* r = table_.find(id);
    if (r == nullptr) continue;  // aborted meanwhile
    if (!r->planned || r->token_epoch == check_epoch_) {
      return Status::invalid("StepResult::failed", static_cast<std::int64_t>(id.bits()),
                             "each planned request at most once");
    }
    r->token_epoch = check_epoch_;
    r->demand_epoch = check_epoch_;
    tokens += r->expects_token ? 1 : 0;
    demand += r->expects_demand ? 1 : 0;
  }
  for (const SampledToken& t : result.tokens) {
    Request* r = table_.find(t.request);
    if (r == nullptr) continue;
    if (!r->expects_token || r->token_epoch == check_epoch_) {
      return Status::invalid("StepResult::tokens", static_cast<std::int64_t>(t.request.bits()),
                             "one token for each decode and each last prefill chunk of the plan");
    }
    r->token_epoch = check_epoch_;
    ++tokens;
  }
  for (const MeasuredDemand& m : result.demand) {
    Request* r = table_.find(m.request);
    if (r == nullptr) continue;
    if (!r->expects_demand || r->demand_epoch == check_epoch_) {
      return Status::invalid("StepResult::demand", static_cast<std::int64_t>(m.request.bits()),
                             "one entry for each StepPlan::demand");
    }
    r->demand_epoch = check_epoch_;
    ++demand;
  }
  if (tokens != expected_tokens_) {
    return Status::invalid("StepResult::tokens", tokens,
                           std::to_string(expected_tokens_) +
                               " entries: one for each decode and each last prefill chunk");
  }
  if (demand != expected_demand_) {
    return Status::invalid(
        "StepResult::demand", demand,
        std::to_string(expected_demand_) + " entries: one for each StepPlan::demand");
  }
  for (std::size_t i = 0; i < result.fences.size(); ++i) {
    const FenceId fence = result.fences[i];
    const bool open =
        std::any_of(in_flight_.begin(), in_flight_.end(),
                    [fence](const InFlight& f) { return f.fence == fence; }) &&
        std::find(result.fences.begin(), result.fences.begin() + static_cast<std::ptrdiff_t>(i),
                  fence) == result.fences.begin() + static_cast<std::ptrdiff_t>(i);
    if (!open) {
      return Status::error(StatusCode::stale_id, "StepResult::fences", std::to_string(fence.bits()),
                           "open fences of this scheduler, once each");
    }
  }
  return {};
}

template <CapacityPolicy Policy, PageCache Cache>
Status Scheduler<Policy, Cache>::complete(const StepResult& result) {
  if (Status s = check_result(result); !s.ok()) return s;
  plan_open_ = false;
  finished_.clear();

  for (const RequestId id : result.failed) {
    if (Request* r = table_.find(id); r != nullptr) finish(*r, true);
  }
  for (const PrefillChunk& chunk : plan_.prefills) {
    Request* r = table_.find(chunk.request);
    if (r == nullptr) continue;
    r->planned = false;
    counters_.prefill_tokens += chunk.tokens;
    (void)cache_->mark_computed(r->sequence, r->slots);
    if (chunk.summary.valid()) r->summary_valid = true;
    if (!chunk.last) continue;
    r->state = RequestState::decoding;
    r->summary_started = false;
    ++decoding_;
  }
  for (const DecodeItem& item : plan_.decodes) {
    Request* r = table_.find(item.request);
    if (r == nullptr) continue;
    r->planned = false;
    r->summary_valid = r->summary_started = true;
    // Nothing reads the count between page ends: publishing and compaction both happen there.
    if (r->slots % page_size_ == 0) (void)cache_->mark_computed(r->sequence, r->slots);
  }
  for (const MeasuredDemand& m : result.demand) {
    Request* r = table_.find(m.request);
    if (r == nullptr) continue;
    r->demand = m.demand;
    r->measured = m.demand.count > 0;
    r->expects_demand = false;
  }
  for (const SampledToken& t : result.tokens) {
    Request* r = table_.find(t.request);
    if (r == nullptr) continue;
    r->expects_token = false;
    r->text.push_back(t.token);
    ++counters_.decode_tokens;
    if (t.stop || static_cast<std::int64_t>(r->text.size()) >= r->max_text) finish(*r, false);
  }
  expected_tokens_ = 0;
  expected_demand_ = 0;
  for (const FenceId fence : result.fences) fence_done(fence);
  drop_from_running();
  return {};
}

template <CapacityPolicy Policy, PageCache Cache>
void Scheduler<Policy, Cache>::fence_done(FenceId fence) {
  const auto found = std::find_if(in_flight_.begin(), in_flight_.end(),
                                  [fence](const InFlight& f) { return f.fence == fence; });
  const InFlight done = *found;
  *found = in_flight_.back();
  in_flight_.pop_back();
  // stale_id here means the cache gave the work up itself and closed the fence.
  (void)cache_->complete_fence(fence);
  compacting_pages_ -= done.pages;
  Request* r = table_.find(done.request);
  if (r == nullptr) return;
  if (done.state == RequestState::swapping_out) {
    r->state = RequestState::swapped;
    return;
  }
  r->state = r->resume;
  if (r->state == RequestState::decoding) ++decoding_;
  if (const Result<SequenceView> view = cache_->view(r->sequence); view.ok()) {
    r->slots = view->slots;
    r->pages = static_cast<std::int32_t>(view->pages.size());
  }
  if (done.state == RequestState::compacting) boundary_passed(*r);
}

template <CapacityPolicy Policy, PageCache Cache>
Result<RequestState> Scheduler<Policy, Cache>::state(RequestId id) const {
  const Request* r = table_.find(id);
  if (r == nullptr) return StatusCode::stale_id;
  return r->state;
}

template <CapacityPolicy Policy, PageCache Cache>
Result<std::span<const TokenId>> Scheduler<Policy, Cache>::text(RequestId id) const {
  const Request* r = table_.find(id);
  if (r == nullptr) return StatusCode::stale_id;
  return std::span<const TokenId>(r->text);
}

template <CapacityPolicy Policy, PageCache Cache>
Status Scheduler<Policy, Cache>::check_invariants() const {
  const auto broken = [](const char* what, std::int64_t value, const char* rule) {
    return Status::error(StatusCode::protocol_error, what, std::to_string(value), rule);
  };
  std::int64_t slots = static_cast<std::int64_t>(free_slots_.size());
  std::int64_t sequences = 0;
  std::int64_t decoding = 0;
  for (const Request& r : table_.all()) {
    if (!r.live) continue;
    if (r.slot.valid()) ++slots;
    if (r.sequence.generation == 0) continue;
    ++sequences;
    const Result<SequenceView> view = cache_->view(r.sequence);
    if (!view.ok()) return broken("request", static_cast<std::int64_t>(r.tag), "a live sequence");
    if (view->busy) continue;
    if (view->length != r.length) return broken("length", r.length, "the cache's length");
    if (view->slots != r.slots) return broken("slots", r.slots, "the cache's slots");
    if (static_cast<std::int32_t>(view->pages.size()) != r.pages) {
      return broken("pages", r.pages, "the cache's pages");
    }
    if (r.state == RequestState::decoding) ++decoding;
  }
  if (slots != options_.summary_slots) {
    return broken("summary slots", slots, "free + held = SchedulerOptions::summary_slots");
  }
  if (decoding != decoding_) return broken("decoding", decoding, "the count of decoding requests");
  if (sequences > cache_->live_sequences()) {
    return broken("sequences", sequences, "at most the cache's live sequences");
  }
  return {};
}

}  // namespace growpage

#include "growpage/detail/scheduler_boundary.hpp"
#include "growpage/detail/scheduler_step.hpp"
