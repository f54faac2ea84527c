// SPDX-License-Identifier: Apache-2.0
#include "attention.cuh"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "status.cuh"

namespace growpage::cuda {
namespace {

std::int64_t chunks_of(std::int32_t max_slots) noexcept {
  return (std::int64_t{max_slots} + attention_chunk - 1) / attention_chunk;
}

}  // namespace

std::int64_t paged_attention_workspace_bytes(const CacheShape& shape, std::int32_t requests,
                                             std::int32_t max_slots) noexcept {
  const std::int64_t parts = std::int64_t{requests} * shape.query_heads * chunks_of(max_slots);
  return parts * (static_cast<std::int64_t>(sizeof(float2)) +
                  static_cast<std::int64_t>(sizeof(float)) * shape.v_dim());
}

Status paged_attention(const PagedAttention& attention, std::int32_t max_slots, void* workspace,
                       StreamView stream) {
  if (attention.requests <= 0) return {};
  PagedAttention resolved = attention;
  CacheShape& shape = resolved.shape;
  shape.value_dim = shape.v_dim();
  // A V without a tensor of its own is the first value_dim elements of K's rows.
  if (resolved.kv.v.null()) resolved.kv.v = resolved.kv.k;

  constexpr std::int32_t query_bytes = 32 << 10;  // of shared memory
  AttentionSplit split{};
  split.chunks = static_cast<std::int32_t>(chunks_of(std::max(max_slots, 0)));
  split.queries =
      std::clamp(query_bytes / (shape.head_dim * 4), 1, std::min(shape.group(), attention_queries));
  split.tiles = (shape.group() + split.queries - 1) / split.queries;
  split.scale = attention.softmax_scale != 0.0F
                    ? attention.softmax_scale
                    : static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
  // The 8-byte pairs first: they need the alignment.
  split.stats = static_cast<float2*>(workspace);
  const std::int64_t parts = std::int64_t{attention.requests} * shape.query_heads * split.chunks;
  split.sums = reinterpret_cast<float*>(split.stats + parts);

  const auto requests = static_cast<unsigned>(attention.requests);
  if (split.chunks > 0) {
    const dim3 grid(requests, static_cast<unsigned>(shape.kv_heads * split.tiles),
                    static_cast<unsigned>(split.chunks));
    const auto shared = sizeof(float) * static_cast<std::size_t>(split.queries * shape.head_dim);
    const cudaError_t error =
        launch(attention_kernel, grid, attention_threads, shared, to_cuda(stream), resolved, split);
    if (error != cudaSuccess) return device_status(error, "launch of paged_attention");
  }
  const dim3 grid(requests, static_cast<unsigned>(shape.query_heads));
  return device_status(launch(combine_attention_kernel, grid, attention_threads, 0, to_cuda(stream),
                              resolved, split),
                       "launch of paged_attention");
}

}  // namespace growpage::cuda
