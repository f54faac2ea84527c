// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "growpage/cache/page_manager.hpp"

namespace growpage {

/// One host fence beside each swap's: there are as many, and a host page is in one swap at a time,
/// so neither can run out here.
GROWPAGE_INLINE void PageManager::guard_host_pages(SequenceId id, const Sequence& s,
                                                   FenceId fence) noexcept {
  const FenceId host_fence = host_pool_->open_fence().value();
  for (std::int32_t k = 0; k < s.pages; ++k) (void)host_pool_->guard(host_fence, row(id)[k]);
  operations_[fence.index].host_fence = host_fence;
}

GROWPAGE_INLINE Result<FenceId> PageManager::swap_out(SequenceId id,
                                                      std::vector<PageTransfer>& transfers) {
  Sequence* s = nullptr;
  if (Status status = usable(id, s); !status.ok()) return status;
  if (s->pages > host_counts().free) return StatusCode::out_of_host_pages;
  Result<FenceId> fence = open_fence(id, *s, 0);
  if (!fence.ok()) return fence;

  step_back(id, *s, 0);  // the pages that come back are not published
  PageId* pages = row(id);
  for (std::int32_t k = 0; k < s->pages; ++k) (void)pool_.guard(*fence, pages[k]);
  const std::size_t first = transfers.size();
  for (std::int32_t k = s->pages; k-- > 0;) {  // last page first, see drop_tail
    const PageId host = host_pool_->allocate();
    if ((k << page_shift_) < s->slots) transfers.push_back({pages[k], host});
    drop_reference(pages[k]);
    pages[k] = host;
  }
  std::reverse(transfers.begin() + static_cast<std::ptrdiff_t>(first), transfers.end());
  if (host_pool_) guard_host_pages(id, *s, *fence);
  s->fence = *fence;
  s->swapped = true;
  return fence;
}

GROWPAGE_INLINE Result<FenceId> PageManager::swap_in(SequenceId id,
                                                     std::vector<PageTransfer>& transfers) {
  Sequence* s = find(id);
  if (s == nullptr) return StatusCode::stale_id;
  if (s->busy()) return StatusCode::busy;
  if (!s->swapped) return StatusCode::protocol_error;
  if (s->pages > allocatable()) return StatusCode::out_of_pages;
  Result<FenceId> fence = open_fence(id, *s, 0);
  if (!fence.ok()) return fence;

  if (host_pool_) guard_host_pages(id, *s, *fence);
  PageId* pages = row(id);
  for (std::int32_t k = 0; k < s->pages; ++k) {
    const PageId host = pages[k];
    pages[k] = allocate();
    if ((k << page_shift_) < s->slots) transfers.push_back({pages[k], host});
    (void)pool_.guard(*fence, pages[k]);
    host_pool_->release(host);
  }
  s->fence = *fence;
  s->swapped = false;
  s->written = s->slots;
  return fence;
}

GROWPAGE_INLINE Result<FenceId> PageManager::guard(SequenceId id) {
  Sequence* s = nullptr;
  if (Status status = usable(id, s); !status.ok()) return status;
  Result<FenceId> fence = open_fence(id, *s, 0);
  if (!fence.ok()) return fence;
  for (std::int32_t k = 0; k < s->pages; ++k) (void)pool_.guard(*fence, row(id)[k]);
  return fence;
}

GROWPAGE_INLINE Status PageManager::complete_fence(FenceId fence) {
  if (!pool_.is_open(fence)) return StatusCode::stale_id;
  const Operation done = operations_[fence.index];
  (void)pool_.complete_fence(fence, [this](PageId page, PageFate fate) {
    if (fate == PageFate::cached) index_->lru_push(page);
  });
  if (done.host_fence.generation != 0) {
    (void)host_pool_->complete_fence(done.host_fence, [](PageId, PageFate) {});
  }
  if (Sequence* s = find(done.sequence); s != nullptr && s->fence == fence) {
    s->fence = {};
    s->rewriting = false;
  }
  return {};
}

}  // namespace growpage
