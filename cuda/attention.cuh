// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/cuda/attention.hpp"
#include "layout.cuh"
#include "numeric.cuh"
#include "simt.cuh"
#include "warp.cuh"

namespace growpage::cuda {

inline constexpr int attention_threads = 128;
inline constexpr int attention_warps = attention_threads / warp_lanes;
/// Slots of one CTA.
inline constexpr int attention_chunk = 256;
/// Queries of a KV head that one CTA answers, at most; a larger group is split and reads K again.
inline constexpr int attention_queries = 8;

/// How the launch divides the work, and where the parts go.
struct AttentionSplit {
  std::int32_t chunks;   ///< of the longest request allowed
  std::int32_t queries;  ///< of a CTA, ≤ attention_queries
  std::int32_t tiles;    ///< CTAs that share a group
  float scale;
  float* sums;  ///< [request, q_head, chunk, value_dim] Σ w·v, weights relative to the chunk's max
  float2* stats;  ///< [request, q_head, chunk] that max and Σ w
};

/// Logits of the slots of one chunk against the queries of one CTA.
struct ChunkLogits {
  const float* q;  ///< shared, [query, head_dim]
  float* logits;   ///< shared, [query, attention_chunk]
  const KvTensor* k;
  const std::int32_t* table;
  char* layer;
  std::int32_t head;
  std::int32_t head_dim;
  std::int32_t queries;
  std::int32_t page_shift;
  float scale;

  /// Eight lanes read a row, `n` elements at a time each: 128 contiguous bytes when they are 16.
  template <class T, int n>
  __device__ void run(std::int32_t first, std::int32_t count) const {
    constexpr int lanes = 8;
    constexpr int rows = attention_threads / lanes;
    struct alignas(sizeof(T) * n) Pack {
      T at[n];
    };
    const auto thread = static_cast<std::int32_t>(threadIdx.x);
    for (std::int32_t base = 0; base < count; base += rows) {
      const std::int32_t local = base + thread / lanes;
      float sum[attention_queries] = {};
      if (local < count) {
        const std::int32_t slot = first + local;
        const auto* const row = reinterpret_cast<const T*>(row_address(
            *k, layer, table[slot >> page_shift], head, slot & ((1 << page_shift) - 1)));
        for (std::int32_t at = thread % lanes * n; at < head_dim; at += lanes * n) {
          const Pack key = *reinterpret_cast<const Pack*>(row + at);
#pragma unroll
          for (int j = 0; j < attention_queries; ++j) {
            if (j < queries) {
#pragma unroll
              for (int i = 0; i < n; ++i) {
                sum[j] = fmaf(q[j * head_dim + at + i], to_float(key.at[i]), sum[j]);
              }
            }
          }
        }
      }
#pragma unroll
      for (int j = 0; j < attention_queries; ++j) {
        if (j < queries) {
          for (int step = lanes / 2; step > 0; step /= 2) {
            sum[j] += __shfl_xor_sync(full_warp, sum[j], step);
          }
          if (thread % lanes == 0 && local < count) {
            logits[j * attention_chunk + local] = sanitize(sum[j] * scale);
          }
        }
      }
    }
  }

