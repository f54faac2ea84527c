// SPDX-License-Identifier: Apache-2.0
// Vectors of unknown length (SVE, RVV) cannot be lanes of head_dim; SSSE3 adds nothing to SSE4.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3)
#include "attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention.cpp"
#include <hwy/foreach_target.h>
// clang-format off: foreach_target comes first
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace growpage::runtime::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::CappedTag<float, 16>;
using Vec = hn::VFromD<F32>;

// Logits of a query for `count` rows. Four rows at a time, each with its own sum: the sum of a row
// is the same one alone.
void multiply(const float* q, const float* rows, std::int64_t stride, std::int32_t count,
              std::int32_t dim, float scale, float* out) {
  const F32 d;
  const auto lanes = static_cast<std::int32_t>(hn::Lanes(d));
  std::int32_t s = 0;
  for (; s + 4 <= count; s += 4) {
    const float* row = rows + s * stride;
    Vec a = hn::Zero(d), b = a, c = a, e = a;
    for (std::int32_t i = 0; i < dim; i += lanes) {
      const Vec x = hn::LoadU(d, q + i);
      a = hn::MulAdd(x, hn::LoadU(d, row + i), a);
      b = hn::MulAdd(x, hn::LoadU(d, row + stride + i), b);
      c = hn::MulAdd(x, hn::LoadU(d, row + stride * 2 + i), c);
      e = hn::MulAdd(x, hn::LoadU(d, row + stride * 3 + i), e);
    }
    out[s] = scale * hn::GetLane(hn::SumOfLanes(d, a));
    out[s + 1] = scale * hn::GetLane(hn::SumOfLanes(d, b));
    out[s + 2] = scale * hn::GetLane(hn::SumOfLanes(d, c));
    out[s + 3] = scale * hn::GetLane(hn::SumOfLanes(d, e));
  }
  for (; s < count; ++s) {
    Vec a = hn::Zero(d);
    for (std::int32_t i = 0; i < dim; i += lanes) {
      a = hn::MulAdd(hn::LoadU(d, q + i), hn::LoadU(d, rows + s * stride + i), a);
    }
    out[s] = scale * hn::GetLane(hn::SumOfLanes(d, a));
  }
}

