// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

#include "growpage/core/cache_shape.hpp"
#include "growpage/core/dtype.hpp"
#include "growpage/core/kv_layout.hpp"

namespace growpage::test {

/// Random numbers that are the same with every standard library (its distributions are not).
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t bits() { return engine_(); }
  /// 0 … n − 1.
  std::int32_t below(std::int32_t n) {
    return static_cast<std::int32_t>(engine_() % static_cast<std::uint64_t>(n));
  }
  /// [0, 1).
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  /// Mean 0, variance 1 (Box–Muller).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }
  std::vector<double> normal_row(std::int32_t n, double scale = 1.0) {
    std::vector<double> row(static_cast<std::size_t>(n));
    for (double& x : row) x = scale * normal();
    return row;
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[engine_() % i]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

enum class Arrangement {
  nhd,        ///< one tensor, token-major
  hnd,        ///< one tensor, head-major
  padded,     ///< one tensor, token-major, gaps between rows, pages and layers
  per_layer,  ///< one allocation a layer, head-major
};

/// K or V memory of a small cache, addressed by its own arithmetic. Everything starts as NaN, so
/// that a kernel that reads what nobody wrote (unused slots, gaps) betrays itself.
class CacheTensor {
 public:
  CacheTensor(const CacheShape& shape, std::int32_t pages, std::int32_t dim, DType dtype,
              Arrangement arrangement)
      : dim_(dim), dtype_(dtype) {
    const std::int64_t heads = shape.kv_heads;
    const std::int64_t b = shape.page_size;
    switch (arrangement) {
      case Arrangement::nhd:
        token_ = heads * dim, head_ = dim, page_ = token_ * b, layer_ = page_ * pages;
        break;
      case Arrangement::padded:
        token_ = heads * dim + 3, head_ = dim, page_ = token_ * b + 5, layer_ = page_ * pages + 7;
        break;
      case Arrangement::hnd:
      case Arrangement::per_layer:
        token_ = dim, head_ = dim * b, page_ = head_ * heads, layer_ = page_ * pages;
        break;
    }
    const std::int64_t elements = layer_ * shape.layers;
    memory_.resize(static_cast<std::size_t>(elements) * dtype_bytes(dtype));
    for (std::int64_t i = 0; i < elements; ++i) {
      store_element(memory_.data(), dtype, i, std::numeric_limits<float>::quiet_NaN());
    }
    if (arrangement == Arrangement::per_layer) {
      for (std::int32_t l = 0; l < shape.layers; ++l) {
        bases_.push_back(memory_.data() +
                         static_cast<std::size_t>(l * layer_) * dtype_bytes(dtype));
      }
    }
  }
  CacheTensor(const CacheTensor&) = delete;
  CacheTensor& operator=(const CacheTensor&) = delete;

  [[nodiscard]] KvTensor view() {
    KvTensor t;
    t.dtype = dtype_;
    t.layout = {layer_, page_, head_, token_};
    if (bases_.empty()) {
      t.base = memory_.data();
    } else {
      t.layer_base = bases_.data();
      t.layout.layer_stride = -1;  // must not be used
    }
    return t;
  }
  [[nodiscard]] double get(std::int32_t layer, PageId page, std::int32_t head, std::int32_t token,
                           std::int32_t i) const {
    return load_element(memory_.data(), dtype_, at(layer, page, head, token) + i);
  }
  void set(std::int32_t layer, PageId page, std::int32_t head, std::int32_t token, std::int32_t i,
           double value) {
    store_element(memory_.data(), dtype_, at(layer, page, head, token) + i,
                  static_cast<float>(value));
  }
  [[nodiscard]] std::vector<double> row(std::int32_t layer, PageId page, std::int32_t head,
                                        std::int32_t token) const {
    std::vector<double> values;
    for (std::int32_t i = 0; i < dim_; ++i) values.push_back(get(layer, page, head, token, i));
    return values;
  }
  void set_row(std::int32_t layer, PageId page, std::int32_t head, std::int32_t token,
               const std::vector<double>& values) {
    for (std::int32_t i = 0; i < dim_; ++i) {
      set(layer, page, head, token, i, values[static_cast<std::size_t>(i)]);
    }
  }
  [[nodiscard]] std::int32_t dim() const { return dim_; }

 private:
  [[nodiscard]] std::int64_t at(std::int32_t layer, PageId page, std::int32_t head,
                                std::int32_t token) const {
    return layer * layer_ + page.value * page_ + head * head_ + token * token_;
  }

  std::int32_t dim_;
  DType dtype_;
  std::int64_t layer_ = 0, page_ = 0, head_ = 0, token_ = 0;
  std::vector<std::byte> memory_;
  std::vector<void*> bases_;
};

/// A small pool with one request in it: `slots` random K and V rows (scaled by `k_scale`) behind a
/// shuffled block table, everything else NaN.
struct RandomCache {
  struct Options {
    std::int32_t slots = 0;
    std::int32_t spare_pages = 2;  ///< pages the request does not hold
    DType dtype = DType::f32;
    Arrangement arrangement = Arrangement::hnd;
    double k_scale = 1.0;
    std::uint64_t seed = 1;
  };

  RandomCache(const CacheShape& cache_shape, const Options& options)
      : shape(cache_shape),
        slots(options.slots),
        pages((options.slots + shape.page_size - 1) / shape.page_size),
        pool(pages + options.spare_pages),
        k(shape, pool, shape.head_dim, options.dtype, options.arrangement),
        v(shape, pool, shape.v_dim(), options.dtype, options.arrangement) {
    Random random(options.seed);
    for (std::int32_t p = 0; p < pool; ++p) table.push_back(PageId{p});
    random.shuffle(table);
    table.resize(static_cast<std::size_t>(pages));
    for (std::int32_t l = 0; l < shape.layers; ++l) {
      for (std::int32_t h = 0; h < shape.kv_heads; ++h) {
        for (std::int32_t s = 0; s < slots; ++s) {
          k.set_row(l, page(s), h, s % shape.page_size,
                    random.normal_row(shape.head_dim, options.k_scale));
          v.set_row(l, page(s), h, s % shape.page_size, random.normal_row(shape.v_dim()));
        }
      }
    }
  }

  [[nodiscard]] KvView view() { return {k.view(), v.view()}; }
  /// Physical page of logical slot `s`.
  [[nodiscard]] PageId page(std::int32_t s) const {
    return table[static_cast<std::size_t>(s / shape.page_size)];
  }
  [[nodiscard]] std::vector<double> key(std::int32_t layer, std::int32_t head,
                                        std::int32_t s) const {
    return k.row(layer, page(s), head, s % shape.page_size);
  }
  [[nodiscard]] std::vector<double> value(std::int32_t layer, std::int32_t head,
                                          std::int32_t s) const {
    return v.row(layer, page(s), head, s % shape.page_size);
  }
  void set_key(std::int32_t layer, std::int32_t head, std::int32_t s,
               const std::vector<double>& row) {
    k.set_row(layer, page(s), head, s % shape.page_size, row);
  }
  void set_value(std::int32_t layer, std::int32_t head, std::int32_t s,
                 const std::vector<double>& row) {
    v.set_row(layer, page(s), head, s % shape.page_size, row);
  }

  CacheShape shape;
  std::int32_t slots;
  std::int32_t pages;  ///< of the request
  std::int32_t pool;   ///< pages in memory
  CacheTensor k;
  CacheTensor v;
  std::vector<PageId> table;
};

}  // namespace growpage::test
