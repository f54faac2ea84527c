// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "growpage/core/cache_shape.hpp"
#include "simt.cuh"

/// What the kernels of a boundary pass hand to each other, and where it lies in the workspace.
namespace growpage::cuda {

/// Slots of one CTA of the kernels that read K.
inline constexpr std::int32_t chunk_slots = 256;
/// Logits of a wave: together with the rest of its scratch they stay in the L2 cache of an A100
/// (40 MB) or H100 (50 MB). One request of the Qwen3-8B shape (36 layers, 8 KV heads, G = 4) with
/// 4096 slots takes 36 MiB.
inline constexpr std::int64_t usual_wave_bytes = std::int64_t{40} << 20;
/// Window queries that meet the keys in one read.
inline constexpr std::int32_t window_queries = 32;

/// Softmax over a part of a row: its largest logit and Σ exp(logit − max).
struct PartialSoftmax {
  float max;
  float sum;
};

/// A row's softmax, twice. Demand: over the candidates, weights relative to their maximum. Scores:
/// over all used slots, with the same exponentials of the candidates and those of the later slots
/// relative to the maximum of all.
struct Normaliser {
  float candidate_max;
  float max;
  float demand_factor;     ///< 1 / (G · Σ over the candidates)
  float candidate_factor;  ///< makes a candidate's weight its share of all used slots
  float later_factor;      ///< the same for a later slot
};

/// Pointers into the workspace. `task` counts the (request, layer, KV head) of one wave.
struct BoundaryScratch {
  double* rope;             ///< [request, lag, rotary_dim] cosines, then sines
  std::byte* queries;       ///< [task, query_rows, query_bytes] as the logit kernels want them
  float* query_scales;      ///< [task, query_rows] factor of a query's products
  float* logits;            ///< [task, query_rows, row]
  PartialSoftmax* parts;    ///< [task, query_rows, chunks, 2] candidates, later slots
  Normaliser* normalisers;  ///< [task, query_rows]
  float* window_scores;     ///< [task, row]
  float* similarity;        ///< [task, row] redundancy: inverse norms, then logits
  double* directions;       ///< [task, chunks, head_dim] redundancy: Σ of a chunk's unit keys
  PartialSoftmax* similarity_parts;  ///< [task, chunks]
  std::int64_t row;                  ///< max_slots rounded up
  std::int64_t query_bytes;
  std::int32_t query_rows;
  std::int32_t padded_dim;  ///< head_dim rounded up to 32
  std::int32_t chunks;
  std::int32_t lags;
};

/// How a workspace is divided; the same from the same arguments on every call.
class BoundaryLayout {
 public:
  /// `lags` is the window's size, or 1.
  BoundaryLayout(const CacheShape& shape, std::int64_t requests, std::int32_t max_slots,
                 std::int32_t lags, bool window, std::int64_t wave_bytes) noexcept
      : shape_(shape), requests_(requests) {
    const std::int32_t group = shape.group();
    scratch_.row = round_up(std::max(max_slots, 1), 32);
    scratch_.padded_dim = static_cast<std::int32_t>(round_up(shape.head_dim, 32));
    scratch_.query_bytes = std::int64_t{scratch_.padded_dim} * 4;
    scratch_.query_rows = window ? std::max(2 * group, window_queries / group * group) : 2 * group;
    scratch_.chunks = static_cast<std::int32_t>((scratch_.row + chunk_slots - 1) / chunk_slots);
    scratch_.lags = std::max(lags, 1);
    const std::int64_t tasks = requests * shape.layers * shape.kv_heads;
    const std::int64_t fit = wave_bytes / (scratch_.query_rows * scratch_.row * 4);
    constexpr std::int64_t grid_rows = 65535;
    tasks_ =
        std::clamp(fit, std::int64_t{1}, std::max(std::min(tasks, grid_rows), std::int64_t{1}));
  }

  /// (request, layer, KV head) of one wave.
  [[nodiscard]] std::int64_t tasks() const noexcept { return tasks_; }

  [[nodiscard]] std::int64_t bytes() const noexcept {
    BoundaryScratch scratch = scratch_;
    return divide(scratch, nullptr);
  }
  [[nodiscard]] BoundaryScratch at(void* workspace) const noexcept {
    BoundaryScratch scratch = scratch_;
    divide(scratch, static_cast<std::byte*>(workspace));
    return scratch;
  }

 private:
  [[nodiscard]] static constexpr std::int64_t round_up(std::int64_t value,
                                                       std::int64_t multiple) noexcept {
    return (value + multiple - 1) / multiple * multiple;
  }

  /// Sets the pointers, unless `base` is null; the bytes up to the last part's end.
  std::int64_t divide(BoundaryScratch& s, std::byte* base) const noexcept {
    std::int64_t used = 0;
    const auto part = [&]<class T>(T*& pointer, std::int64_t count) {
      if (base != nullptr) pointer = reinterpret_cast<T*>(base + used);
      used += round_up(count * static_cast<std::int64_t>(sizeof(T)), 256);
    };
    const std::int64_t query_rows = tasks_ * s.query_rows;
    part(s.rope, requests_ * s.lags * shape_.head_dim);
    part(s.queries, query_rows * s.query_bytes);
    part(s.query_scales, query_rows);
    part(s.logits, query_rows * s.row);
    part(s.parts, query_rows * s.chunks * 2);
    part(s.normalisers, query_rows);
    part(s.window_scores, tasks_ * s.row);
    part(s.similarity, tasks_ * s.row);
    part(s.directions, tasks_ * s.chunks * shape_.head_dim);
    part(s.similarity_parts, tasks_ * s.chunks);
    return used;
  }

  CacheShape shape_;
  std::int64_t requests_;
  std::int64_t tasks_ = 1;
  BoundaryScratch scratch_{};
};

}  // namespace growpage::cuda
