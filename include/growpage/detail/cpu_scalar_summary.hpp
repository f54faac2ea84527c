// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "growpage/core/dtype.hpp"
#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/splitmix.hpp"

/// The scalar oracle of the summary update.
namespace growpage::detail::scalar {

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

/// β·old + (1 − β)·q in double, where β·old is exact, and for β ≥ 2^-5 the other product is too.
[[nodiscard]] inline float ema(float beta, float old, float q) noexcept {
  return static_cast<float>(double{beta} * double{old} + (1.0 - double{beta}) * double{q});
}

/// Σ q² of one head.
template <DType query>
[[nodiscard]] double query_squares(const SummaryRow& row, std::int32_t head) noexcept {
  double squares = 0;
  for (std::int32_t i = 0; i < row.dim; ++i) {
    const double q = double{load_element(row.q, query, head * row.q_head_stride + i)};
    squares += q * q;
  }
  return squares;
}

/// Elements [from, row.dim) of one head; the sum of their squares.
template <DType query, DType stored>
double update_elements(const SummaryRow& row, std::int32_t head, std::int32_t from) noexcept {
  double squares = 0;
  for (std::int32_t i = from; i < row.dim; ++i) {
    const std::int64_t at = std::int64_t{head} * row.dim + i;
    const float q = load_element(row.q, query, head * row.q_head_stride + i);
    float s = q;
    float l = q;
    if (!row.first) {
      s = ema(row.beta_short, load_element(row.short_summary, stored, at), q);
      l = ema(row.beta_long, load_element(row.long_summary, stored, at), q);
    }
    if constexpr (stored == DType::f16) {
      const std::uint64_t random =
          splitmix64(row.key ^ (row.index + static_cast<std::uint64_t>(at)));
      static_cast<Float16*>(row.short_summary)[at] =
          round_stochastic(s, static_cast<std::uint32_t>(random));
      static_cast<Float16*>(row.long_summary)[at] =
          round_stochastic(l, static_cast<std::uint32_t>(random >> 32));
    } else {
      static_cast<float*>(row.short_summary)[at] = s;
      static_cast<float*>(row.long_summary)[at] = l;
    }
    if (row.window != nullptr) row.window[at] = q;
    squares += double{q} * double{q};
  }
  return squares;
}

template <DType query, DType stored>
void update_summary(const SummaryRow& row) {
  for (std::int32_t head = 0; head < row.heads; ++head) {
    const double squares = update_elements<query, stored>(row, head, 0);
    row.rms[head] = static_cast<float>(std::sqrt(squares / row.dim));
  }
}

}  // namespace growpage::detail::scalar
