// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "growpage/cache/paged_kv_cache_options.hpp"
#include "support/check.hpp"

namespace growpage::bench {

/// Qwen3-8B has 36 layers. Fewer cost as much a layer, as long as K fits in no cache.
[[nodiscard]] constexpr CacheShape qwen3_8b(std::int32_t layers) {
  return {.layers = layers, .query_heads = 32, .kv_heads = 8, .head_dim = 128};
}
/// A model of the size that runs on a phone.
[[nodiscard]] constexpr CacheShape small_model() {
  return {.layers = 4, .query_heads = 8, .kv_heads = 2, .head_dim = 64};
}

struct SceneOptions {
  CacheShape shape;
  DType dtype = DType::bf16;
  PageLayout layout = PageLayout::hnd;
  std::int32_t pages = 16;    ///< of a request
  std::int32_t requests = 1;  ///< taken in turn, so that small ones do not stay in the cache
};

/// K and V of some requests, their block tables and query summaries, full of random numbers.
class Scene {
 public:
  Scene(CpuBackend& backend, const SceneOptions& options)
      : backend_(backend), options_(options), random_(1) {
    const std::int32_t pool = options.pages * options.requests;
    const CacheShape& shape = options.shape;
    const KvLayout layout = options.layout == PageLayout::nhd
                                ? KvLayout::nhd(shape, pool, shape.head_dim)
                                : KvLayout::hnd(shape, pool, shape.head_dim);
    bytes_ = layout.layer_stride * shape.layers * element();
    kv_.k = {tensor(), nullptr, layout, options.dtype};
    kv_.v = {tensor(), nullptr, layout, options.dtype};
    for (std::int32_t p = 0; p < pool; ++p) tables_.push_back(PageId{p});
    std::shuffle(tables_.begin(), tables_.end(), random_);
    for (std::int32_t i = 0; i < shape.head_dim / 2; ++i) {
      inv_freq_.push_back(static_cast<float>(std::pow(1e6, -2.0 * i / shape.head_dim)));
    }
    make_summaries();
  }
  ~Scene() {
    backend_.deallocate(kv_.k.base, bytes_);
    backend_.deallocate(kv_.v.base, bytes_);
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  [[nodiscard]] const SceneOptions& options() const { return options_; }
  [[nodiscard]] const KvView& kv() const { return kv_; }
  [[nodiscard]] const SummaryView& summaries() const { return summaries_; }
  [[nodiscard]] const PageId* table(std::int32_t request) const {
    return tables_.data() + request * options_.pages;
  }
  [[nodiscard]] std::int32_t slots() const { return options_.pages * options_.shape.page_size; }
  [[nodiscard]] std::int64_t heads() const {
    return std::int64_t{options_.shape.layers} * options_.shape.kv_heads;
  }
  [[nodiscard]] std::int64_t element() const {
    return static_cast<std::int64_t>(dtype_bytes(options_.dtype));
  }
  [[nodiscard]] std::int64_t row_bytes() const { return options_.shape.head_dim * element(); }
  /// K of one request.
  [[nodiscard]] double k_bytes() const {
    return static_cast<double>(heads() * slots() * row_bytes());
  }

  /// The boundary pass of a request, but for its outputs.
  [[nodiscard]] BoundaryPass boundary(std::int32_t request) const {
    BoundaryPass pass;
    pass.shape = options_.shape;
    pass.kv = kv_;
    pass.summaries = summaries_;
    pass.rope.rotary_dim = options_.shape.head_dim;
    pass.rope.inv_freq = inv_freq_.data();
    pass.input = {table(request), slots(), slots() - options_.shape.page_size, 0, 5000};
    return pass;
  }

 private:
  void* tensor() {
    auto* memory = static_cast<char*>(backend_.allocate(bytes_));
    check(memory != nullptr);
    std::normal_distribution<float> normal;
    std::vector<char> pattern(std::size_t{1} << 20);
    const std::int64_t count = static_cast<std::int64_t>(pattern.size()) / element();
    for (std::int64_t i = 0; i < count; ++i) {
      store_element(pattern.data(), options_.dtype, i, normal(random_));
    }
    constexpr std::int64_t piece = 4096;
    for (std::int64_t at = 0; at < bytes_; at += piece) {
      const auto from = static_cast<std::int64_t>(random_() % (pattern.size() - piece)) & ~63;
      std::memcpy(memory + at, pattern.data() + from,
                  static_cast<std::size_t>(std::min(piece, bytes_ - at)));
    }
    return memory;
  }
  void make_summaries() {
    const CacheShape& shape = options_.shape;
    const auto rows = static_cast<std::size_t>(shape.layers * shape.query_heads);
    std::normal_distribution<float> normal(0.0F, 2.0F);
    values_.resize(rows * 2 * static_cast<std::size_t>(shape.head_dim));
    for (float& x : values_) x = normal(random_);
    rms_.assign(rows, 2.0F);
    steps_.assign(static_cast<std::size_t>(shape.layers), 100);
    summaries_.summaries = values_.data();
    summaries_.query_rms = rms_.data();
    summaries_.steps = steps_.data();
    summaries_.layers = shape.layers;
    summaries_.slots = 1;
    summaries_.query_heads = shape.query_heads;
    summaries_.head_dim = shape.head_dim;
  }

  CpuBackend& backend_;
  SceneOptions options_;
  std::mt19937_64 random_;
  std::int64_t bytes_ = 0;
  KvView kv_;
  std::vector<PageId> tables_;
  std::vector<float> inv_freq_, values_, rms_;
  std::vector<std::int64_t> steps_;
  SummaryView summaries_;
};

}  // namespace growpage::bench
