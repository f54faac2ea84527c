// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "growpage/core/dtype.hpp"

namespace growpage::detail {

/// Rows of one K page and head: row t starts `t · token_stride` elements after `rows`.
struct KRows {
  const void* rows = nullptr;
  std::int64_t token_stride = 0;
  std::int32_t tokens = 0;     ///< rows that may be read
  std::int32_t dim = 0;        ///< contiguous elements of a row
  const void* next = nullptr;  ///< rows that will be read after these, a prefetch hint; null = none
};

/// Sum and number of the weights at or above a threshold.
struct Mass {
  double sum = 0;
  std::int64_t count = 0;
};

/// Smallest and largest key of a row of scores.
struct KeyRange {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

/// A row on its way to another place.
struct RowCopy {
  const char* from = nullptr;
  char* to = nullptr;
};

/// One step of the summaries of one (layer, request): all its heads. Arrays are [heads, dim],
/// summaries in their storage type.
struct SummaryRow {
  const void* q = nullptr;  ///< head h begins h · q_head_stride elements after it
  void* short_summary = nullptr;
  void* long_summary = nullptr;
  float* window = nullptr;  ///< where the query is kept besides; null = nowhere
  float* rms = nullptr;     ///< [heads]
  std::int64_t q_head_stride = 0;
  std::int32_t heads = 0;
  std::int32_t dim = 0;
  float beta_short = 0;
  float beta_long = 0;
  bool first = false;  ///< the summaries become the query, whatever they held
  /// Element i is rounded with splitmix64(key ^ (index + i)): the low half of it the short summary,
  /// the high half the long one. Seed, step and element alone, so equal runs give equal states.
  std::uint64_t key = 0;
  std::uint64_t index = 0;
};

/// A weight whose logit is further than this below the largest is 0 in every form, so that counts
/// of positive weights do not depend on how a form treats subnormal numbers.
inline constexpr float exp_floor = -87.0F;

/// Queries in a block of packed queries; every form pads to a multiple of it.
inline constexpr std::int32_t query_block = 8;
/// Rows a dot kernel may widen at once into its `tile`.
inline constexpr std::int32_t tile_rows = 16;

/// Index into `pack` and `dot` for bf16 keys times queries whose values are bf16 numbers.
inline constexpr std::int32_t bf16_queries = 3;

/// The hot row-level kernels of the CPU backend: what exists twice, as the scalar oracle and in
/// SIMD. Everything around them is shared. None allocates. Tables are indexed by DType.
///
/// Float arrays of `n` elements that only the workspace holds (logits, weights, coefficients times
/// rows) are padded: a kernel may read, and where it writes a separate `out` also write, up to 15
/// elements past n. Keys, values, queries, summaries and scores are touched exactly.
struct CpuKernels {
  const char* name;

  /// Rearranges q [queries, q_stride] into what `dot` of the same index reads. `packed` holds
  /// `queries` rounded up to `query_block` rows of `dim` rounded up to 2 floats.
  void (*pack[4])(const float* q, std::int64_t q_stride, std::int32_t queries, std::int32_t dim,
                  void* packed);
  /// out[j · out_stride + t] = q_j · k_t for every query j and row t. `tile` [tile_rows, padded
  /// dim] is scratch. Index: the DType of the keys, or `bf16_queries`.
  void (*dot[4])(const KRows& k, const void* packed, std::int32_t queries, float* out,
                 std::int64_t out_stride, float* tile);
  /// out[i] = row[i] as float.
  void (*widen[3])(const void* row, std::int64_t n, float* out);

  /// x ← scale · x with NaN → −inf, +inf → the largest float; the largest, −inf when n = 0.
  float (*sanitize_max)(float* x, std::int64_t n, float scale);
  /// x ← exp(x − max), 0 below `exp_floor`; the sum. `max` is finite and ≥ every x.
  double (*exp_sum)(float* x, std::int64_t n, float max);
  /// out[i] = Σ_j coefficient[j] · rows[j · stride + i].
  void (*mix)(const float* rows, std::int64_t stride, const float* coefficient, std::int32_t count,
              std::int64_t n, float* out);
  /// out[i] = max_j coefficient[j] · rows[j · stride + i]; values and coefficients ≥ 0.
  void (*max_scaled)(const float* rows, std::int64_t stride, const float* coefficient,
                     std::int32_t count, std::int64_t n, float* out);
  Mass (*mass_at_least)(const float* w, std::int64_t n, float threshold);
  /// The values in [low, high), in any order; `out` has room for n and one vector more; it may be
  /// w.
  std::int64_t (*gather)(const float* w, std::int64_t n, float low, float high, float* out);
  /// Σ w·ln w over the positive w.
  double (*sum_w_log_w)(const float* w, std::int64_t n);

  /// Both EMAs in place, s ← β·s + (1 − β)·q (β = 0 gives q itself), the RMS of every head's query
  /// and its copy in the window. Index: the storage (f32, f16 rounded stochastically: equal bits in
  /// every form), the DType of the query.
  void (*update_summary[2][3])(const SummaryRow& row);
  double (*sum_squares)(const float* x, std::int64_t n);

  /// Integer keys in the order of the scores: equal scores (−0 and 0 too) have equal keys, NaN the
  /// lowest, none is 0.
  KeyRange (*order_keys)(const float* scores, std::int64_t n, std::uint32_t* keys);
  /// threshold ≥ 1.
  std::int64_t (*count_at_least)(const std::uint32_t* keys, std::int64_t n,
                                 std::uint32_t threshold);
  /// Sets bit first + i of `bits` and clears keys[i] for every key above `threshold` and for the
  /// first `ties` keys equal to it. `first` is a multiple of 16.
  void (*take)(std::uint32_t* keys, std::int64_t n, std::uint32_t threshold, std::int64_t ties,
               std::uint64_t* bits, std::int64_t first);

  /// Copies `count` rows of `bytes`, one after the other: a row may come from where an earlier one
  /// went. Rows do not overlap in part. For rows that are not soon read again.
  void (*copy_rows)(const RowCopy* rows, std::int64_t count, std::size_t bytes);
};

#ifndef GROWPAGE_HEADER_ONLY
/// The kernels of the best SIMD target of this machine (src/cpu_simd.cpp).
const CpuKernels& simd_kernels() noexcept;
/// Replaces the dot entries by those of AVX-512 where this machine has it (src/cpu_avx512.cpp);
/// whether that includes AVX512-BF16.
bool use_avx512(CpuKernels& kernels) noexcept;
#endif

}  // namespace growpage::detail
