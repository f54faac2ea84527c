// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "growpage/core/dtype.hpp"
#include "growpage/demand/query_summary.hpp"
#include "growpage/demand/rope.hpp"

namespace growpage::detail {

// Queries stay in double until `store_query`: rounding to bf16 is then the same in every backend
// but for numbers that lie on the edge to within double's precision.

/// cos and sin of one position, attention scale included: cos [rotary_dim/2], then sin.
inline void rope_row(const RopeParams& rope, std::int64_t position, double* out) noexcept {
  const std::int32_t half = rope.rotary_dim / 2;
  for (std::int32_t i = 0; i < half; ++i) {
    double cosine = 0;
    double sine = 0;
    if (rope.cos_table != nullptr) {
      cosine = double{rope.cos_table[position * half + i]};
      sine = double{rope.sin_table[position * half + i]};
    } else {
      // In double: at position 10^6 a float angle is off by several hundredths of a radian.
      const double angle = static_cast<double>(position) * double{rope.inv_freq[i]};
      cosine = std::cos(angle);
      sine = std::sin(angle);
    }
    out[i] = cosine * double{rope.attention_scale};
    out[half + i] = sine * double{rope.attention_scale};
  }
}

/// Rotates one query in place with a row of `rope_row`; dims from rotary_dim on pass through.
inline void rotate(const RopeParams& rope, const double* row, double* q) noexcept {
  const std::int64_t half = rope.rotary_dim / 2;
  const bool split = rope.pairing == RopePairing::half_split;
  for (std::int64_t i = 0; i < half; ++i) {
    double& a = split ? q[i] : q[2 * i];
    double& b = split ? q[half + i] : q[2 * i + 1];
    const double rotated = a * row[i] - b * row[half + i];
    b = b * row[i] + a * row[half + i];
    a = rotated;
  }
}

/// One calibrated summary, q̄ · RMS(q_t)/(RMS(q̄) + 1e-6) (algorithm, section 2).
inline void load_summary(const SummaryView& state, std::int32_t layer, std::int32_t slot,
                         std::int32_t which, std::int32_t head, double* q) noexcept {
  const DType dtype = state.storage == SummaryOptions::Storage::f32 ? DType::f32 : DType::f16;
  const std::int64_t first = state.index(layer, slot, which, head);
  double squares = 0;
  for (std::int32_t i = 0; i < state.head_dim; ++i) {
    q[i] = double{load_element(state.summaries, dtype, first + i)};
    squares += q[i] * q[i];
  }
  const double rms = std::sqrt(squares / state.head_dim);
  const std::int64_t row = state.row(layer, slot) * std::int64_t{state.query_heads};
  const double factor = double{state.query_rms[row + head]} / (rms + 1e-6);
  for (std::int32_t i = 0; i < state.head_dim; ++i) q[i] *= factor;
}

/// The query `lag` steps before the latest one, from the window ring.
inline void load_window_query(const SummaryView& state, std::int32_t layer, std::int32_t slot,
                              std::int64_t lag, std::int32_t head, double* q) noexcept {
  const std::int64_t row = state.row(layer, slot);
  const std::int64_t index = (state.steps[row] - 1 - lag) % state.window_size;
  const float* source =
      state.window +
      ((row * state.window_size + index) * state.query_heads + head) * state.head_dim;
  for (std::int32_t i = 0; i < state.head_dim; ++i) q[i] = double{source[i]};
}

/// The query that meets the keys: rounded to bf16 when they are bf16 (contract.hpp).
inline void store_query(const double* q, std::int32_t dim, DType keys, float* out) noexcept {
  for (std::int32_t i = 0; i < dim; ++i) {
    out[i] = static_cast<float>(q[i]);
    if (keys == DType::bf16) out[i] = BFloat16::from_float(out[i]).to_float();
  }
}

}  // namespace growpage::detail
