// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "growpage/cache/page_manager.hpp"
#include "growpage/detail/require.hpp"

namespace growpage {

GROWPAGE_INLINE Result<PageManager::Admission> PageManager::admit(std::span<const TokenId> tokens,
                                                                  const ExtraKey& key) {
  if (key.modality_from < 0) {
    return Status::invalid("ExtraKey::modality_from", key.modality_from, "at least 0");
  }
  const SequenceId id = take_record();
  if (id.generation == 0) return StatusCode::out_of_sequences;
  Sequence& s = sequences_[id.index];
  if (!index_) return Admission{id, 0};
  s.chain = chain(key);
  PageId* pages = row(id);
  s.pages = match(tokens, s.chain, pages);
  for (std::int32_t k = 0; k < s.pages; ++k) {
    index_->lru_remove(pages[k]);
    pool_.retain(pages[k]);
  }
  s.published = s.pages;
  s.slots = s.computed = s.known = s.written = s.pages << page_shift_;
  s.length = s.slots;
  return Admission{id, s.length};
}

GROWPAGE_INLINE std::int64_t PageManager::match_length(std::span<const TokenId> tokens,
                                                       const ExtraKey& key) const {
  return std::int64_t{match(tokens, chain(key), nullptr)} << page_shift_;
}

GROWPAGE_INLINE Status PageManager::grow(SequenceId id) {
  Sequence* s = nullptr;
  if (Status status = usable(id, s); !status.ok()) return status;
  if (s->pages == options_.max_pages_per_sequence) {
    return Status::invalid("pages of the sequence", std::int64_t{s->pages},
                           "below max_pages_per_sequence (" +
                               std::to_string(options_.max_pages_per_sequence) + ") to grow");
  }
  const PageId page = allocate();
  if (!page.valid()) return StatusCode::out_of_pages;
  row(id)[s->pages++] = page;
  return {};
}

GROWPAGE_INLINE Status PageManager::reserve(SequenceId id, std::int64_t slots) {
  Sequence* s = nullptr;
  if (Status status = usable(id, s); !status.ok()) return status;
  const std::int64_t limit = std::int64_t{options_.max_pages_per_sequence} << page_shift_;
  Status status;
  if (!detail::require_range(status, "slots", slots, 0, limit - s->slots)) return status;
  const std::int64_t pages = (s->slots + slots + options_.page_size - 1) >> page_shift_;
  if (pages - s->pages > allocatable()) return StatusCode::out_of_pages;
  while (s->pages < pages) row(id)[s->pages++] = allocate();
  return {};
}

GROWPAGE_INLINE Status PageManager::append(SequenceId id, std::int64_t count, const TokenId* tokens,
                                           std::vector<PageCopy>& copies) {
  Sequence* s = nullptr;
  if (Status status = usable(id, s); !status.ok()) return status;
  if (count < 0) return Status::invalid("count", count, "at least 0");
  if (count > (std::int64_t{s->pages} << page_shift_) - s->slots) return StatusCode::at_capacity;
  if (count == 0) return {};

  PageId* pages = row(id);
  const std::int32_t first = s->slots >> page_shift_;
  const auto last = static_cast<std::int32_t>((s->slots + count - 1) >> page_shift_);
  const bool rolled_back = s->written > s->slots;
  const auto writable = [&](PageId page) {
    return pool_.refcount(page) == 1 && (!rolled_back || pool_.pins(page) == 0);
  };
  const bool plain = first == last && !rolled_back && pool_.refcount(pages[first]) == 1 &&
                     !pool_.published(pages[first]);  // nearly every decode step
  std::int64_t shared = 0;
  for (std::int32_t k = first; !plain && k <= last; ++k) shared += writable(pages[k]) ? 0 : 1;
  if (shared > allocatable()) return StatusCode::out_of_pages;
  for (std::int32_t k = first; !plain && k <= last; ++k) {
    const PageId page = pages[k];
    if (writable(page)) {
      unpublish(page);  // rolled back into: its content is about to change
      continue;
    }
    pages[k] = allocate();
    if ((k << page_shift_) < s->slots) {  // it holds rows of ours
      copies.push_back({page, pages[k]});
      ++copied_pages_;
    }
    drop_reference(page);
  }

  if (s->publishes && tokens != nullptr && s->known == s->slots) {
    TokenId* const known = this->tokens(id, s->slots);
    if (count == 1) {  // a decode step: a store, not a call
      *known = *tokens;
    } else {
      std::memcpy(known, tokens, static_cast<std::size_t>(count) * sizeof(TokenId));
    }
    s->known += static_cast<std::int32_t>(count);
  }
  s->slots += static_cast<std::int32_t>(count);
  s->length += count;
  s->written = std::max(s->written, s->slots);
  return {};
}

GROWPAGE_INLINE Status PageManager::mark_computed(SequenceId id, std::int32_t slots) {
  Sequence* s = nullptr;
  if (Status status = usable(id, s); !status.ok()) return status;
  Status status;
  if (!detail::require_range(status, "slots", slots, 0, s->slots)) return status;
  s->computed = std::max(s->computed, slots);
  publish_pages(id, *s);
  return {};
}

GROWPAGE_INLINE Result<SequenceId> PageManager::fork(SequenceId id) {
  Sequence* s = nullptr;
  if (Status status = usable(id, s); !status.ok()) return status;
  const SequenceId other = take_record();
  if (other.generation == 0) return StatusCode::out_of_sequences;
  Sequence& copy = sequences_[other.index];
  copy = *s;
  copy.generation = other.generation;
  for (std::int32_t k = 0; k < s->pages; ++k) {
    row(other)[k] = row(id)[k];
    pool_.retain(row(id)[k]);
  }
  const std::int32_t from = s->published << page_shift_;
  if (s->publishes && s->known > from) {
    std::memcpy(tokens(other, from), tokens(id, from),
                static_cast<std::size_t>(s->known - from) * sizeof(TokenId));
  }
  return other;
}

GROWPAGE_INLINE Status PageManager::truncate(SequenceId id, std::int64_t length) {
  Sequence* s = nullptr;
  if (Status status = usable(id, s); !status.ok()) return status;
  Status status;
  if (!detail::require_range(status, "length", length, 0, s->length)) return status;
  if (length < s->floor_length) {
    return Status::error(
        StatusCode::behind_compaction, "length", std::to_string(length),
        "at least the length at the last compaction (" + std::to_string(s->floor_length) + ")");
  }
  const auto slots = static_cast<std::int32_t>(s->slots - (s->length - length));
  const std::int32_t used = (slots + options_.page_size - 1) >> page_shift_;
  step_back(id, *s, slots >> page_shift_);
  drop_tail(id, *s, std::max(used, s->floor_pages));
  s->slots = slots;
  s->length = length;
  s->computed = std::min(s->computed, slots);
  s->known = std::min(s->known, slots);
  s->written = static_cast<std::int32_t>(
      std::min<std::int64_t>(s->written, std::int64_t{s->pages} << page_shift_));
  return {};
}

GROWPAGE_INLINE Status PageManager::release(SequenceId id) {
  Sequence* s = find(id);
  if (s == nullptr) return StatusCode::stale_id;
  if (s->swapped) {
    while (s->pages > 0) host_pool_->release(row(id)[--s->pages]);
  } else {
    if (s->rewriting) {  // rows may be on the move, and no plan will say which
      for (std::int32_t k = 0; k < s->pages; ++k) {
        if (rewritable(*s, row(id)[k])) unpublish(row(id)[k]);
      }
    }
    drop_tail(id, *s, 0);
  }
  return_record(id);
  return {};
}

GROWPAGE_INLINE Result<SequenceView> PageManager::view(SequenceId id) const {
  const Sequence* s = find(id);
  if (s == nullptr) return StatusCode::stale_id;
  SequenceView view;
  view.pages = {row(id), static_cast<std::size_t>(s->pages)};
  view.length = s->length;
  view.slots = s->slots;
  view.computed = s->computed;
  view.compactions = s->compactions;
  view.busy = s->busy();
  view.swapped = s->swapped;
  return view;
}

GROWPAGE_INLINE std::int32_t PageManager::private_pages(SequenceId id) const noexcept {
  const Sequence* s = find(id);
  if (s == nullptr || s->swapped) return 0;
  std::int32_t count = 0;
  for (std::int32_t k = 0; k < s->pages; ++k) count += pool_.refcount(row(id)[k]) == 1 ? 1 : 0;
  return count;
}

/// Live sequences hold K/V from before: nothing of theirs is published any more.
GROWPAGE_INLINE void PageManager::clear_prefix_cache() {
  if (!index_) return;
  for (std::int32_t page = 0; index_->size() > 0; ++page) {
    if (!index_->published(PageId{page})) continue;
    index_->withdraw(PageId{page});
    pool_.set_published(PageId{page}, false);
  }
  for (Sequence& s : sequences_) s.publishes = false;
  if (options_.event_capacity > 0) events_->push({KvEvent::Kind::cleared, {}, {}, {}, 0});
}

}  // namespace growpage
