// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "growpage/core/cache_shape.hpp"
#include "growpage/detail/cpu_kernels.hpp"

namespace growpage::detail {

[[nodiscard]] constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

/// How the CPU backend divides its workspace: a part that all workers share, then one equal part a
/// worker. Every size grows with `slots`, so a workspace for max_slots serves fewer.
class CpuWorkspace {
 public:
  CpuWorkspace(const CacheShape& shape, std::int64_t slots, void* memory) noexcept
      : base_(static_cast<std::byte*>(memory)),
        group_rows_(std::max(2 * shape.group(), 32)),
        dim_(round_up(std::max(shape.head_dim, shape.v_dim()), 16)),
        row_(round_up(slots, 16) + 16),
        rope_rows_(std::min(shape.page_size, 4096)),
        terms_(std::int64_t{shape.layers} * shape.kv_heads * 2) {
    accumulators_ = round_up(std::int64_t{shape.group()} * dim_ * 8, 64);
    shared_ = round_up(rope_rows_ * dim_ * 8, 64) + round_up(terms_ * 8, 64);
    worker_ = (group_rows_ + 3) * row_ * 4 + round_up(std::int64_t{group_rows_} * 3 * 4, 64) +
              queries_bytes() * 2 + tile_rows * dim_ * 4 + accumulators_;
    worker_ = round_up(worker_, 64) + 64;
  }

  /// 64 bytes are added so that any pointer can be aligned up.
  [[nodiscard]] std::int64_t bytes(std::int32_t workers) const noexcept {
    return shared_ + worker_ * std::max(workers, 1) + 64;
  }

  /// Logit rows a worker has room for: at least 2·G.
  [[nodiscard]] std::int32_t rows() const noexcept { return group_rows_; }
  /// Elements from one logit row to the next: the slots and at least one vector more.
  [[nodiscard]] std::int64_t row_stride() const noexcept { return row_; }
  /// Elements from one query to the next: head_dim rounded up.
  [[nodiscard]] std::int64_t dim_stride() const noexcept { return dim_; }

  /// [position, dim_stride]: cos and sin, halves of a row. Shared by all workers, read only there.
  [[nodiscard]] double* rope() const noexcept { return reinterpret_cast<double*>(aligned()); }
  /// [layer, kv_head, 2]: the demand terms, so that their sum does not depend on the workers.
  [[nodiscard]] double* terms() const noexcept {
    return reinterpret_cast<double*>(aligned() + round_up(rope_rows_ * dim_ * 8, 64));
  }

  /// One worker's part.
  struct Worker {
    float* rows;           ///< [rows(), row_stride]
    float* extra[3];       ///< [row_stride] each
    float* coefficient;    ///< [3, rows()]
    float* queries;        ///< [rows(), dim_stride]
    void* packed;          ///< packed queries
    float* tile;           ///< [tile_rows, dim_stride]
    double* accumulators;  ///< [group, dim_stride]
  };
  [[nodiscard]] Worker worker(std::int32_t index) const noexcept {
    std::byte* at = aligned() + shared_ + worker_ * index;
    const auto next = [&at](std::int64_t size) {
      std::byte* part = at;
      at += round_up(size, 64);
      return part;
    };
    Worker w;
    w.rows = reinterpret_cast<float*>(next(group_rows_ * row_ * 4));
    for (float*& extra : w.extra) extra = reinterpret_cast<float*>(next(row_ * 4));
    w.coefficient = reinterpret_cast<float*>(next(std::int64_t{group_rows_} * 3 * 4));
    w.queries = reinterpret_cast<float*>(next(queries_bytes()));
    w.packed = next(queries_bytes());
    w.tile = reinterpret_cast<float*>(next(tile_rows * dim_ * 4));
    w.accumulators = reinterpret_cast<double*>(next(accumulators_));
    return w;
  }

 private:
  [[nodiscard]] std::int64_t queries_bytes() const noexcept {
    return round_up(group_rows_, query_block) * dim_ * 4;
  }
  [[nodiscard]] std::byte* aligned() const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(base_);
    return base_ + ((64 - address % 64) % 64);
  }

  std::byte* base_;
  std::int32_t group_rows_;
  std::int64_t dim_;
  std::int64_t row_;
  std::int64_t rope_rows_;
  std::int64_t terms_;
  std::int64_t accumulators_ = 0;
  std::int64_t shared_ = 0;
  std::int64_t worker_ = 0;
};

}  // namespace growpage::detail