  template <class T>
  __device__ void run_typed(std::int32_t first, std::int32_t count) const {
    constexpr int n = 16 / sizeof(T);
    const char* const rows = row_address(*k, layer, 0, head, 0);
    const bool packed = vector_rows(rows, k->layout.token_stride, head_dim, k->dtype) &&
                        k->layout.page_stride % n == 0;
    if (packed) {
      run<T, n>(first, count);
    } else {
      run<T, 1>(first, count);
    }
  }
};

/// One CTA per (request, KV head and tile of its queries, chunk of slots).
__global__ void __launch_bounds__(attention_threads, 4)
    attention_kernel(PagedAttention attention, AttentionSplit split) {
  GROWPAGE_DYNAMIC_SHARED(memory);  // [query, head_dim]
  GROWPAGE_SHARED(float, weights, [attention_queries * attention_chunk]);
  const CacheShape& shape = attention.shape;
  const auto request = static_cast<std::int64_t>(blockIdx.x);
  const auto chunk = static_cast<std::int32_t>(blockIdx.z);
  const std::int32_t first = chunk * attention_chunk;
  const std::int32_t count = min(attention.kv_lengths[request] - first, attention_chunk);
  if (count <= 0) return;
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const auto head = static_cast<std::int32_t>(blockIdx.y) / split.tiles;
  const std::int32_t tile = static_cast<std::int32_t>(blockIdx.y) % split.tiles;
  const std::int32_t group = shape.query_heads / shape.kv_heads;
  const std::int32_t queries = min(split.queries, group - tile * split.queries);
  const std::int64_t q_row = request * shape.query_heads + std::int64_t{head} * group +
                             std::int64_t{tile} * split.queries;  // of the first query
  auto* const q = reinterpret_cast<float*>(memory);
  for (std::int32_t i = thread; i < queries * shape.head_dim; i += attention_threads) {
    q[i] = attention.q[q_row * shape.head_dim + i];
  }
  __syncthreads();

  const std::int32_t page_shift = 31 - __clz(shape.page_size);
  const KvView& kv = attention.kv;
  const std::int32_t* const table = attention.block_table + request * attention.block_table_stride;
  const ChunkLogits logits{
      q,    weights,        &kv.k,   table,      layer_address(kv.k, attention.layer),
      head, shape.head_dim, queries, page_shift, split.scale};
  if (kv.k.dtype == DType::f32) {
    logits.run_typed<float>(first, count);
  } else if (kv.k.dtype == DType::f16) {
    logits.run_typed<__half>(first, count);
  } else {
    logits.run_typed<__nv_bfloat16>(first, count);
  }
  __syncthreads();

  for (std::int32_t j = warp_id(); j < queries; j += attention_warps) {
    float* const row = weights + j * attention_chunk;
    float max = minus_infinity();
    for (std::int32_t i = lane_id(); i < count; i += warp_lanes) max = fmaxf(max, row[i]);
    max = warp_max(max);
    float sum = 0;
    for (std::int32_t i = lane_id(); i < count; i += warp_lanes) {
      row[i] = softmax_weight(row[i], max);
      sum += row[i];
    }
    sum = warp_sum(sum);
    if (lane_id() == 0) split.stats[(q_row + j) * split.chunks + chunk] = make_float2(max, sum);
  }
  __syncthreads();

  char* const v_layer = layer_address(kv.v, attention.layer);
  for (std::int32_t i = thread; i < shape.value_dim; i += attention_threads) {
    float sum[attention_queries] = {};
    for (std::int32_t s = 0; s < count; ++s) {
      const std::int32_t slot = first + s;
      const float value = load_as_float(
          row_address(kv.v, v_layer, table[slot >> page_shift], head, slot & (shape.page_size - 1)),
          kv.v.dtype, i);
#pragma unroll
      for (int j = 0; j < attention_queries; ++j) {
        if (j < queries) sum[j] = fmaf(weights[j * attention_chunk + s], value, sum[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < attention_queries; ++j) {
      if (j < queries) {
        split.sums[((q_row + j) * split.chunks + chunk) * shape.value_dim + i] = sum[j];
      }
    }
  }
}

/// Combines the chunks of one (request, query head), in their order.
__global__ void __launch_bounds__(attention_threads)
    combine_attention_kernel(PagedAttention attention, AttentionSplit split) {
  const auto request = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t row = request * attention.shape.query_heads + blockIdx.y;
  const std::int32_t slots = attention.kv_lengths[request];
  const std::int32_t chunks = slots > 0 ? (slots + attention_chunk - 1) / attention_chunk : 0;
  const float2* const stats = split.stats + row * split.chunks;
  const std::int32_t dim = attention.shape.value_dim;
  float max = minus_infinity();
  for (std::int32_t c = 0; c < chunks; ++c) max = fmaxf(max, stats[c].x);
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < dim; i += attention_threads) {
    float total = 0;
    float sum = 0;
    for (std::int32_t c = 0; c < chunks; ++c) {
      const float weight = softmax_weight(stats[c].x, max);
      total = fmaf(weight, stats[c].y, total);
      sum = fmaf(weight, split.sums[(row * split.chunks + c) * dim + i], sum);
    }
    attention.out[row * dim + i] = chunks > 0 ? sum / total : 0.0F;
  }
}

}  // namespace growpage::cuda
