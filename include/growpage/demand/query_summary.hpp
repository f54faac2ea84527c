// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/cache_shape.hpp"
#include "growpage/core/status.hpp"

namespace growpage {

/// How the two exponentially smoothed query summaries of a request are kept (paper, section 3.2).
struct SummaryOptions {
  float beta_short = 0.9F;  ///< weight of the OLD value; 0 = the current query itself
  /// 0 ≤ beta_short < beta_long < 1; 0 = by the page size b: 1 − 0.256/b, which is the paper's
  /// 0.999 at its b = 256 and, with any b, remembers about four pages.
  float beta_long = 0;
  std::int32_t slots = 512;  ///< requests that can run at once
  /// Recent queries kept per slot for window scoring (Zipage's w); 0 keeps none. Costs
  /// `window` × the memory of one summary.
  std::int32_t window = 0;

  /// f32, or f16 with stochastic rounding to halve the memory. bf16 is refused: a step of weight
  /// 0.001 is below half its ulp, so the long summary would never move.
  enum class Storage : std::int32_t { f32 = 0, f16_stochastic = 1, bf16 = 2 };
  Storage storage = Storage::f32;
  std::uint64_t seed = 0;  ///< of the stochastic rounding

  /// The same with the `beta_long` that pages of `page_size` tokens get.
  [[nodiscard]] SummaryOptions for_page_size(std::int32_t page_size) const noexcept;

  [[nodiscard]] Status validate(std::int32_t page_size) const;
};

/// The state of all slots: a view, trivially copyable, owned by the cache. Queries are kept before
/// RoPE; summaries and window are rotated when read.
struct SummaryView {
  void* summaries = nullptr;      ///< [layer, slot, 2, q_head, head_dim], 0 = short, 1 = long
  float* query_rms = nullptr;     ///< [layer, slot, q_head], RMS of the latest query
  float* window = nullptr;        ///< [layer, slot, window, q_head, head_dim] ring, or null
  std::int64_t* steps = nullptr;  ///< [layer, slot], updates since the slot was taken
  SummaryOptions::Storage storage = SummaryOptions::Storage::f32;
  std::int32_t layers = 0;
  std::int32_t slots = 0;
  std::int32_t query_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t window_size = 0;

  /// Index of summary `which` of (layer, slot, head), in elements of the storage type.
  [[nodiscard]] std::int64_t index(std::int32_t layer, std::int32_t slot, std::int32_t which,
                                   std::int32_t head) const noexcept {
    return (((std::int64_t{layer} * slots + slot) * 2 + which) * query_heads + head) * head_dim;
  }
  [[nodiscard]] std::int64_t row(std::int32_t layer, std::int32_t slot) const noexcept {
    return std::int64_t{layer} * slots + slot;
  }
};

/// Bytes of `SummaryView::summaries`, `query_rms`, `window` and `steps`, in that order.
struct SummaryBytes {
  std::int64_t summaries = 0, query_rms = 0, window = 0, steps = 0;
};
[[nodiscard]] SummaryBytes summary_bytes(const CacheShape& shape, const SummaryOptions& options);

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/query_summary.ipp"
#endif
