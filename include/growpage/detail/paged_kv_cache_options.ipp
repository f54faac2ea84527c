// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>

#include "growpage/cache/paged_kv_cache_options.hpp"
#include "growpage/detail/require.hpp"

namespace growpage {

GROWPAGE_INLINE Status PagedKVCacheOptions::validate() const {
  if (Status s = shape.validate(); !s.ok()) return s;
  PageManagerOptions manager = pages;
  manager.page_size = shape.page_size;
  if (Status s = manager.validate(); !s.ok()) return s;
  // Slots of one request are 32-bit in the kernels.
  const std::int64_t slots = std::int64_t{pages.max_pages_per_sequence} * shape.page_size;
  Status s;
  if (!detail::require_range(s, "max_pages_per_sequence * page_size", slots, 1, 0x7fffffff - 64)) {
    return s;
  }
  if (!kv.k.null()) {
    if (s = kv.validate(shape, pages.pages); !s.ok()) return s;
  }
  if (s = summary.validate(shape.page_size); !s.ok()) return s;
  if (s = rope.validate(shape.head_dim); !s.ok()) return s;
  if (s = demand.validate(); !s.ok()) return s;
  if (s = retention.validate(shape.page_size); !s.ok()) return s;
  if (retention.score == ScoreKind::window && summary.window < retention.window) {
    return Status::invalid("SummaryOptions::window", std::int64_t{summary.window},
                           "at least RetentionOptions::window (" +
                               std::to_string(retention.window) + ") with window scoring");
  }
  if (!(softmax_scale >= 0.0F) || !std::isfinite(softmax_scale)) {
    return Status::invalid("PagedKVCacheOptions::softmax_scale", double{softmax_scale},
                           "finite, at least 0 (0 = 1/sqrt(head_dim))");
  }
  if (!detail::require_range(s, "PagedKVCacheOptions::score_buffers", score_buffers, 1, 4096)) {
    return s;
  }
  return {};
}

}  // namespace growpage
