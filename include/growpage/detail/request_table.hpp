// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "growpage/core/ids.hpp"
#include "growpage/demand/demand.hpp"
#include "growpage/policy/capacity_policy.hpp"
#include "growpage/schedule/request.hpp"

namespace growpage::detail {

/// Everything the scheduler knows of a request. What every step reads comes first.
struct alignas(64) Request {
  std::uint32_t index = 0;
  std::uint32_t generation = 1;
  RequestState state = RequestState::waiting;
  bool live = false;
  bool running = false;        // admitted: in the running list
  bool in_queue = false;       // in the waiting heap
  bool planned = false;        // has an entry in the current plan
  bool expects_token = false;  // from complete() of the current plan
  bool expects_demand = false;
  bool measured = false;         // `demand` belongs to the boundary to come
  bool decided = false;          // the policy has answered for the current boundary
  bool summary_valid = false;    // the slot's summaries hold this request's queries
  bool summary_started = false;  // … since decoding began
  SummarySlot slot;
  SequenceId sequence;
  std::int32_t slots = 0;   // used slots; mirrors the cache
  std::int32_t pages = 0;   // mirrors the cache
  std::int64_t length = 0;  // tokens appended; mirrors the cache
  std::uint64_t token_epoch = 0;
  TokenId newest = 0;           // the last token sampled: what a decode step starts from
  std::vector<TokenId> text;    // prompt, then generated tokens
  std::int64_t max_text = 0;    // prompt + max_new_tokens
  std::int64_t boundaries = 0;  // decisions so far
  std::uint64_t tag = 0;
  std::int32_t free_pages = 0;     // taken without a decision until the first one
  std::int32_t restore_pages = 0;  // held when preempted for recompute: taken back freely
  std::uint64_t demand_epoch = 0;
  Demand demand;
  Decision decision = Decision::grow;
  RequestState resume = RequestState::decoding;  // what swapping in or compacting returns to

  std::int64_t prompt = 0;
  std::int64_t rank_time = 0;          // submission step + priority × aging_steps
  std::int64_t order = 0;              // submission order: breaks ties
  std::int64_t seen_allocatable = -1;  // when admission last failed for want of pages
  std::int64_t seen_step = 0;
  std::string salt, lora, modality;
  std::int64_t modality_from = 0;

  [[nodiscard]] RequestId id() const noexcept { return {index, generation}; }
  [[nodiscard]] std::int64_t generated() const noexcept {
    return static_cast<std::int64_t>(text.size()) - prompt;
  }
  [[nodiscard]] ExtraKey key() const noexcept { return {salt, lora, modality, modality_from}; }
};

/// a ranks before b: runs earlier, is preempted later.
[[nodiscard]] inline bool ranks_before(const Request& a, const Request& b) noexcept {
  return a.rank_time != b.rank_time ? a.rank_time < b.rank_time : a.order < b.order;
}

/// The requests, generation-tagged, and the queue of those that wait (a heap by rank). Allocates
/// only in `add`.
class RequestTable {
 public:
  Request& add() {
    if (free_.empty()) {
      slots_.push_back(std::make_unique<Request>());
      slots_.back()->index = static_cast<std::uint32_t>(slots_.size() - 1);
      if (slots_.size() > free_.capacity()) {
        free_.reserve(2 * slots_.size());
        heap_.reserve(4 * slots_.size());
      }
      free_.push_back(slots_.back()->index);
    }
    Request& r = *slots_[free_.back()];
    free_.pop_back();
    r.live = true;
    ++live_;
    return r;
  }

  void remove(Request& r) noexcept {
    const std::uint32_t index = r.index;
    const std::uint32_t generation = r.generation + 1;
    r = Request{};
    r.index = index;
    r.generation = generation == 0 ? 1 : generation;
    free_.push_back(index);
    --live_;
  }

  [[nodiscard]] Request* find(RequestId id) noexcept {
    if (id.index >= slots_.size()) return nullptr;
    Request& r = *slots_[id.index];
    return r.live && r.generation == id.generation ? &r : nullptr;
  }
  [[nodiscard]] const Request* find(RequestId id) const noexcept {
    return const_cast<RequestTable*>(this)->find(id);
  }
  [[nodiscard]] Request& operator[](std::uint32_t index) noexcept { return *slots_[index]; }
  [[nodiscard]] const Request& operator[](std::uint32_t index) const noexcept {
    return *slots_[index];
  }
  [[nodiscard]] std::int64_t live() const noexcept { return live_; }
  /// Also those that are gone.
  [[nodiscard]] const std::vector<std::unique_ptr<Request>>& all() const noexcept { return slots_; }

  void enqueue(Request& r) {
    if (heap_.size() == heap_.capacity()) purge();
    r.in_queue = true;
    heap_.push_back({r.rank_time, r.order, r.id()});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  /// The best-ranked waiting request; null when none waits. Entries of requests gone since are
  /// dropped.
  [[nodiscard]] Request* front() noexcept {
    while (!heap_.empty()) {
      Request* r = find(heap_.front().id);
      if (r != nullptr && r->in_queue) return r;
      drop_front();
    }
    return nullptr;
  }
  void pop_front() noexcept {
    if (Request* r = front(); r != nullptr) {
      r->in_queue = false;
      drop_front();
    }
  }

 private:
  struct Entry {
    std::int64_t rank_time, order;
    RequestId id;
  };
  static bool later(const Entry& a, const Entry& b) noexcept {
    return a.rank_time != b.rank_time ? a.rank_time > b.rank_time : a.order > b.order;
  }
  void drop_front() noexcept {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
  }
  // A live request has at most one valid entry, so what is left fits twice over.
  void purge() noexcept {
    std::erase_if(heap_, [this](const Entry& e) {
      const Request* r = find(e.id);
      return r == nullptr || !r->in_queue;
    });
    std::make_heap(heap_.begin(), heap_.end(), later);
  }

  std::vector<std::unique_ptr<Request>>
      slots_;  // stable addresses: plans hold references while requests are added
  std::vector<std::uint32_t> free_;
  std::vector<Entry> heap_;
  std::int64_t live_ = 0;
};

}  // namespace growpage::detail
