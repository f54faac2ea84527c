// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

#include <cmath>

namespace growpage::runtime {

void rms_norm(std::span<const float> x, const float* weight, float epsilon, float* out) noexcept {
  double squares = 0;
  for (const float v : x) squares += double{v} * double{v};
  const double mean = squares / static_cast<double>(x.size());
  const auto scale = static_cast<float>(1.0 / std::sqrt(mean + double{epsilon}));
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] * scale * weight[i];
}

void swiglu(const float* gate_up, std::int64_t n, float* out) noexcept {
  const float* up = gate_up + n;
  for (std::int64_t i = 0; i < n; ++i) {
    const float gate = gate_up[i];
    out[i] = gate / (1.0F + std::exp(-gate)) * up[i];
  }
}

void add(float* x, const float* y, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) x[i] += y[i];
}

}  // namespace growpage::runtime
