// SPDX-License-Identifier: Apache-2.0
#include "tensor_generator.hpp"

#include <cmath>

#include "random.hpp"

namespace growpage::replay {
namespace {

constexpr std::int32_t topics = 2;
constexpr std::uint64_t topic_rarity = 16;  // one key in this many belongs to a topic
constexpr float topic_key = 4.0F;           // how far it stands out
constexpr float topic_logit = 12.0F;        // logit of a topic's keys when a query points at it
constexpr float key_noise = 0.3F, query_noise = 0.5F;

enum Domain : std::uint64_t { key = 1, value = 2, queries = 3, topic = 4, phase = 5 };

/// `count` values uniform in ±`scale`, four to a hash.
void noise(std::uint64_t seed, std::int32_t count, float scale, float* out) noexcept {
  std::uint64_t bits = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    if (i % 4 == 0) bits = mix(seed + static_cast<std::uint64_t>(i));
    out[i] = scale * (static_cast<float>(bits & 0xffffU) * 0x1p-15F - 1.0F);
    bits >>= 16;
  }
}

}  // namespace

Status TensorGenerator::validate(const CacheShape& shape) {
  if (Status s = shape.validate(); !s.ok()) return s;
  if (shape.head_dim < 32 || shape.head_dim % 4 != 0) {
    return Status::invalid("head_dim", std::int64_t{shape.head_dim}, "a multiple of 4, from 32");
  }
  return {};
}

TensorGenerator::TensorGenerator(const CacheShape& shape, std::uint64_t seed)
    : shape_(shape),
      seed_(seed),
      query_norm_(topic_logit / topic_key * std::sqrt(static_cast<float>(shape.head_dim))) {
  const std::int32_t pairs = shape.head_dim / 4;
  for (std::int32_t i = 0; i < pairs; ++i) {
    inv_freq_.push_back(std::pow(10'000.0F, -static_cast<float>(i) / static_cast<float>(pairs)));
  }
}

RopeParams TensorGenerator::rope() const noexcept {
  RopeParams rope;
  rope.rotary_dim = static_cast<std::int32_t>(2 * inv_freq_.size());
  rope.inv_freq = inv_freq_.data();
  return rope;
}

bool TensorGenerator::diffuse(std::uint64_t request, std::int64_t position) const noexcept {
  const auto number = static_cast<std::uint64_t>(position / phase_tokens);
  return number > 0 && uniform(mix(mix(seed_ ^ phase, request), number)) < diffuse_share;
}

void TensorGenerator::key_value(TokenId token, std::int64_t position, std::int32_t layer, float* k,
                                float* v) const noexcept {
  const std::int32_t d = shape_.head_dim;
  const std::int32_t pairs = d / 4;
  const std::uint64_t at =
      mix(mix(seed_, static_cast<std::uint64_t>(token)), static_cast<std::uint64_t>(position));
  const std::uint64_t row = mix(at, static_cast<std::uint64_t>(layer));
  noise(mix(row, key), shape_.kv_heads * d, key_noise, k);
  noise(mix(row, value), shape_.kv_heads * shape_.v_dim(), 1.0F, v);
  const std::uint64_t draw = mix(at, topic);
  for (std::int32_t head = 0; head < shape_.kv_heads; ++head) {
    float* axes = k + std::int64_t{head} * d + d / 2;
    axes[topics] += 1.0F;
    if (draw % topic_rarity == 0) axes[draw / topic_rarity % topics] += topic_key;
  }
  for (std::int32_t i = 0; i < pairs; ++i) {
    const float angle = static_cast<float>(position) * inv_freq_[i];
    const float c = std::cos(angle);
    const float s = std::sin(angle);
    for (std::int32_t head = 0; head < shape_.kv_heads; ++head) {
      float& a = k[head * d + i];
      float& b = k[head * d + i + pairs];
      const float rotated = a * c - b * s;
      b = b * c + a * s;
      a = rotated;
    }
  }
}

void TensorGenerator::query(std::uint64_t request, std::int64_t position, std::int32_t layer,
                            float* q) const noexcept {
  const std::int32_t d = shape_.head_dim;
  const std::uint64_t own = mix(seed_ ^ phase, request);
  const std::uint64_t phase_key = mix(own, static_cast<std::uint64_t>(position / phase_tokens));
  const std::uint64_t row =
      mix(mix(own, static_cast<std::uint64_t>(position)), static_cast<std::uint64_t>(layer));
  noise(mix(row, queries), shape_.query_heads * d, query_noise, q);
  const std::int32_t axis = diffuse(request, position)
                                ? topics
                                : static_cast<std::int32_t>(mix(phase_key, topic) % topics);
  for (std::int32_t head = 0; head < shape_.query_heads; ++head) {
    q[head * d + d / 2 + axis] += query_norm_;
  }
}

}  // namespace growpage::replay
