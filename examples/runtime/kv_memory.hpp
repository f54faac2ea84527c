// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/status.hpp"

namespace growpage::runtime {

/// Where a forward pass leaves the K and V of its tokens and attends to those of earlier ones. The
/// model knows no more of a KV cache than these three calls, made once per layer, in this order.
/// `token` is the row of the batch; all rows are dense floats unless a stride is given.
class KvMemory {
 public:
  KvMemory() = default;
  KvMemory(const KvMemory&) = delete;
  KvMemory& operator=(const KvMemory&) = delete;
  virtual ~KvMemory() = default;

  /// The queries `[token, q_head, head_dim]`, after q-norm and before RoPE; tokens lie
  /// `token_stride` floats apart.
  virtual Status observe(std::int32_t layer, const float* q, std::int64_t token_stride) = 0;
  /// K, RoPE applied, and V of all tokens, `[token, kv_head, head_dim]`.
  virtual Status append(std::int32_t layer, const float* k, const float* v) = 0;
  /// Causal attention of all tokens, their own included. q, RoPE applied, and out: `[token, q_head,
  /// head_dim]`.
  virtual Status attend(std::int32_t layer, const float* q, float* out) = 0;
};

}  // namespace growpage::runtime
