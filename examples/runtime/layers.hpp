// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace growpage::runtime {

/// out = x / √(mean(x²) + ε) · weight. `x`, `weight` and `out` have one size; out may be x.
void rms_norm(std::span<const float> x, const float* weight, float epsilon, float* out) noexcept;

/// out = silu(gate) · up: the middle of SwiGLU. `gate_up` `[2, n]`, `out` `[n]`.
void swiglu(const float* gate_up, std::int64_t n, float* out) noexcept;

/// x += y, `[n]`.
void add(float* x, const float* y, std::int64_t n) noexcept;

}  // namespace growpage::runtime
