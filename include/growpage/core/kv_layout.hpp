// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/cache_shape.hpp"
#include "growpage/core/dtype.hpp"
#include "growpage/core/ids.hpp"
#include "growpage/core/status.hpp"

namespace growpage {

/// How one of K or V lies in memory: element (layer, page, head, token, dim) is at
/// `base(layer) + page·page_stride + head·head_stride + token·token_stride + dim`, strides in
/// elements, the head dimension contiguous. All arithmetic is 64-bit.
struct KvLayout {
  std::int64_t layer_stride = 0;  ///< unused with per-layer base pointers
  std::int64_t page_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t token_stride = 0;

  /// One tensor `[layer, page, token, head, dim]` (vLLM and FlashInfer "NHD").
  [[nodiscard]] static KvLayout nhd(const CacheShape& shape, std::int64_t pages,
                                    std::int32_t dim) noexcept {
    const std::int64_t token = std::int64_t{shape.kv_heads} * dim;
    const std::int64_t page = token * shape.page_size;
    return {page * pages, page, dim, token};
  }
  /// One tensor `[layer, page, head, token, dim]` ("HND"; the fastest for the kernels here).
  [[nodiscard]] static KvLayout hnd(const CacheShape& shape, std::int64_t pages,
                                    std::int32_t dim) noexcept {
    const std::int64_t head = std::int64_t{dim} * shape.page_size;
    const std::int64_t page = head * shape.kv_heads;
    return {page * pages, page, head, dim};
  }

  /// Offset in elements from the layer's base.
  [[nodiscard]] constexpr std::int64_t offset(PageId page, std::int32_t head,
                                              std::int32_t token) const noexcept {
    return page.offset() * page_stride + std::int64_t{head} * head_stride +
           std::int64_t{token} * token_stride;
  }
  friend constexpr bool operator==(const KvLayout&, const KvLayout&) = default;
};

/// A view of K or of V: trivially copyable, owns nothing. Give either `base` (one tensor, layers
/// `layer_stride` apart) or `layer_base` `[layer]` (one pointer a layer, as engines that allocate
/// per layer have); the other is null. On CUDA the pointers, and the array `layer_base` itself, are
/// device memory.
struct KvTensor {
  void* base = nullptr;
  void* const* layer_base = nullptr;  ///< [layer]
  KvLayout layout;
  DType dtype = DType::f32;

  [[nodiscard]] char* layer(std::int32_t l) const noexcept {
    return layer_base != nullptr
               ? static_cast<char*>(layer_base[l])
               : static_cast<char*>(base) +
                     l * layout.layer_stride * static_cast<std::int64_t>(dtype_bytes(dtype));
  }
  /// Address of the row `[dim]` of (layer, page, head, token).
  [[nodiscard]] void* row(std::int32_t l, PageId page, std::int32_t head,
                          std::int32_t token) const noexcept {
    return layer(l) +
           layout.offset(page, head, token) * static_cast<std::int64_t>(dtype_bytes(dtype));
  }
  [[nodiscard]] bool null() const noexcept { return base == nullptr && layer_base == nullptr; }
};

/// The KV memory of a cache. K rows are stored after RoPE.
struct KvView {
  KvTensor k;
  KvTensor v;
  /// V is a view of K's rows (latent attention, shared K/V): a row moves once, with K, and `v` is
  /// only read through. Detected, not declared, by `KvView::v_in_k()`.
  [[nodiscard]] bool v_in_k() const noexcept {
    return v.null() || (v.base == k.base && v.layer_base == k.layer_base);
  }
  /// Checks strides against the shape and `pages`: rows of one tensor must not overlap.
  [[nodiscard]] Status validate(const CacheShape& shape, std::int64_t pages) const;
};

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/kv_layout.ipp"
#endif
