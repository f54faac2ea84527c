// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention.hpp"
#include "config.hpp"
#include "growpage/core/dtype.hpp"
#include "kv_memory.hpp"

namespace growpage::test {

/// The KV memory of one sequence without pages: rows of all tokens behind each other. No cache, no
/// scheduler; what the paged runs have to reproduce bit for bit.
class ContiguousMemory final : public runtime::KvMemory {
 public:
  ContiguousMemory(const runtime::ModelConfig& config, DType dtype)
      : config_(config),
        dtype_(dtype),
        k_(static_cast<std::size_t>(config.layers)),
        v_(static_cast<std::size_t>(config.layers)) {}

  /// The number of tokens of the pass that follows.
  void begin(std::int32_t tokens) {
    length_ += tokens;
    tokens_ = tokens;
  }

  Status observe(std::int32_t, const float*, std::int64_t) override { return {}; }
  Status append(std::int32_t layer, const float* k, const float* v) override {
    push(k_[static_cast<std::size_t>(layer)], k);
    push(v_[static_cast<std::size_t>(layer)], v);
    return {};
  }
  Status attend(std::int32_t layer, const float* q, float* out) override {
    runtime::AttentionScratch scratch;
    const std::int32_t group = config_.query_heads / config_.kv_heads;
    for (std::int32_t head = 0; head < config_.kv_heads; ++head) {
      const std::int64_t skip =
          std::int64_t{head} * config_.head_dim * static_cast<std::int64_t>(dtype_bytes(dtype_));
      const void* k = k_[static_cast<std::size_t>(layer)].data() + skip;
      const void* v = v_[static_cast<std::size_t>(layer)].data() + skip;
      runtime::HeadAttention a;
      a.k = &k;
      a.v = &v;
      a.dtype = dtype_;
      a.k_stride = a.v_stride = config_.kv_dim();
      a.block_size = length_;
      a.token_stride = config_.query_dim();
      a.tokens = tokens_;
      a.group = group;
      a.head_dim = config_.head_dim;
      a.first_length = length_ - tokens_ + 1;
      a.q = q + std::int64_t{head} * group * config_.head_dim;
      a.out = out + std::int64_t{head} * group * config_.head_dim;
      runtime::attend(a, scratch);
    }
    return {};
  }

 private:
  using Rows = std::vector<std::byte>;
  void push(Rows& rows, const float* from) {
    const std::int64_t dim = config_.kv_dim();
    const std::int64_t before = std::int64_t{length_ - tokens_} * dim;
    rows.resize(static_cast<std::size_t>(std::int64_t{length_} * dim) * dtype_bytes(dtype_));
    for (std::int64_t i = 0; i < tokens_ * dim; ++i) {
      store_element(rows.data(), dtype_, before + i, from[i]);
    }
  }

  const runtime::ModelConfig& config_;
  DType dtype_;
  std::int32_t length_ = 0;
  std::int32_t tokens_ = 0;
  std::vector<Rows> k_, v_;  // [layer][position, kv_head, head_dim]
};

}  // namespace growpage::test
