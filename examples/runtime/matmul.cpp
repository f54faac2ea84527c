// SPDX-License-Identifier: Apache-2.0
#include "matmul.hpp"

#include <cblas.h>

#include <algorithm>

namespace growpage::runtime {
namespace {

// Output features a task computes. Fixed, not out / threads: see matmul_tile.
constexpr std::int64_t block = 256;

/// The pool's threads are the parallelism; OpenBLAS's own would wait for work beside them.
void use_one_blas_thread() {
  static const bool once = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  (void)once;
}

}  // namespace

void matmul(const Executor& executor, const Matrix& w, const float* x, std::int64_t rows,
            float* y) {
  if (rows == 0) return;
  use_one_blas_thread();
  const auto in = static_cast<blasint>(w.in);
  constexpr auto tile = static_cast<blasint>(matmul_tile);
  executor.for_each((w.out + block - 1) / block, [&](std::int64_t task, std::int32_t) {
    const std::int64_t first = task * block;
    const std::int64_t features = std::min(block, w.out - first);
    // [feature, token]: tokens lie in vector lanes. The block of weights stays in the L2 cache for
    // the tiles that follow.
    alignas(64) float result[block * matmul_tile];
    for (std::int64_t t = 0; t < rows; t += matmul_tile) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<blasint>(features), tile, in,
                  1.0F, w.row(first), in, x + t * w.in, in, 0.0F, result, tile);
      for (std::int64_t i = 0; i < std::min(matmul_tile, rows - t); ++i) {
        float* to = y + (t + i) * w.out + first;
        for (std::int64_t f = 0; f < features; ++f) to[f] = result[f * matmul_tile + i];
      }
    }
  });
}

}  // namespace growpage::runtime
