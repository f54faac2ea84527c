// SPDX-License-Identifier: Apache-2.0
#include "step_clock.hpp"

#include <algorithm>

#include "growpage/demand/query_summary.hpp"

namespace growpage::replay {

double kv_bytes_per_token(const CacheShape& shape) noexcept {
  return 2.0 * shape.layers * shape.kv_heads * (shape.head_dim + shape.v_dim());
}

double step_seconds(const StepCosts& costs, const CacheShape& shape,
                    const StepWork& work) noexcept {
  double seconds = costs.step_overhead_s;
  if (work.tokens > 0) {
    seconds += std::max(costs.weight_bytes / costs.bandwidth,
                        2.0 * costs.parameters * static_cast<double>(work.tokens) / costs.flops);
  }
  const double kv = kv_bytes_per_token(shape);
  seconds += static_cast<double>(work.kv_slots) * kv / costs.bandwidth;
  // Two products of head_dim multiply-adds per pair, query head and layer.
  seconds +=
      4.0 * shape.layers * shape.query_heads * shape.head_dim * work.prefill_pairs / costs.flops;
  const double events = costs.demand_s * static_cast<double>(work.demand_slots) +
                        costs.compaction_s * static_cast<double>(work.compaction_slots);
  seconds += costs.exposed * events / costs.event_slots;
  seconds += static_cast<double>(work.transferred_pages) * shape.page_size * kv / costs.host_link;
  return seconds;
}

std::int64_t pool_pages(const StepCosts& costs, const CacheShape& shape,
                        std::int32_t summary_slots) {
  SummaryOptions options;
  options.slots = summary_slots;
  const SummaryBytes summary = summary_bytes(shape, options);
  const auto state = static_cast<double>(summary.summaries + summary.query_rms + summary.steps);
  const double bytes = costs.memory_bytes * costs.utilisation - costs.weight_bytes - state;
  return static_cast<std::int64_t>(bytes / (kv_bytes_per_token(shape) * shape.page_size));
}

}  // namespace growpage::replay
