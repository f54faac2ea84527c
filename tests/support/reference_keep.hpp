// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "support/reference_retention.hpp"
#include "support/reference_scene.hpp"

namespace growpage::test {

/// Owns a keep set. Starts with every bit set and absurd counts: selection must overwrite both.
class OwnedKeepSet {
 public:
  OwnedKeepSet(const CacheShape& shape, std::int32_t slots)
      : pages_(static_cast<std::size_t>((slots + shape.page_size - 1) / shape.page_size), 12345) {
    const std::int64_t words = (slots + 63) / 64 + 1;
    bits_.assign(static_cast<std::size_t>(shape.layers * shape.kv_heads * words),
                 ~std::uint64_t{0});
    view = {bits_.data(),   pages_.data(), shape.layers,
            shape.kv_heads, slots,         static_cast<std::int32_t>(pages_.size()),
            words};
  }
  OwnedKeepSet(const OwnedKeepSet&) = delete;
  OwnedKeepSet& operator=(const OwnedKeepSet&) = delete;

  [[nodiscard]] std::vector<bool> row(std::int32_t layer, std::int32_t head) const {
    std::vector<bool> kept;
    for (std::int32_t s = 0; s < view.slots; ++s) kept.push_back(view.kept(layer, head, s));
    return kept;
  }
  void set(std::int32_t layer, std::int32_t head, const std::vector<bool>& kept) {
    for (std::int32_t s = 0; s < view.slots; ++s) {
      std::uint64_t& word = view.row(layer, head)[s / 64];
      const std::uint64_t bit = std::uint64_t{1} << (s % 64);
      word = kept[static_cast<std::size_t>(s)] ? word | bit : word & ~bit;
    }
  }
  [[nodiscard]] const std::vector<std::int32_t>& page_kept() const { return pages_; }
  /// Fills the page counts from the bits.
  void count(std::int32_t page_size) {
    for (std::int32_t& p : pages_) p = 0;
    for (std::int32_t l = 0; l < view.layers; ++l) {
      for (std::int32_t h = 0; h < view.kv_heads; ++h) {
        for (std::int32_t s = 0; s < view.slots; ++s) {
          pages_[static_cast<std::size_t>(s / page_size)] += view.kept(l, h, s) ? 1 : 0;
        }
      }
    }
  }

  KeepSet view;

 private:
  std::vector<std::uint64_t> bits_;
  std::vector<std::int32_t> pages_;
};

/// A random keep set as selection would make it: shared pages whole, `keep` of the private slots.
inline void random_keep(Random& random, const CacheShape& shape,
                        const std::vector<std::uint8_t>& marks, std::int32_t keep,
                        OwnedKeepSet& out) {
  for (std::int32_t l = 0; l < shape.layers; ++l) {
    for (std::int32_t h = 0; h < shape.kv_heads; ++h) {
      std::vector<bool> kept(static_cast<std::size_t>(out.view.slots), true);
      std::vector<std::size_t> mine;
      for (std::size_t s = 0; s < kept.size(); ++s) {
        const std::size_t page = s / static_cast<std::size_t>(shape.page_size);
        if ((marks[page] & page_private) != 0) mine.push_back(s);
      }
      random.shuffle(mine);
      for (std::size_t i = static_cast<std::size_t>(keep); i < mine.size(); ++i) {
        kept[mine[i]] = false;
      }
      out.set(l, h, kept);
    }
  }
  out.count(shape.page_size);
}

inline std::int32_t private_pages(const std::vector<std::uint8_t>& marks) {
  std::int32_t n = 0;
  for (const std::uint8_t m : marks) n += (m & page_private) != 0 ? 1 : 0;
  return n;
}

/// Paged attention of one query `[q_head, head_dim]` of one layer over the first `slots` slots.
inline Rows paged_attention(CpuBackend& backend, RandomCache& cache,
                            const std::vector<PageId>& table, std::int32_t layer,
                            std::int32_t slots, const Rows& query, float softmax_scale = 0) {
  const CacheShape& shape = cache.shape;
  std::vector<float> q;
  for (const Row& row : query) q.insert(q.end(), row.begin(), row.end());
  std::vector<std::int32_t> pages;
  for (const PageId p : table) pages.push_back(p.value);
  const auto v_dim = static_cast<std::size_t>(shape.v_dim());
  std::vector<float> out(query.size() * v_dim, 9.0F);
  Workspace workspace(backend.workspace_bytes(shape, slots));
  PagedAttention a;
  a.shape = shape;
  a.kv = cache.view();
  a.layer = layer;
  a.requests = 1;
  a.block_table = pages.data();
  a.block_table_stride = static_cast<std::int64_t>(pages.size());
  a.kv_lengths = &slots;
  a.q = q.data();
  a.out = out.data();
  a.softmax_scale = softmax_scale;
  backend.paged_attention(a, workspace.data());
  Rows answer;
  for (std::size_t h = 0; h < query.size(); ++h) {
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(h * v_dim);
    answer.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(v_dim));
  }
  return answer;
}

}  // namespace growpage::test
