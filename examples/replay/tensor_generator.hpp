// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "growpage/core/cache_shape.hpp"
#include "growpage/core/ids.hpp"
#include "growpage/core/status.hpp"
#include "growpage/demand/rope.hpp"

namespace growpage::replay {

/// Makes q, k and v rows that give attention something to concentrate on. The first half of a head
/// is noise under RoPE; the second half passes through and holds two topic axes and one common
/// axis. Every key has 1 on the common axis; one key in sixteen belongs to a topic and stands out
/// on its axis. Time runs in phases of `phase_tokens`: in a concentrated phase a request's queries
/// point along one topic, so that its few keys take nearly all the weight; in a diffuse phase they
/// point along the common axis, so that all keys weigh the same. A request begins concentrated.
/// Keys and values are functions of (token, position), queries of (request, position): a recomputed
/// request gets the same rows.
class TensorGenerator {
 public:
  static constexpr std::int64_t phase_tokens = 128;
  static constexpr double diffuse_share = 0.31;  ///< of the phases; the paper's grow ratio

  /// ok, or invalid_argument: the axes need a head_dim of 32 or more, a multiple of 4.
  [[nodiscard]] static Status validate(const CacheShape& shape);
  /// Precondition: validate(shape) is ok.
  TensorGenerator(const CacheShape& shape, std::uint64_t seed);

  /// Borrows this object's table.
  [[nodiscard]] RopeParams rope() const noexcept;
  [[nodiscard]] bool diffuse(std::uint64_t request, std::int64_t position) const noexcept;
  /// k `[kv_head, head_dim]` with RoPE applied, v `[kv_head, value_dim]`.
  void key_value(TokenId token, std::int64_t position, std::int32_t layer, float* k,
                 float* v) const noexcept;
  /// q `[q_head, head_dim]`, before RoPE.
  void query(std::uint64_t request, std::int64_t position, std::int32_t layer,
             float* q) const noexcept;

 private:
  CacheShape shape_;
  std::uint64_t seed_;
  float query_norm_;             // along the axis of the phase
  std::vector<float> inv_freq_;  // [rotary_dim / 2]
};

}  // namespace growpage::replay
