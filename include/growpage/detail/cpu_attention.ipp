// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "growpage/backend/cpu.hpp"
#include "growpage/detail/cpu_distribution.hpp"
#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/cpu_workspace.hpp"

namespace growpage::detail {

/// Attention of the query heads of one (request, KV head): the work of one task.
inline void attend(const PagedAttention& attention, const CpuKernels& kernels,
                   const CpuWorkspace& workspace, std::int32_t request, std::int32_t head,
                   std::int32_t worker) noexcept {
  const CacheShape& shape = attention.shape;
  const std::int32_t group = shape.group();
  const std::int32_t v_dim = shape.v_dim();
  const std::int64_t slots = attention.kv_lengths[request];
  const std::int64_t first_head =
      std::int64_t{request} * shape.query_heads + std::int64_t{head} * group;
  float* out = attention.out + first_head * v_dim;
  if (slots <= 0) {
    std::fill(out, out + std::int64_t{group} * v_dim, 0.0F);
    return;
  }
  const CpuWorkspace::Worker w = workspace.worker(worker);
  const std::int64_t stride = workspace.row_stride();
  const std::int64_t dim_stride = workspace.dim_stride();
  const float scale = softmax_scale(attention.softmax_scale, shape.head_dim);
  const KvTensor& k = attention.kv.k;
  // With V a view of K's rows, and no tensor of its own, a value is the row's first v_dim elements.
  const KvTensor& v = attention.kv.v.null() ? k : attention.kv.v;
  const auto k_dtype = static_cast<std::int32_t>(k.dtype);
  const auto v_dtype = static_cast<std::int32_t>(v.dtype);
  const auto page_at = [&](std::int64_t page) {
    return PageId{attention.block_table[request * attention.block_table_stride + page]};
  };
  kernels.pack[k_dtype](attention.q + first_head * shape.head_dim, shape.head_dim, group,
                        shape.head_dim, w.packed);
  for (std::int64_t first = 0, page = 0; first < slots; first += shape.page_size, ++page) {
    const KRows rows{
        k.row(attention.layer, page_at(page), head, 0), k.layout.token_stride,
        static_cast<std::int32_t>(std::min<std::int64_t>(shape.page_size, slots - first)),
        shape.head_dim, nullptr};
    kernels.dot[k_dtype](rows, w.packed, group, w.rows + first, stride, w.tile);
  }
  for (std::int32_t g = 0; g < group; ++g) {
    float* x = w.rows + g * stride;
    const double sum = to_weights(kernels, x, slots, kernels.sanitize_max(x, slots, scale));
    w.coefficient[g] = static_cast<float>(1.0 / sum);
  }
  std::fill(w.accumulators, w.accumulators + group * dim_stride, 0.0);
  for (std::int64_t s = 0; s < slots; ++s) {
    const void* value = v.row(attention.layer, page_at(s / shape.page_size), head,
                              static_cast<std::int32_t>(s % shape.page_size));
    kernels.widen[v_dtype](value, v_dim, w.tile);
    for (std::int32_t g = 0; g < group; ++g) {
      const double weight = double{w.rows[g * stride + s]} * double{w.coefficient[g]};
      double* sum = w.accumulators + g * dim_stride;
      for (std::int32_t i = 0; i < v_dim; ++i) sum[i] += weight * double{w.tile[i]};
    }
  }
  for (std::int32_t g = 0; g < group; ++g) {
    const double* sum = w.accumulators + g * dim_stride;
    for (std::int32_t i = 0; i < v_dim; ++i) out[g * v_dim + i] = static_cast<float>(sum[i]);
  }
}

}  // namespace growpage::detail

namespace growpage {

GROWPAGE_INLINE void CpuBackend::paged_attention(const PagedAttention& attention, void* workspace,
                                                 StreamView /*stream*/) noexcept {
  if (attention.requests <= 0) return;
  const std::int32_t longest =
      *std::max_element(attention.kv_lengths, attention.kv_lengths + attention.requests);
  const detail::CpuWorkspace ws(attention.shape, std::max(longest, 0), workspace);
  const std::int32_t heads = attention.shape.kv_heads;
  executor_.for_each(
      std::int64_t{attention.requests} * heads, [&](std::int64_t task, std::int32_t worker) {
        detail::attend(attention, *kernels_, ws, static_cast<std::int32_t>(task / heads),
                       static_cast<std::int32_t>(task % heads), worker);
      });
}

}  // namespace growpage
