// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/status.hpp"

namespace growpage {

/// What measures the spread of an attention distribution over the C candidate tokens.
enum class DemandMetric : std::int32_t {
  top_p = 0,    ///< D_p / C, D_p = the fewest largest weights whose sum reaches p (paper, eq. 4)
  entropy = 1,  ///< H / log C (1 when uniform), the paper's ablation
};

/// Where the working set of a KV group is measured.
enum class GroupReduction : std::int32_t {
  mean_distribution = 0,  ///< one set of the mean of the G heads' distributions
  per_query_head = 1,     ///< one set per query head, ratios averaged
};

struct DemandOptions {
  float p = 0.99F;  ///< 0 < p ≤ 1
  DemandMetric metric = DemandMetric::top_p;
  GroupReduction group = GroupReduction::mean_distribution;
  /// [layer], nonzero = counts towards Δ; null = every layer. Host memory, borrowed.
  const std::uint8_t* layer_mask = nullptr;

  [[nodiscard]] Status validate() const;
};

/// The attention demand of one request at a boundary. Sums and count rather than means, so that
/// tensor-parallel ranks can add theirs (NCCL, MPI) before Δ is taken.
struct Demand {
  double short_sum = 0;    ///< Σ r over (layer, KV head) of the short summary
  double long_sum = 0;     ///< the same of the long summary
  std::int64_t count = 0;  ///< terms in each sum; 0 when there was no candidate

  [[nodiscard]] double short_ratio() const noexcept {
    return count > 0 ? short_sum / static_cast<double>(count) : 0.0;
  }
  [[nodiscard]] double long_ratio() const noexcept {
    return count > 0 ? long_sum / static_cast<double>(count) : 0.0;
  }
  /// Δ = r̄ˢ − r̄ᴸ (paper, eq. 5): above 0 attention is widening.
  [[nodiscard]] double delta() const noexcept { return short_ratio() - long_ratio(); }
};

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/demand.ipp"
#endif
