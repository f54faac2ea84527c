// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "growpage/core/executor.hpp"

namespace growpage::runtime {

/// A weight matrix, f32, `[out, in]`, as checkpoints store it.
struct Matrix {
  std::int64_t out = 0;
  std::int64_t in = 0;
  std::vector<float> data;

  Matrix() = default;
  Matrix(std::int64_t rows, std::int64_t columns)
      : out(rows), in(columns), data(static_cast<std::size_t>(rows * columns)) {}
  [[nodiscard]] const float* row(std::int64_t r) const noexcept { return data.data() + r * in; }
  [[nodiscard]] float* row(std::int64_t r) noexcept { return data.data() + r * in; }
};

/// Tokens a BLAS call takes. Every call has this many, the last one of a batch padded: a BLAS picks
/// other kernels, with other roundings, for other shapes, and a request's text must not depend on
/// who else is in the batch. 16 tokens are the lanes of whole vectors in every kernel there is, so
/// that a token's place among them does not matter either (tests/runtime checks it).
inline constexpr std::int64_t matmul_tile = 16;

[[nodiscard]] constexpr std::int64_t padded_rows(std::int64_t rows) noexcept {
  return (rows + matmul_tile - 1) / matmul_tile * matmul_tile;
}

/// y = x·wᵀ for `rows` tokens, through BLAS, on the executor's threads. The result of a token
/// depends on its own row of x only: not on `rows`, its index, or the number of threads. x
/// `[padded_rows(rows), in]`, whatever finite values behind `rows`; y `[rows, out]`.
void matmul(const Executor& executor, const Matrix& w, const float* x, std::int64_t rows, float* y);

}  // namespace growpage::runtime