// Logits to weights e^(x − max), in place; their sum. Writes up to 15 elements behind the row.
float exponentiate(float* x, std::int32_t n) {
  const F32 d;
  const auto lanes = static_cast<std::int32_t>(hn::Lanes(d));
  std::fill(x + n, x + (std::int64_t{n} + 15) / 16 * 16, -std::numeric_limits<float>::infinity());
  Vec largest = hn::LoadU(d, x);
  for (std::int32_t i = lanes; i < n; i += lanes) largest = hn::Max(largest, hn::LoadU(d, x + i));
  largest = hn::MaxOfLanes(d, largest);
  Vec sum = hn::Zero(d);
  for (std::int32_t i = 0; i < n; i += lanes) {
    const Vec weight = hn::Exp(d, hn::Sub(hn::LoadU(d, x + i), largest));
    hn::StoreU(weight, d, x + i);
    sum = hn::Add(sum, weight);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// out += Σ weight · row, row after row.
template <int vectors>
void add_columns(const float* weights, const float* rows, std::int64_t stride, std::int32_t count,
                 float* out) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  Vec sums[vectors];
  for (int j = 0; j < vectors; ++j) sums[j] = hn::LoadU(d, out + j * lanes);
  for (std::int32_t s = 0; s < count; ++s) {
    const Vec weight = hn::Set(d, weights[s]);
    for (int j = 0; j < vectors; ++j) {
      sums[j] = hn::MulAdd(weight, hn::LoadU(d, rows + s * stride + j * lanes), sums[j]);
    }
  }
  for (int j = 0; j < vectors; ++j) hn::StoreU(sums[j], d, out + j * lanes);
}

void add_weighted(const float* weights, const float* rows, std::int64_t stride, std::int32_t count,
                  std::int32_t dim, float* out) {
  const auto lanes = static_cast<std::int32_t>(hn::Lanes(F32()));
  std::int32_t i = 0;
  for (; i + 4 * lanes <= dim; i += 4 * lanes) {
    add_columns<4>(weights, rows + i, stride, count, out + i);
  }
  for (; i < dim; i += lanes) add_columns<1>(weights, rows + i, stride, count, out + i);
}

// The rows as float: where they lie, or in `tile`.
const float* widen(const void* rows, DType dtype, std::int64_t stride, std::int32_t count,
                   std::int32_t dim, float* tile) {
  if (dtype == DType::f32) return static_cast<const float*>(rows);
  for (std::int32_t s = 0; s < count; ++s) {
    for (std::int32_t i = 0; i < dim; ++i) {
      tile[std::int64_t{s} * dim + i] = load_element(rows, dtype, s * stride + i);
    }
  }
  return tile;
}

// Queries that share a pass over K and V: their weights have to stay in the cache.
constexpr std::int32_t pass_queries = 16;

void attend(const HeadAttention& a, AttentionScratch& scratch) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(a.head_dim));
  const std::int32_t pass = std::max(1, pass_queries / a.group);
  const std::int64_t queries = std::int64_t{pass} * a.group;
  const std::int64_t row = (std::int64_t{a.first_length} + a.tokens + 15) / 16 * 16;
  scratch.weights.resize(static_cast<std::size_t>(queries * row));
  scratch.scales.resize(static_cast<std::size_t>(queries));
  scratch.tile.resize(static_cast<std::size_t>(std::int64_t{a.block_size} * a.head_dim));
  const bool direct = a.dtype == DType::f32;
  const std::int64_t k_stride = direct ? a.k_stride : a.head_dim;
  const std::int64_t v_stride = direct ? a.v_stride : a.head_dim;

  for (std::int32_t first = 0; first < a.tokens; first += pass) {
    const std::int32_t tokens = std::min(pass, a.tokens - first);
    const auto length = [&](std::int32_t t) { return a.first_length + first + t; };
    const auto query = [&](std::int32_t t, std::int32_t g) {
      return (first + t) * a.token_stride + std::int64_t{g} * a.head_dim;
    };
    const auto weights = [&](std::int32_t t, std::int32_t g) {
      return scratch.weights.data() + (std::int64_t{t} * a.group + g) * row;
    };
    const auto scale_of = [&](std::int32_t t, std::int32_t g) -> float& {
      return scratch.scales[static_cast<std::size_t>(std::int64_t{t} * a.group + g)];
    };
    // Calls f(token, head of the group, first slot, slots, rows) for every block and each query
    // that sees some of it.
    const auto for_each_block = [&](const void* const* blocks, std::int64_t stride, auto&& f) {
      const std::int32_t longest = length(tokens - 1);
      for (std::int32_t slot = 0, b = 0; slot < longest; slot += a.block_size, ++b) {
        const std::int32_t count = std::min(a.block_size, longest - slot);
        const float* rows =
            widen(blocks[b], a.dtype, stride, count, a.head_dim, scratch.tile.data());
        for (std::int32_t t = 0; t < tokens; ++t) {
          const std::int32_t seen = std::min(count, length(t) - slot);
          for (std::int32_t g = 0; g < a.group && seen > 0; ++g) f(t, g, slot, seen, rows);
        }
      }
    };
    const auto for_each_query = [&](auto&& f) {
      for (std::int32_t t = 0; t < tokens; ++t) {
        for (std::int32_t g = 0; g < a.group; ++g) f(t, g);
      }
    };
    for_each_block(a.k, a.k_stride, [&](auto t, auto g, auto slot, auto seen, const float* rows) {
      multiply(a.q + query(t, g), rows, k_stride, seen, a.head_dim, scale, weights(t, g) + slot);
    });
    for_each_query([&](std::int32_t t, std::int32_t g) {
      scale_of(t, g) = 1.0F / exponentiate(weights(t, g), length(t));
      std::fill_n(a.out + query(t, g), a.head_dim, 0.0F);
    });
    for_each_block(a.v, a.v_stride, [&](auto t, auto g, auto slot, auto seen, const float* rows) {
      add_weighted(weights(t, g) + slot, rows, v_stride, seen, a.head_dim, a.out + query(t, g));
    });
    for_each_query([&](std::int32_t t, std::int32_t g) {
      float* out = a.out + query(t, g);
      for (std::int32_t i = 0; i < a.head_dim; ++i) out[i] *= scale_of(t, g);
    });
  }
}

}  // namespace growpage::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace growpage::runtime {

HWY_EXPORT(attend);

void attend(const HeadAttention& attention, AttentionScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(attend)(attention, scratch);
}

}  // namespace growpage::runtime
#endif
