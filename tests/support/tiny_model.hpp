// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "growpage/cache/paged_kv_cache.hpp"
#include "growpage/detail/splitmix.hpp"
#include "support/catch.hpp"
#include "support/random_cache.hpp"
#include "support/reference.hpp"

namespace growpage::test {

using CpuCache = PagedKVCache<CpuBackend>;

inline constexpr std::array<float, 4> kInvFreq = {1.0F, 0.3F, 0.1F, 0.03F};

/// Two layers, four query heads on two KV heads of 16 dims, pages of 16 tokens, some rotary dims.
inline PagedKVCacheOptions tiny_options(std::int64_t pages = 24) {
  PagedKVCacheOptions options;
  options.shape = {2, 4, 2, 16, 0, 16};
  options.pages.pages = pages;
  options.pages.max_sequences = 16;
  options.pages.max_pages_per_sequence = 12;
  options.dtype = DType::f32;
  options.summary.slots = 8;
  options.rope.rotary_dim = 8;
  options.rope.inv_freq = kInvFreq.data();
  options.retention.recent = 4;
  options.retention.local_per_256 = 0;
  return options;
}

/// What the model's projections give: fixed pseudo-random vectors of (token, position, role).
class TinyModel {
 public:
  explicit TinyModel(CpuCache& cache) : cache_(cache), shape_(cache.shape()) {}

  /// As stored: rounded to the cache's dtype.
  [[nodiscard]] reference::Row key(std::int32_t layer, std::int32_t head, TokenId token,
                                   std::int64_t position) const {
    return vector(0, layer, head, token, position, shape_.head_dim, true);
  }
  [[nodiscard]] reference::Row value(std::int32_t layer, std::int32_t head, TokenId token,
                                     std::int64_t position) const {
    if (cache_.kv().v_in_k()) return key(layer, head, token, position);
    return vector(1, layer, head, token, position, shape_.v_dim(), true);
  }
  [[nodiscard]] reference::Row query(std::int32_t layer, std::int32_t head, TokenId token,
                                     std::int64_t position) const {
    return vector(2, layer, head, token, position, shape_.head_dim, false);
  }

  /// K and V of `tokens` `[count]`, the first at `position` and logical slot `slot`.
  void append(SequenceId id, std::span<const TokenId> tokens, std::int64_t position,
              std::int32_t slot) const {
    std::vector<std::int64_t> mapping;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      mapping.push_back(cache_.physical_slot(id, slot + static_cast<std::int32_t>(i)));
    }
    const DType dtype = cache_.kv().k.dtype;
    for (std::int32_t l = 0; l < shape_.layers; ++l) {
      std::vector<std::byte> k, v;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        for (std::int32_t h = 0; h < shape_.kv_heads; ++h) {
          const std::int64_t p = position + static_cast<std::int64_t>(i);
          store(k, dtype, key(l, h, tokens[i], p));
          store(v, dtype, value(l, h, tokens[i], p));
        }
      }
      const Status s = cache_.append_kv(l, mapping, k.data(), v.data());
      REQUIRE(s.ok());
    }
  }
  /// The token's query enters the summaries of `entry`.
  void summarise(const SummaryEntry& entry, TokenId token, std::int64_t position) const {
    std::vector<float> q;
    for (std::int32_t l = 0; l < shape_.layers; ++l) {
      for (std::int32_t h = 0; h < shape_.query_heads; ++h) {
        for (const double x : query(l, h, token, position)) q.push_back(static_cast<float>(x));
      }
    }
    REQUIRE(cache_.update_summaries({&entry, 1}, {q.data()}, 0, shape_.layers).ok());
  }
  /// Attention of the token's (unrotated) query over the first `slots` slots: [q_head, v_dim].
  [[nodiscard]] std::vector<float> attention(SequenceId id, std::int32_t layer, TokenId token,
                                             std::int64_t position, std::int32_t slots) const {
    std::vector<float> q;
    for (std::int32_t h = 0; h < shape_.query_heads; ++h) {
      for (const double x : query(layer, h, token, position)) q.push_back(static_cast<float>(x));
    }
    const SequenceView view = cache_.view(id).value();
    std::vector<std::int32_t> table;
    for (const PageId page : view.pages) table.push_back(page.value);
    std::vector<float> out(static_cast<std::size_t>(shape_.query_heads * shape_.v_dim()));
    REQUIRE(cache_
                .attention(layer, table, static_cast<std::int64_t>(table.size()), {&slots, 1},
                           q.data(), out.data())
                .ok());
    return out;
  }

  /// The K row (or V row) of a logical slot as it lies in memory.
  [[nodiscard]] reference::Row stored(const KvTensor& tensor, SequenceId id, std::int32_t layer,
                                      std::int32_t head, std::int32_t slot,
                                      std::int32_t dim) const {
    const std::int64_t physical = cache_.physical_slot(id, slot);
    const void* row =
        tensor.row(layer, PageId{static_cast<std::int32_t>(physical / shape_.page_size)}, head,
                   static_cast<std::int32_t>(physical % shape_.page_size));
    reference::Row out;
    for (std::int32_t i = 0; i < dim; ++i) out.push_back(load_element(row, tensor.dtype, i));
    return out;
  }
  [[nodiscard]] CpuCache& cache() const { return cache_; }
  [[nodiscard]] const CacheShape& shape() const { return shape_; }

 private:
  static void store(std::vector<std::byte>& out, DType dtype, const reference::Row& row) {
    const std::size_t at = out.size();
    out.resize(at + row.size() * dtype_bytes(dtype));
    for (std::size_t i = 0; i < row.size(); ++i) {
      store_element(out.data() + at, dtype, static_cast<std::int64_t>(i),
                    static_cast<float>(row[i]));
    }
  }
  [[nodiscard]] reference::Row vector(std::uint64_t role, std::int32_t layer, std::int32_t head,
                                      TokenId token, std::int64_t position, std::int32_t dim,
                                      bool stored) const {
    Random random(detail::splitmix64(
        (((role * 8 + static_cast<std::uint64_t>(layer)) * 8 + static_cast<std::uint64_t>(head))
         << 40) ^
        (static_cast<std::uint64_t>(token) << 20) ^ static_cast<std::uint64_t>(position)));
    reference::Row row = random.normal_row(dim, role == 0 ? 1.5 : 1.0);
    std::byte element[4];
    for (double& x : row) {
      store_element(element, stored ? cache_.kv().k.dtype : DType::f32, 0, static_cast<float>(x));
      x = load_element(element, stored ? cache_.kv().k.dtype : DType::f32, 0);
    }
    return row;
  }

  CpuCache& cache_;
  CacheShape shape_;
};

}  // namespace growpage::test
