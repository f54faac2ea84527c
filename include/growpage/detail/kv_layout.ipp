// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "growpage/core/kv_layout.hpp"
#include "growpage/detail/require.hpp"

namespace growpage {

namespace detail {

/// Rows of one layer must not overlap: sorted by stride, each stride must cover the extent inside
/// it.
inline Status check_tensor(const char* name, const KvTensor& t, const CacheShape& shape,
                           std::int64_t pages, std::int64_t dim) {
  const std::string prefix = name;
  if (t.base != nullptr && t.layer_base != nullptr) {
    return Status::invalid(prefix + ".layer_base", "given beside base", "one of the two");
  }
  struct Axis {
    const char* name;
    std::int64_t stride, extent;
  };
  // Layers may lie inside pages as well as around them. A base per layer takes this axis away.
  const std::int64_t layers = t.layer_base == nullptr ? shape.layers : 1;
  std::array<Axis, 4> axes{{{".layout.layer_stride", t.layout.layer_stride, layers},
                            {".layout.page_stride", t.layout.page_stride, pages},
                            {".layout.head_stride", t.layout.head_stride, shape.kv_heads},
                            {".layout.token_stride", t.layout.token_stride, shape.page_size}}};
  std::sort(axes.begin(), axes.end(),
            [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  std::int64_t inner = dim;  // elements covered by everything inside this axis
  for (const Axis& axis : axes) {
    if (axis.extent == 1) continue;
    if (axis.stride < inner) {
      return Status::invalid(prefix + axis.name, axis.stride,
                             "at least " + std::to_string(inner) + ", so that rows do not overlap");
    }
    inner += axis.stride * (axis.extent - 1);
  }
  return {};
}

}  // namespace detail

GROWPAGE_INLINE Status KvView::validate(const CacheShape& shape, std::int64_t pages) const {
  if (k.null()) return Status::invalid("KvView::k", "null", "K memory: base or layer_base");
  if (Status s = detail::check_tensor("KvView::k", k, shape, pages, shape.head_dim); !s.ok()) {
    return s;
  }
  if (v.null()) return {};
  return detail::check_tensor("KvView::v", v, shape, pages, shape.v_dim());
}

}  // namespace growpage
