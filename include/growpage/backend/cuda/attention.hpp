// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/contract.hpp"
#include "growpage/core/cache_shape.hpp"
#include "growpage/core/status.hpp"
#include "growpage/core/stream.hpp"

namespace growpage::cuda {

/// Bytes that `paged_attention` needs for so many requests of up to `max_slots` slots.
[[nodiscard]] std::int64_t paged_attention_workspace_bytes(const CacheShape& shape,
                                                           std::int32_t requests,
                                                           std::int32_t max_slots) noexcept;

/// Reference attention of one query token per request: exact and simple rather than tuned; an
/// engine has its own. All pointers of `attention` are device memory, no length is above
/// `max_slots`, and `workspace` is 16-byte aligned device memory. Enqueues only.
///
/// Slots are split over CTAs and combined in a fixed order: equal inputs give equal bits. Sums are
/// float: within about 1e-5 of the scalar CPU backend, relative to the values.
[[nodiscard]] Status paged_attention(const PagedAttention& attention, std::int32_t max_slots,
                                     void* workspace, StreamView stream);

}  // namespace growpage::cuda
