// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "growpage/demand/demand.hpp"
#include "growpage/detail/cpu_kernels.hpp"

namespace growpage::detail {

/// The factor of the logits: `given`, or 1/√head_dim when it is 0.
[[nodiscard]] inline float softmax_scale(float given, std::int32_t head_dim) noexcept {
  return given != 0.0F ? given : static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

/// Logits [n] become weights in (0, 1], relative to `max`; their sum. When every logit is −inf
/// (max = −inf) all weights are 1: the uniform distribution.
inline double to_weights(const CpuKernels& kernels, float* x, std::int64_t n, float max) noexcept {
  if (max == -std::numeric_limits<float>::infinity()) {
    std::fill(x, x + n, 1.0F);
    return static_cast<double>(n);
  }
  return kernels.exp_sum(x, n, max);
}

/// D_p: the fewest largest weights whose sum reaches p · Σw, exactly. Weights equal to the smallest
/// one needed count only as many times as needed; p = 1 counts every positive weight. w ≥ 0,
/// finite; `scratch` [n, padded].
///
/// Searches the threshold θ by bisection on the bits of non-negative floats, which are in the order
/// of their values: S(θ) = Σ_{w ≥ θ} w falls as θ rises. Whenever half of the weights have fallen
/// out of the bounds the others are gathered, once they are few they are sorted.
inline std::int64_t working_set(const CpuKernels& kernels, const float* w, std::int64_t n, float p,
                                float* scratch) noexcept {
  constexpr std::int64_t few = 32;
  const Mass all = kernels.mass_at_least(w, n, std::numeric_limits<float>::denorm_min());
  if (p >= 1.0F || all.count == 0) return all.count;
  const double target = double{p} * all.sum;

  // All weights below (1 − p)·Σw/n sum to less than (1 − p)·Σw, so θ is above; half of it leaves
  // room for rounding. No weight is above Σw; 2 more for its rounding to float.
  const double bound = 0.5 * (1.0 - double{p}) * all.sum / static_cast<double>(n);
  std::uint32_t low = std::max(1u, std::bit_cast<std::uint32_t>(static_cast<float>(bound)));
  std::uint32_t high = std::bit_cast<std::uint32_t>(static_cast<float>(all.sum)) + 2;
  Mass at_low = all;  // S(low) ≥ target
  Mass at_high;       // S(high) < target
  Mass gone;          // of the weights that were above `high` when the others were gathered last
  while (high - low > 1 && at_low.count - at_high.count > few) {
    if (at_low.count - at_high.count <= n / 2) {
      n = kernels.gather(w, n, std::bit_cast<float>(low), std::bit_cast<float>(high), scratch);
      w = scratch;
      gone = at_high;
    }
    const std::uint32_t middle = low + (high - low) / 2;
    Mass mass = kernels.mass_at_least(w, n, std::bit_cast<float>(middle));
    mass.sum += gone.sum;
    mass.count += gone.count;
    if (mass.sum >= target) {
      low = middle;
      at_low = mass;
    } else {
      high = middle;
      at_high = mass;
    }
  }
  if (high - low == 1) {
    const double need = std::ceil((target - at_high.sum) / double{std::bit_cast<float>(low)});
    const std::int64_t ties = at_low.count - at_high.count;
    return at_high.count + std::clamp(static_cast<std::int64_t>(need), std::int64_t{1}, ties);
  }
  const std::int64_t count =
      kernels.gather(w, n, std::bit_cast<float>(low), std::bit_cast<float>(high), scratch);
  std::sort(scratch, scratch + count, std::greater<float>());
  double sum = at_high.sum;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += double{scratch[i]};
    if (sum >= target) return at_high.count + i + 1;
  }
  return at_low.count;
}

/// r of one distribution given by its weights [n], n ≥ 1; `scratch` [n, padded] (algorithm, section
/// 2): D_p/n, or H/ln n (1 when n = 1).
inline double spread(const CpuKernels& kernels, const DemandOptions& options, const float* w,
                     std::int64_t n, float* scratch) noexcept {
  if (n == 1) return 1.0;
  if (options.metric == DemandMetric::top_p) {
    return static_cast<double>(working_set(kernels, w, n, options.p, scratch)) /
           static_cast<double>(n);
  }
  // With weights w = Z·π: H = ln Z − Σ w·ln w / Z.
  const double z = kernels.mass_at_least(w, n, std::numeric_limits<float>::denorm_min()).sum;
  if (!(z > 0)) return 0.0;
  const double entropy = std::log(z) - kernels.sum_w_log_w(w, n) / z;
  return entropy / std::log(static_cast<double>(n));
}

}  // namespace growpage::detail
