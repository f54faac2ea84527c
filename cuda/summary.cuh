// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/cuda/summary.hpp"
#include "numeric.cuh"
#include "simt.cuh"
#include "staging.cuh"
#include "warp.cuh"

namespace growpage::cuda {

/// The finaliser of splitmix64, as in the CPU backend: equal seeds give equal roundings.
[[nodiscard]] __device__ inline std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Bits of one of the two neighbouring halves, with probabilities that make the mean `value`; the
/// CPU backend's function of the same name, integer for integer.
[[nodiscard]] __device__ inline std::uint16_t round_stochastic(float value, std::uint32_t random) {
  const std::uint32_t bits = __float_as_uint(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude >= 0x7f800000U) {  // infinities and NaN stay
    half = magnitude == 0x7f800000U ? 0x7c00U : 0x7e00U;
  } else if (magnitude >= 0x38800000U) {  // normal halves: 13 bits are lost
    const std::uint32_t rounded = ((magnitude + (random & 0x1fffU)) >> 13) - 0x1c000U;
    half = rounded < 0x7bffU ? rounded : 0x7bffU;
  } else {  // subnormal halves: multiples of 2^-24
    const float units = __uint_as_float(magnitude) * 0x1p24F;
    const float whole = floorf(units);
    const float chance = static_cast<float>(random >> 8) * 0x1p-24F;
    half = static_cast<std::uint32_t>(whole) + (chance < units - whole ? 1U : 0U);
  }
  return static_cast<std::uint16_t>(sign | half);
}

/// `n` consecutive elements in one access.
template <class T, int n>
struct alignas(sizeof(T) * n) Pack {
  T at[n];
};

/// How a summary is stored: the element type and its rounding.
struct FloatSummary {
  using Element = float;
  [[nodiscard]] static __device__ Element round(float value, std::uint32_t /*random*/) {
    return value;
  }
};
struct HalfSummary {
  using Element = __half;
  [[nodiscard]] static __device__ Element round(float value, std::uint32_t random) {
    return __ushort_as_half(round_stochastic(value, random));
  }
};

/// One decode step of one (layer, slot). For engines that have the queries in registers: every
/// thread makes one from the same values and gives its elements to `update`; each element of each
/// head is given once. The sum of what `update` returned for a head, over all its elements, goes to
/// `finish`, once. `step` is `state.steps[row]`, or 0 with `first`; after a barrier that all
/// readers of it have passed, `state.steps[row]` becomes step + 1, once. `options` are as in
/// SummaryBatch.
///
/// Double arithmetic makes the products here exact, so that neither the order of the operations nor
/// fused multiply-adds show: the state equals the CPU backend's. It costs about ten double
/// operations for 18 bytes moved: by estimate, not measured, little beside the memory on sm_80,
/// sm_90 and sm_100, and about as long on sm_89, where double has 1/64 of the rate.
template <class Storage>
class SummaryStep {
 public:
  using Element = typename Storage::Element;

  __device__ SummaryStep(const SummaryView& state, const SummaryOptions& options,
                         std::int32_t layer, std::int32_t slot, bool first, std::int64_t step)
      : head_dim_(state.head_dim), first_(first) {
    const std::int64_t query = std::int64_t{state.query_heads} * state.head_dim;
    const std::int64_t row = std::int64_t{layer} * state.slots + slot;
    index_ = row * 2 * query;
    short_ = static_cast<Element*>(state.summaries) + index_;
    long_ = short_ + query;
    if (state.window != nullptr && state.window_size > 0) {
      window_ = state.window + (row * state.window_size + step % state.window_size) * query;
    }
    rms_ = state.query_rms + row * state.query_heads;
    beta_short_ = options.beta_short;
    beta_long_ = options.beta_long;
    key_ = mix64(options.seed ^ mix64(static_cast<std::uint64_t>(step)));
  }

