// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "growpage/detail/require.hpp"
#include "growpage/schedule/scheduler.hpp"

// Construction, submission, looking. One step's planning is in scheduler_step.hpp, capacity
// boundaries and memory pressure in scheduler_boundary.hpp, results in scheduler_results.hpp.
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
  // What one step can copy and swap at most; pools too large for that much memory grow into it.
  constexpr std::int64_t many = 1 << 20;
  plan_.copies.reserve(static_cast<std::size_t>(std::min(cache.options().pages, many)));
  const auto swapped = static_cast<std::size_t>(std::min(cache.options().host_pages, many));
  plan_.transfers_out.reserve(swapped);
  plan_.transfers_in.reserve(swapped);
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
  // Until the first decision: the initial pages or the prompt plus one page, as far as the text can
  // fill them.
  r.free_pages = static_cast<std::int32_t>(
      std::min({std::max<std::int64_t>(limits_.initial_pages, pages_of(prompt) + 1),
                pages_of(max_text - 1), std::int64_t{cache_->options().max_pages_per_sequence}}));
  // All of it, so that no step allocates, but not for a max_new_tokens that means "no limit".
  r.text.reserve(static_cast<std::size_t>(std::min(max_text, prompt + std::int64_t{1 << 16})));
  r.text.assign(spec.prompt.begin(), spec.prompt.end());
  r.salt = spec.key.salt;
  r.lora = spec.key.lora;
  r.modality = spec.key.modality;
  r.modality_from = spec.key.modality_from;
  table_.enqueue(r);
  return r.id();
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
  for (const auto& entry : table_.all()) {
    const Request& r = *entry;
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
#include "growpage/detail/scheduler_results.hpp"
#include "growpage/detail/scheduler_step.hpp"
