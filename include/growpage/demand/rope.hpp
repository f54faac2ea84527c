// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/status.hpp"

namespace growpage {

/// Which two elements a rotation turns.
enum class RopePairing : std::int32_t {
  half_split = 0,   ///< (i, i + rotary_dim/2): Llama, Qwen (HF layout)
  interleaved = 1,  ///< (2i, 2i + 1): GPT-J, original Llama weights
};

/// The engine's rotary embedding, non-owning. Give either `inv_freq` or both tables; tables win.
/// The first `rotary_dim` dims are rotated, the rest pass through. On CUDA: device memory.
struct RopeParams {
  std::int32_t rotary_dim = 0;  ///< even, 0 … head_dim; 0 = no rotation
  RopePairing pairing = RopePairing::half_split;
  const float* inv_freq = nullptr;   ///< [rotary_dim/2], angle = position · inv_freq[i]
  const float* cos_table = nullptr;  ///< [max_position, rotary_dim/2], row = position
  const float* sin_table = nullptr;  ///< [max_position, rotary_dim/2]
  std::int64_t max_position = 0;     ///< rows of the tables
  /// Multiplies cos and sin (YaRN's "attention factor"), on the rotated dims only.
  float attention_scale = 1.0F;

  [[nodiscard]] Status validate(std::int32_t head_dim) const;
};

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/rope.ipp"
#endif
