// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/status.hpp"

namespace growpage {

/// What ranks the tokens of a request.
enum class ScoreKind : std::int32_t {
  summaries = 0,  ///< max(aˢ, aᴸ), max over the group (GrowPage, section 3.4)
  window = 1,     ///< mean over the last `window` queries of the max over the group (Zipage)
};

enum class CompactionStrategy : std::int32_t {
  fill_holes = 0,  ///< only the victim page's retained rows move, into the others' holes
  in_order = 1,    ///< rows keep their order, everything shifts left
};

/// What happens to pages that other sequences read too.
enum class SharedPages : std::int32_t {
  keep = 0,  ///< they keep all their rows; only private pages give rows up
  copy = 1,  ///< they are replaced by private copies first, which cost pages
};

/// Which tokens survive Compress & Hold and Shrink. Tie-break everywhere: the lower slot is better.
struct RetentionOptions {
  ScoreKind score = ScoreKind::summaries;
  CompactionStrategy strategy = CompactionStrategy::fill_holes;
  SharedPages shared = SharedPages::keep;

  std::int32_t recent = 16;  ///< R: the last R slots are always kept
  /// k_loc: the best of every page, always kept, for pages of 256 tokens (scaled by b/256, at least
  /// 1 unless 0; clamped when the quotas exceed the budget). Counted beside the recent slots.
  std::int32_t local_per_256 = 64;
  std::int32_t sinks = 0;       ///< the first s tokens are always kept
  bool protect_prompt = false;  ///< every prompt token is kept

  // Zipage's refinements (its section 3), off by default.
  std::int32_t window = 16;        ///< w of ScoreKind::window
  std::int32_t max_pool = 0;       ///< odd width of a max-pool along slots; 0 = off (Zipage: 5)
  float global_decay = 0.0F;       ///< score = max(new, decay · old); 0 = off (Zipage: 0.8)
  float redundancy_weight = 0.0F;  ///< λ: (1 − λ)·score − λ·redundancy; 0 = off (Zipage: 0.8)
  float redundancy_temperature = 0.4F;

  [[nodiscard]] Status validate(std::int32_t page_size) const;
  [[nodiscard]] std::int32_t local_quota(std::int32_t page_size) const noexcept;
};

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/retention.ipp"
#endif
