// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/cpu.hpp"
#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/splitmix.hpp"

namespace growpage::detail {

/// The summary update of one (layer, request), all query heads: the work of one task.
inline void update_summary(const SummaryUpdate& update, const CpuKernels& kernels,
                           std::int32_t layer, std::int32_t request) noexcept {
  const SummaryView& state = update.state;
  const SummaryEntry& entry = update.entries[request];
  const bool half = state.storage != SummaryOptions::Storage::f32;
  const std::int32_t state_layer = update.first_layer + layer;
  const std::int64_t state_row = state.row(state_layer, entry.slot);
  const std::int64_t step = entry.first != 0 ? 0 : state.steps[state_row];

  SummaryRow row;
  row.heads = state.query_heads;
  row.dim = state.head_dim;
  row.q = static_cast<const char*>(update.q) +
          (layer * update.q_layer_stride + request * update.q_request_stride) *
              static_cast<std::int64_t>(dtype_bytes(update.q_dtype));
  row.q_head_stride = update.q_head_stride;
  const std::int64_t short_first = state.index(state_layer, entry.slot, 0, 0);
  const std::int64_t long_first = state.index(state_layer, entry.slot, 1, 0);
  char* const summaries = static_cast<char*>(state.summaries);
  row.short_summary = summaries + short_first * (half ? 2 : 4);
  row.long_summary = summaries + long_first * (half ? 2 : 4);
  if (state.window != nullptr && state.window_size > 0) {
    row.window = state.window + (state_row * state.window_size + step % state.window_size) *
                                    state.query_heads * state.head_dim;
  }
  row.rms = state.query_rms + state_row * state.query_heads;
  row.beta_short = update.options.beta_short;
  row.beta_long = update.options.beta_long;
  row.first = entry.first != 0;
  row.key = splitmix64(update.options.seed ^ splitmix64(static_cast<std::uint64_t>(step)));
  row.index = static_cast<std::uint64_t>(short_first);
  kernels.update_summary[half ? 1 : 0][static_cast<std::int32_t>(update.q_dtype)](row);
  state.steps[state_row] = step + 1;
}

}  // namespace growpage::detail

namespace growpage {

GROWPAGE_INLINE void CpuBackend::summary_update(const SummaryUpdate& update,
                                                StreamView /*stream*/) noexcept {
  executor_.for_each(std::int64_t{update.layers} * update.requests, [&](std::int64_t task,
                                                                        std::int32_t /*worker*/) {
    detail::update_summary(update, *kernels_, static_cast<std::int32_t>(task / update.requests),
                           static_cast<std::int32_t>(task % update.requests));
  });
}

}  // namespace growpage
