// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "growpage/core/dtype.hpp"

namespace growpage::runtime {

/// Causal attention of consecutive tokens of one sequence under one KV head: the tokens of a
/// prefill chunk, or the one of a decode step. K and V lie in blocks of rows (pages, or one block
/// that is the whole sequence). A token's result depends on its query and on the rows it attends
/// to, in slot order, and on nothing else: not on where blocks end, nor on how many tokens come
/// with it. So a text has one result, decoded or prefilled, paged or not.
struct HeadAttention {
  const void* const* k = nullptr;  ///< [block] the head's first row of each block, RoPE applied
  const void* const* v = nullptr;  ///< [block]
  DType dtype = DType::f32;        ///< of K and V
  std::int64_t k_stride = 0;       ///< from a row to the next one, in elements
  std::int64_t v_stride = 0;
  std::int32_t block_size = 0;  ///< rows of a block

  const float* q = nullptr;       ///< [token, group, head_dim], RoPE applied
  float* out = nullptr;           ///< [token, group, head_dim]
  std::int64_t token_stride = 0;  ///< of q and out, in elements
  std::int32_t tokens = 0;
  std::int32_t group = 0;
  std::int32_t head_dim = 0;      ///< a multiple of 16
  std::int32_t first_length = 0;  ///< rows the first token attends to, ≥ 1; each next one: one more
};

/// Memory of a thread that attends; grows to what its calls need.
struct AttentionScratch {
  std::vector<float> weights;  // [query of the pass, slot]
  std::vector<float> scales;   // [query of the pass], one over the sum of its weights
  std::vector<float> tile;     // one block, widened
  std::vector<const void*> k_blocks, v_blocks;  // for the caller's block lists
};

void attend(const HeadAttention& attention, AttentionScratch& scratch);

}  // namespace growpage::runtime
