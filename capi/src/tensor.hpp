// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "growpage/core/cache_shape.hpp"
#include "growpage/core/kv_layout.hpp"
#include "growpage/core/status.hpp"
#include "growpage/growpage.h"

namespace growpage::capi {

/// A growpage_tensor, checked.
struct Tensor {
  void* data = nullptr;
  void* const* layer_data = nullptr;
  DType dtype = DType::f32;
  std::int64_t shape[GROWPAGE_MAX_DIMS] = {};
  std::int64_t strides[GROWPAGE_MAX_DIMS] = {};  // never "packed by zero"
};

/// `in` must have `extents.size()` axes with these extents (−1: any) and contiguous last axis.
/// `layered`: layer_data is allowed in place of data. Null is refused.
Status read_tensor(const char* name, const growpage_tensor* in,
                   std::span<const std::int64_t> extents, bool layered, Tensor& out);

/// K or V [layer, page, kv_head, token, dim] of at least `pages` pages; `out_pages` what it has.
/// `host`: the host may read layer_data, so that its pointers are checked.
Status read_kv_tensor(const char* name, const growpage_tensor* in, const CacheShape& shape,
                      std::int32_t dim, std::int64_t pages, bool host, KvTensor& out,
                      std::int64_t& out_pages);

/// The other way, for memory of `pages` pages.
[[nodiscard]] growpage_tensor to_c_tensor(const KvTensor& tensor, const CacheShape& shape,
                                          std::int32_t dim, std::int64_t pages) noexcept;

}  // namespace growpage::capi
