// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "growpage/cache/page_manager.hpp"

namespace growpage {

inline const PageManager::Sequence* PageManager::find(SequenceId id) const noexcept {
  if (id.index >= sequences_.size()) return nullptr;
  const Sequence& s = sequences_[id.index];
  return s.alive && s.generation == id.generation ? &s : nullptr;
}

inline PageManager::Sequence* PageManager::find(SequenceId id) noexcept {
  return const_cast<Sequence*>(std::as_const(*this).find(id));
}

inline Status PageManager::usable(SequenceId id, Sequence*& sequence) noexcept {
  sequence = find(id);
  if (sequence == nullptr) return StatusCode::stale_id;
  if (sequence->busy() || sequence->swapped) return StatusCode::busy;
  return {};
}

inline bool PageManager::alive(SequenceId id) const noexcept { return find(id) != nullptr; }

inline std::int64_t PageManager::physical_slot(SequenceId id, std::int32_t s) const noexcept {
  const std::int64_t page = row(id)[s >> page_shift_].offset();
  return (page << page_shift_) + (s & (options_.page_size - 1));
}

inline PageCounts PageManager::counts() const noexcept { return pool_.counts(); }

inline PageCounts PageManager::host_counts() const noexcept {
  return host_pool_ ? host_pool_->counts() : PageCounts{};
}

inline std::int64_t PageManager::allocatable() const noexcept {
  return pool_.counts().free + pool_.counts().cached;
}

}  // namespace growpage