  /// Takes elements [at, at + n) of head `head` of the query after q-norm and before RoPE, and
  /// returns Σ q². `at` is a multiple of n, and so is head_dim.
  template <int n>
  [[nodiscard]] __device__ double update(std::int32_t head, std::int32_t at,
                                         const float (&q)[n]) const {
    using Elements = Pack<Element, n>;
    const std::int64_t offset = std::int64_t{head} * head_dim_ + at;
    auto* const short_at = reinterpret_cast<Elements*>(short_ + offset);
    auto* const long_at = reinterpret_cast<Elements*>(long_ + offset);
    Elements old_short{};
    Elements old_long{};
    if (!first_) {
      old_short = *short_at;
      old_long = *long_at;
    }
    double squares = 0;
    Pack<float, n> window;
    for (int i = 0; i < n; ++i) {
      const double query = q[i];
      squares = fma(query, query, squares);
      const float s = first_ ? q[i] : ema(beta_short_, to_float(old_short.at[i]), query);
      const float l = first_ ? q[i] : ema(beta_long_, to_float(old_long.at[i]), query);
      std::uint64_t random = 0;
      if constexpr (sizeof(Element) == 2) {
        random = mix64(key_ ^ static_cast<std::uint64_t>(index_ + offset + i));
      }
      old_short.at[i] = Storage::round(s, static_cast<std::uint32_t>(random));
      old_long.at[i] = Storage::round(l, static_cast<std::uint32_t>(random >> 32));
      window.at[i] = q[i];
    }
    *short_at = old_short;
    *long_at = old_long;
    if (window_ != nullptr) *reinterpret_cast<Pack<float, n>*>(window_ + offset) = window;
    return squares;
  }

  __device__ void finish(std::int32_t head, double squares) const {
    rms_[head] = static_cast<float>(sqrt(squares / head_dim_));
  }

 private:
  [[nodiscard]] static __device__ float ema(double beta, float old, double query) {
    return static_cast<float>(fma(beta, static_cast<double>(old), (1.0 - beta) * query));
  }

  Element* short_;
  Element* long_;
  float* window_ = nullptr;
  float* rms_;
  std::int64_t index_;  // of the short row in the whole state: what the random bits depend on
  std::uint64_t key_;
  double beta_short_;
  double beta_long_;
  std::int32_t head_dim_;
  bool first_;
};

inline constexpr int summary_threads = 256;

/// One CTA per (request, layer): the heads share a step counter, which all threads read before one
/// advances it. A warp per head, n elements a lane. Moves, per element: q once, the state in and
/// out.
template <class Query, class Storage, int n>
__device__ inline void update_summaries(const SummaryBatch& batch, SummaryEntry entry) {
  const SummaryView& state = batch.state;
  const auto request = static_cast<std::int64_t>(blockIdx.x);
  const auto layer = static_cast<std::int32_t>(blockIdx.y);
  if (entry.slot < 0) return;
  const std::int32_t state_layer = batch.first_layer + layer;
  std::int64_t* const steps = state.steps + (std::int64_t{state_layer} * state.slots + entry.slot);
  const bool first = entry.first != 0;
  const std::int64_t step = first ? 0 : *steps;
  __syncthreads();
  if (threadIdx.x == 0) *steps = step + 1;

  const SummaryStep<Storage> summary(state, batch.options, state_layer, entry.slot, first, step);
  const auto* const q = static_cast<const Query*>(batch.q) + layer * batch.q_layer_stride +
                        request * batch.q_request_stride;
  for (std::int32_t head = warp_id(); head < state.query_heads;
       head += summary_threads / warp_lanes) {
    double squares = 0;
    for (std::int32_t at = lane_id() * n; at < state.head_dim; at += warp_lanes * n) {
      const auto stored =
          *reinterpret_cast<const Pack<Query, n>*>(q + head * batch.q_head_stride + at);
      float wide[n];
      for (int i = 0; i < n; ++i) wide[i] = to_float(stored.at[i]);
      squares += summary.update(head, at, wide);
    }
    squares = warp_sum(squares);
    if (lane_id() == 0) summary.finish(head, squares);
  }
}

template <class Query, class Storage, int n>
__global__ void __launch_bounds__(summary_threads) summary_kernel(SummaryBatch batch) {
  update_summaries<Query, Storage, n>(batch, batch.entries[blockIdx.x]);
}

/// The same with the entries by value.
template <class Query, class Storage, int n>
__global__ void __launch_bounds__(summary_threads)
    summary_listed_kernel(SummaryBatch batch,
                          const __grid_constant__ ParameterList<SummaryEntry> entries) {
  update_summaries<Query, Storage, n>(batch, entries.at[blockIdx.x]);
}

}  // namespace growpage::cuda
