// SPDX-License-Identifier: Apache-2.0
// Query summaries.
#if defined(GROWPAGE_CPU_SIMD_SUMMARY_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GROWPAGE_CPU_SIMD_SUMMARY_INL
#undef GROWPAGE_CPU_SIMD_SUMMARY_INL
#else
#define GROWPAGE_CPU_SIMD_SUMMARY_INL
#endif

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cpu_simd_summary_f16-inl.hpp"
#include "cpu_simd_vectors-inl.hpp"
#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/cpu_scalar.hpp"
#include "growpage/detail/cpu_scalar_summary.hpp"

HWY_BEFORE_NAMESPACE();
namespace growpage::detail::HWY_NAMESPACE {
#if GROWPAGE_CPU_HAS_VECTORS

inline double sum_squares(const float* x, std::int64_t n) {
  VecF64 sum0 = hn::Zero(F64());
  VecF64 sum1 = hn::Zero(F64());
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VecF32 v = hn::LoadU(F32(), x + i);
    const VecF64 low = hn::PromoteTo(F64(), hn::LowerHalf(F32Half(), v));
    const VecF64 high = hn::PromoteTo(F64(), hn::UpperHalf(F32Half(), v));
    sum0 = hn::MulAdd(low, low, sum0);
    sum1 = hn::MulAdd(high, high, sum1);
  }
  return total(hn::Add(sum0, sum1)) + scalar::sum_squares(x + i, n - i);
}

/// One of the summaries of a row, stored as floats. Float arithmetic: the oracle's rounding is not
/// reproduced.
class FloatSummary {
 public:
  HWY_INLINE FloatSummary(void* summary, float beta)
      : summary_(static_cast<float*>(summary)),
        old_(hn::Set(F32(), beta)),
        new_(hn::Set(F32(), static_cast<float>(1.0 - double{beta}))) {}

  template <bool first>
  HWY_INLINE void update(VecF32 q, std::int64_t at) const {
    const F32 tag;
    float* const to = summary_ + at;
    hn::StoreU(first ? q : hn::MulAdd(old_, hn::LoadU(tag, to), hn::Mul(new_, q)), tag, to);
  }

 private:
  float* summary_;
  VecF32 old_, new_;
};

template <DType query>
using Query = std::conditional_t<query == DType::f32, float,
                                 std::conditional_t<query == DType::f16, Float16, BFloat16>>;

/// Vectors whose squares are added up in float before they go on in double: too few to matter.
inline constexpr std::int64_t float_run = 16;

/// Gives the whole vectors of one head to `summaries` and to `window`, unless null; the sum of
/// their squares.
template <DType query, bool first, class Summaries>
HWY_INLINE double update_vectors(const SummaryRow& row, const Summaries& summaries, float* window,
                                 std::int32_t head) {
  const std::int64_t begin = std::int64_t{head} * row.dim;
  const auto* const q = static_cast<const Query<query>*>(row.q) + head * row.q_head_stride;
  VecF64 squares = hn::Zero(F64());
  for (std::int64_t i = 0; i + lanes <= row.dim;) {
    const std::int64_t end = HWY_MIN(std::int64_t{row.dim}, i + float_run * lanes);
    VecF32 run = hn::Zero(F32());
    for (; i + lanes <= end; i += lanes) {
      const VecF32 x = load_wide(q + i);
      run = hn::MulAdd(x, x, run);
      summaries.template update<first>(x, begin + i);
      if (window != nullptr) hn::StoreU(x, F32(), window + begin + i);
    }
    squares = add_wide(squares, run);
  }
  return total(squares);
}

template <DType query, DType stored, bool first, class Summaries>
HWY_INLINE void update_heads(const SummaryRow& row, const Summaries& summaries) {
  const std::int32_t whole = row.dim - row.dim % static_cast<std::int32_t>(lanes);
  for (std::int32_t head = 0; head < row.heads; ++head) {
    double squares = update_vectors<query, first>(row, summaries, row.window, head);
    if (whole < row.dim) squares += scalar::update_elements<query, stored>(row, head, whole);
    // Squares may leave float's range where their root does not.
    if (!(squares > 0x1p-100 && squares <= double{std::numeric_limits<float>::max()})) {
      squares = scalar::query_squares<query>(row, head);
    }
    row.rms[head] = static_cast<float>(std::sqrt(squares / row.dim));
  }
}

template <DType query, DType stored, bool first>
HWY_INLINE void update_row(const SummaryRow& row) {
  if constexpr (stored == DType::f16) {
    update_heads<query, stored, first>(row, HalfSummaries(row));
  } else {
    // One summary after the other: they follow each other in memory, and a single stream is fetched
    // ahead better than two. The query stays in the cache.
    update_heads<query, stored, first>(row, FloatSummary(row.short_summary, row.beta_short));
    const FloatSummary long_summary(row.long_summary, row.beta_long);
    for (std::int32_t head = 0; head < row.heads; ++head) {
      update_vectors<query, first>(row, long_summary, nullptr, head);
    }
  }
}

template <DType query, DType stored>
void update_summary(const SummaryRow& row) {
  if (row.first) {
    update_row<query, stored, true>(row);
  } else {
    update_row<query, stored, false>(row);
  }
}

#endif
}  // namespace growpage::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
