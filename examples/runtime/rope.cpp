// SPDX-License-Identifier: Apache-2.0
#include "rope.hpp"

#include <cmath>
#include <numbers>

namespace growpage::runtime {
namespace {

/// Llama 3: wavelengths the original context never saw whole are stretched, short ones stay, and
/// between the two bounds the change is gradual.
double scale_llama3(double frequency, const RopeScaling& scaling) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const double turns = scaling.original_max_position / wavelength;
  if (turns > scaling.high_freq_factor) return frequency;
  if (turns < scaling.low_freq_factor) return frequency / scaling.factor;
  const double smooth =
      (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

}  // namespace

std::vector<float> inverse_frequencies(const ModelConfig& config) {
  std::vector<float> result;
  for (std::int32_t i = 0; i < config.head_dim / 2; ++i) {
    double frequency = std::pow(config.rope_theta, -2.0 * i / config.head_dim);
    switch (config.rope_scaling.kind) {
      case RopeScalingKind::none:
        break;
      case RopeScalingKind::linear:
        frequency /= config.rope_scaling.factor;
        break;
      case RopeScalingKind::llama3:
        frequency = scale_llama3(frequency, config.rope_scaling);
        break;
    }
    result.push_back(static_cast<float>(frequency));
  }
  return result;
}

RopeTables::RopeTables(const ModelConfig& config, std::int64_t positions)
    : half_(config.head_dim / 2), positions_(positions) {
  const std::vector<float> frequencies = inverse_frequencies(config);
  cos_.reserve(static_cast<std::size_t>(positions * half_));
  sin_.reserve(static_cast<std::size_t>(positions * half_));
  for (std::int64_t p = 0; p < positions; ++p) {
    for (const float frequency : frequencies) {
      // In float, as the models were trained: far positions have angles rounded this way.
      const float angle = static_cast<float>(p) * frequency;
      cos_.push_back(std::cos(angle));
      sin_.push_back(std::sin(angle));
    }
  }
}

void RopeTables::rotate(const float* in, std::int32_t heads, std::int64_t position,
                        float* out) const noexcept {
  const float* c = cos_.data() + position * half_;
  const float* s = sin_.data() + position * half_;
  for (std::int32_t h = 0; h < heads; ++h, in += 2 * half_, out += 2 * half_) {
    for (std::int64_t i = 0; i < half_; ++i) {
      const float a = in[i];
      const float b = in[i + half_];
      out[i] = a * c[i] - b * s[i];
      out[i + half_] = b * c[i] + a * s[i];
    }
  }
}

RopeParams RopeTables::params() const noexcept {
  RopeParams params;
  params.rotary_dim = static_cast<std::int32_t>(2 * half_);
  params.cos_table = cos_.data();
  params.sin_table = sin_.data();
  params.max_position = positions_;
  return params;
}

}  // namespace growpage::runtime
