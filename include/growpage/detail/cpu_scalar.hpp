// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/cpu_scalar_summary.hpp"

/// The scalar oracle: every kernel of `CpuKernels` as a plain loop, sums in double. What SIMD and
/// CUDA are compared with, and all that a header-only build has.
namespace growpage::detail::scalar {

inline void pack(const float* q, std::int64_t q_stride, std::int32_t queries, std::int32_t dim,
                 void* packed) {
  float* out = static_cast<float*>(packed);
  for (std::int32_t j = 0; j < queries; ++j) {
    for (std::int32_t i = 0; i < dim; ++i) *out++ = q[j * q_stride + i];
  }
}

template <DType dtype>
void dot(const KRows& k, const void* packed, std::int32_t queries, float* out,
         std::int64_t out_stride, float* tile) {
  const float* q = static_cast<const float*>(packed);
  for (std::int32_t t = 0; t < k.tokens; ++t) {
    for (std::int32_t i = 0; i < k.dim; ++i) {
      tile[i] = load_element(k.rows, dtype, t * k.token_stride + i);
    }
    for (std::int32_t j = 0; j < queries; ++j) {
      const float* query = q + std::int64_t{j} * k.dim;
      double sum = 0;
      for (std::int32_t i = 0; i < k.dim; ++i) sum += double{query[i]} * double{tile[i]};
      // Beyond float's range the sum counts as infinite, as it would in float arithmetic.
      const double limit = double{std::numeric_limits<float>::max()};
      const float inf = std::numeric_limits<float>::infinity();
      out[j * out_stride + t] = sum > limit ? inf : sum < -limit ? -inf : static_cast<float>(sum);
    }
  }
}

template <DType dtype>
void widen(const void* row, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = load_element(row, dtype, i);
}

inline float sanitize_max(float* x, std::int64_t n, float scale) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  float max = -inf;
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] *= scale;
    if (std::isnan(x[i])) x[i] = -inf;
    if (x[i] == inf) x[i] = std::numeric_limits<float>::max();
    if (x[i] > max) max = x[i];
  }
  return max;
}

inline double exp_sum(float* x, std::int64_t n, float max) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float distance = x[i] - max;
    x[i] = distance < exp_floor ? 0.0F : static_cast<float>(std::exp(double{distance}));
    sum += double{x[i]};
  }
  return sum;
}

inline void mix(const float* rows, std::int64_t stride, const float* coefficient,
                std::int32_t count, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::int32_t j = 0; j < count; ++j) {
      sum += double{coefficient[j]} * double{rows[j * stride + i]};
    }
    out[i] = static_cast<float>(sum);
  }
}

inline void max_scaled(const float* rows, std::int64_t stride, const float* coefficient,
                       std::int32_t count, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    float max = 0;
    for (std::int32_t j = 0; j < count; ++j) {
      const float value = coefficient[j] * rows[j * stride + i];
      if (value > max) max = value;
    }
    out[i] = max;
  }
}

inline Mass mass_at_least(const float* w, std::int64_t n, float threshold) {
  Mass mass;
  for (std::int64_t i = 0; i < n; ++i) {
    if (w[i] >= threshold) {
      mass.sum += double{w[i]};
      ++mass.count;
    }
  }
  return mass;
}

inline std::int64_t gather(const float* w, std::int64_t n, float low, float high, float* out) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (w[i] >= low && w[i] < high) out[count++] = w[i];
  }
  return count;
}

inline double sum_w_log_w(const float* w, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (w[i] > 0.0F) sum += double{w[i]} * std::log(double{w[i]});
  }
  return sum;
}

inline double sum_squares(const float* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += double{x[i]} * double{x[i]};
  return sum;
}

inline std::uint32_t order_key(float score) {
  if (std::isnan(score)) return 1;
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);  // −0 becomes 0
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

inline KeyRange order_keys(const float* scores, std::int64_t n, std::uint32_t* keys) {
  KeyRange range{std::numeric_limits<std::uint32_t>::max(), 0};
  for (std::int64_t i = 0; i < n; ++i) {
    keys[i] = order_key(scores[i]);
    if (keys[i] < range.low) range.low = keys[i];
    if (keys[i] > range.high) range.high = keys[i];
  }
  return range;
}

inline std::int64_t count_at_least(const std::uint32_t* keys, std::int64_t n,
                                   std::uint32_t threshold) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += keys[i] >= threshold ? 1 : 0;
  return count;
}

inline void take(std::uint32_t* keys, std::int64_t n, std::uint32_t threshold, std::int64_t ties,
                 std::uint64_t* bits, std::int64_t first) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (keys[i] < threshold || (keys[i] == threshold && ties <= 0)) continue;
    if (keys[i] == threshold) --ties;
    bits[(first + i) >> 6] |= std::uint64_t{1} << ((first + i) & 63);
    keys[i] = 0;
  }
}

inline void copy_rows(const RowCopy* rows, std::int64_t count, std::size_t bytes) {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(rows[i].to, rows[i].from, bytes);
}

inline constexpr CpuKernels kernels{
    "cpu-scalar",
    {pack, pack, pack, pack},
    {dot<DType::f32>, dot<DType::f16>, dot<DType::bf16>, dot<DType::bf16>},
    {widen<DType::f32>, widen<DType::f16>, widen<DType::bf16>},
    sanitize_max,
    exp_sum,
    mix,
    max_scaled,
    mass_at_least,
    gather,
    sum_w_log_w,
    {{update_summary<DType::f32, DType::f32>, update_summary<DType::f16, DType::f32>,
      update_summary<DType::bf16, DType::f32>},
     {update_summary<DType::f32, DType::f16>, update_summary<DType::f16, DType::f16>,
      update_summary<DType::bf16, DType::f16>}},
    sum_squares,
    order_keys,
    count_at_least,
    take,
    copy_rows,
};

}  // namespace growpage::detail::scalar
