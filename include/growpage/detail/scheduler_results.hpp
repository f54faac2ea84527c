// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "growpage/schedule/scheduler.hpp"

// What the engine reports, and how requests end.
namespace growpage {

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
  return_slot(r);
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
  // Entries of requests aborted meanwhile are ignored; those of no request of the plan are not.
  const auto in = [](const auto& items, RequestId id) {
    return std::any_of(items.begin(), items.end(), [id](const auto& i) { return i.request == id; });
  };
  const auto in_batch = [&](RequestId id) {
    return in(plan_.decodes, id) || in(plan_.prefills, id);
  };
  for (const RequestId id : result.failed) {
    Request* r = table_.find(id);
    if (r == nullptr && in_batch(id)) continue;
    if (r == nullptr || !r->planned || r->token_epoch == check_epoch_) {
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
    if (r == nullptr && in_batch(t.request)) continue;
    if (r == nullptr || !r->expects_token || r->token_epoch == check_epoch_) {
      return Status::invalid("StepResult::tokens", static_cast<std::int64_t>(t.request.bits()),
                             "one token for each decode and each last prefill chunk of the plan");
    }
    r->token_epoch = check_epoch_;
    ++tokens;
  }
  for (const MeasuredDemand& m : result.demand) {
    Request* r = table_.find(m.request);
    if (r == nullptr && in(plan_.demand, m.request)) continue;
    if (r == nullptr || !r->expects_demand || r->demand_epoch == check_epoch_) {
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
    if (r->planned) {  // a decode; prefills are dealt with above
      r->planned = false;
      r->summary_valid = r->summary_started = true;
      // Nothing reads the count between page ends: publishing and compaction both happen there.
      if ((r->slots & (page_size_ - 1)) == 0) (void)cache_->mark_computed(r->sequence, r->slots);
    }
    r->text.push_back(t.token);
    r->newest = t.token;
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
    return_slot(*r);
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

}  // namespace growpage
