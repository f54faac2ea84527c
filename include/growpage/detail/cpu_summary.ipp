// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "growpage/backend/cpu.hpp"
#include "growpage/detail/cpu_kernels.hpp"

namespace growpage::detail {

/// The finaliser of splitmix64: a bijection that spreads every input bit over all output bits.
[[nodiscard]] inline std::uint64_t mix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Rounds to one of the two neighbouring halves with probabilities that make the mean `value`.
/// Beyond the largest half it saturates; infinities and NaN stay.
[[nodiscard]] inline Float16 round_stochastic(float value, std::uint32_t random) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return Float16::from_float(value);
  std::uint32_t half = 0;
  if (magnitude >= 0x38800000u) {  // normal halves: 13 bits are lost
    half = std::min(((magnitude + (random & 0x1fffu)) >> 13) - 0x1c000u, 0x7bffu);
  } else {  // subnormal halves: multiples of 2^-24
    const float units = std::bit_cast<float>(magnitude) * 0x1p24F;
    const float whole = std::floor(units);
    const float chance = static_cast<float>(random >> 8) * 0x1p-24F;
    half = static_cast<std::uint32_t>(whole) + (chance < units - whole ? 1u : 0u);
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

/// The summary update of one (layer, request), all query heads: the work of one task.
class SummaryTask {
 public:
  SummaryTask(const SummaryUpdate& update, const CpuKernels& kernels, std::int32_t layer,
              std::int32_t request) noexcept
      : update_(update),
        kernels_(kernels),
        layer_(update.first_layer + layer),
        slot_(update.entries[request].slot),
        q_offset_(layer * update.q_layer_stride + request * update.q_request_stride),
        row_(update.state.row(layer_, slot_)),
        first_(update.entries[request].first != 0),
        step_(first_ ? 0 : update.state.steps[row_]) {}

  void run() noexcept {
    for (std::int32_t head = 0; head < update_.state.query_heads; ++head) update_head(head);
    update_.state.steps[row_] = step_ + 1;
  }

 private:
  static constexpr std::int32_t chunk = 256;

  void update_head(std::int32_t head) noexcept {
    const SummaryView& state = update_.state;
    const std::int64_t short_first = state.index(layer_, slot_, 0, head);
    const std::int64_t long_first = state.index(layer_, slot_, 1, head);
    const std::int64_t q_first = q_offset_ + head * update_.q_head_stride;
    const auto q_dtype = static_cast<std::int32_t>(update_.q_dtype);
    const auto q_bytes = static_cast<std::int64_t>(dtype_bytes(update_.q_dtype));
    double squares = 0;
    for (std::int32_t at = 0; at < state.head_dim; at += chunk) {
      const std::int32_t n = std::min(chunk, state.head_dim - at);
      float q[chunk];
      kernels_.widen[q_dtype](static_cast<const char*>(update_.q) + (q_first + at) * q_bytes, n, q);
      squares += kernels_.sum_squares(q, n);
      if (state.storage == SummaryOptions::Storage::f32) {
        float* summaries = static_cast<float*>(state.summaries);
        update_f32(summaries + short_first + at, summaries + long_first + at, q, n);
      } else {
        update_f16(short_first + at, long_first + at, q, n);
      }
      if (state.window != nullptr && state.window_size > 0) {
        float* window =
            state.window +
            ((row_ * state.window_size + step_ % state.window_size) * state.query_heads + head) *
                state.head_dim;
        std::copy(q, q + n, window + at);
      }
    }
    state.query_rms[row_ * state.query_heads + head] =
        static_cast<float>(std::sqrt(squares / state.head_dim));
  }

  void update_f32(float* short_summary, float* long_summary, const float* q,
                  std::int32_t n) noexcept {
    if (first_) {
      std::copy(q, q + n, short_summary);
      std::copy(q, q + n, long_summary);
      return;
    }
    kernels_.ema(short_summary, long_summary, q, n, update_.options.beta_short,
                 update_.options.beta_long);
  }

  void update_f16(std::int64_t short_at, std::int64_t long_at, const float* q,
                  std::int32_t n) noexcept {
    auto* summaries = static_cast<Float16*>(update_.state.summaries);
    const auto f16 = static_cast<std::int32_t>(DType::f16);
    float wide[2][chunk];
    kernels_.widen[f16](summaries + short_at, n, wide[0]);
    kernels_.widen[f16](summaries + long_at, n, wide[1]);
    update_f32(wide[0], wide[1], q, n);
    // The random bits depend on seed, step and element alone, so equal runs give equal states.
    const std::uint64_t key =
        mix64(update_.options.seed ^ mix64(static_cast<std::uint64_t>(step_)));
    for (std::int32_t i = 0; i < n; ++i) {
      const std::uint64_t random = mix64(key ^ static_cast<std::uint64_t>(short_at + i));
      summaries[short_at + i] = round_stochastic(wide[0][i], static_cast<std::uint32_t>(random));
      summaries[long_at + i] =
          round_stochastic(wide[1][i], static_cast<std::uint32_t>(random >> 32));
    }
  }

  const SummaryUpdate& update_;
  const CpuKernels& kernels_;
  std::int32_t layer_;
  std::int32_t slot_;
  std::int64_t q_offset_;
  std::int64_t row_;
  bool first_;
  std::int64_t step_;
};

}  // namespace growpage::detail

namespace growpage {

GROWPAGE_INLINE void CpuBackend::summary_update(const SummaryUpdate& update,
                                                StreamView /*stream*/) noexcept {
  executor_.for_each(std::int64_t{update.layers} * update.requests, [&](std::int64_t task,
                                                                        std::int32_t /*worker*/) {
    detail::SummaryTask(update, *kernels_, static_cast<std::int32_t>(task / update.requests),
                        static_cast<std::int32_t>(task % update.requests))
        .run();
  });
}

}  // namespace growpage
