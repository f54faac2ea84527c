// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/cache_shape.hpp"

namespace growpage::replay {

/// The simulated machine: one A100-80GB that runs Qwen3-8B in bf16. Every constant of the clock is
/// here. A step costs
///
///     overhead + max(weights / bandwidth, 2 · parameters · tokens / flops)
///              + KV read / bandwidth + prefill attention / flops
///              + exposed · Σ boundary events + swapped bytes / host link
struct StepCosts {
  double memory_bytes = 80.0 * (1 << 30);  ///< of the device
  double utilisation = 0.9;                ///< share of it the engine may use (paper)
  double weight_bytes = 16.4e9;            ///< read once by every forward pass
  double parameters = 8.2e9;
  double bandwidth = 1.5e12;      ///< B/s, effective: 74 % of the A100's 2.04 TB/s
  double flops = 1.87e14;         ///< 1/s, effective: 60 % of the A100's 312 TFLOP/s in bf16
  double host_link = 2.5e10;      ///< B/s, PCIe 4.0 × 16, effective
  double step_overhead_s = 4e-3;  ///< scheduling, launches, sampling

  /// Paper, per event, at its average of 3164 slots; scaled by the slots of the request.
  double demand_s = 5.84e-3;
  double compaction_s = (8.54 + 0.70 + 8.72 + 19.05) * 1e-3;  ///< scores, mask, top-k, row moves
  double event_slots = 3164;
  /// Share of the events' time that delays a step, the rest runs beside it. The paper's events sum
  /// to 18.9 % of its AMC23 run (30703 demand passes, 21203 compactions, 1.42 h), but it reports
  /// that they cost less than 0.32 % of decoding: 0.32 / 18.9.
  double exposed = 0.017;
};

/// What one step does.
struct StepWork {
  std::int64_t tokens = 0;             ///< through the model: prefill and decode
  std::int64_t kv_slots = 0;           ///< KV rows read by decode attention, Σ over requests
  double prefill_pairs = 0;            ///< (query, key) pairs of prefill attention
  std::int64_t demand_slots = 0;       ///< slots of requests whose demand is measured
  std::int64_t compaction_slots = 0;   ///< slots of requests compacted
  std::int64_t transferred_pages = 0;  ///< swapped in or out
};

/// Bytes of K and V a token takes, all layers and heads, bf16.
[[nodiscard]] double kv_bytes_per_token(const CacheShape& shape) noexcept;

/// Seconds the step takes.
[[nodiscard]] double step_seconds(const StepCosts& costs, const CacheShape& shape,
                                  const StepWork& work) noexcept;

/// Pages that fit beside the weights and the query summaries of `summary_slots` requests.
[[nodiscard]] std::int64_t pool_pages(const StepCosts& costs, const CacheShape& shape,
                                      std::int32_t summary_slots);

}  // namespace growpage::replay
