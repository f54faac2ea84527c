// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "block.cuh"
#include "boundary_stage.cuh"
#include "numeric.cuh"
#include "simt.cuh"
#include "warp.cuh"

/// D_p and entropy of attention distributions (algorithm, section 2).
namespace growpage::cuda {

inline constexpr int spread_threads = block_threads;
inline constexpr int histogram_bins = 2048;

/// Weights by some bits of their own representation. The mass of a bin is exact: its weights share
/// the leading bits of their mantissa, so their sum is count · (those bits) + Σ (the rest), all
/// integers. 64-bit sums of two 32-bit atomics: shared memory has no fast 64-bit ones, and a carry
/// is rare.
struct WeightHistogram {
  unsigned count[histogram_bins];
  unsigned low[histogram_bins];
  unsigned high[histogram_bins];
};

/// The search's state, shared by the block.
struct WeightSearch {
  double target;    ///< mass that is still to be reached by weights below those above
  unsigned above;   ///< number of weights that are certainly counted
  unsigned prefix;  ///< leading bits of the smallest weight that is needed
  unsigned ties;    ///< weights with that prefix
  int reached;      ///< rank of the topmost bin that reaches the target
  int last;         ///< rank of the last bin that holds any
  BlockScratch<double> doubles;
  BlockScratch<unsigned> counts;
};

/// Value of `count` weights whose bits start with those of `key` and whose remaining bits sum to
/// `rest`.
__device__ __forceinline__ double mass_of(unsigned key, unsigned count, unsigned long long rest) {
  const unsigned exponent = key >> 23;
  const unsigned fraction = key & 0x7fffffU;
  const unsigned mantissa = exponent > 0 ? fraction | 0x800000U : fraction;
  const unsigned long long sum = static_cast<unsigned long long>(mantissa) * count + rest;
  return ldexp(static_cast<double>(sum), static_cast<int>(max(exponent, 1U)) - 150);
}

/// One digit of the search: among the weights whose bits above `shift + bits` equal the prefix,
/// finds the largest value of the next `bits` bits such that the weights from there on reach the
/// target. The first digit also sets the target, p · Σw.
template <int shift, int bits>
__device__ __forceinline__ void search_digit(const float* weights, std::int32_t count, float p,
                                             WeightHistogram& histogram, WeightSearch& search) {
  constexpr bool first_digit = shift + bits == 31;
  constexpr int bins = 1 << bits;
  constexpr int per_thread = bins / spread_threads;
  static_assert(bins <= histogram_bins && bins % spread_threads == 0);
  const auto thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < bins; i += spread_threads) {
    histogram.count[i] = 0;
    histogram.low[i] = 0;
    histogram.high[i] = 0;
  }
  if (thread == 0) {
    search.reached = bins;
    search.last = 0;
  }
  __syncthreads();
  const unsigned prefix = first_digit ? 0 : search.prefix;
  for (int i = thread; i < count; i += spread_threads) {
    const unsigned key = __float_as_uint(weights[i]);  // w ≥ 0: bits are in the order of values
    if (key == 0 || (!first_digit && key >> (shift + bits) != prefix)) continue;
    const unsigned bin = key >> shift & (bins - 1U);
    const unsigned rest = key & ((1U << shift) - 1U);
    atomicAdd(&histogram.count[bin], 1U);
    const unsigned before = atomicAdd(&histogram.low[bin], rest);
    if (before + rest < before) atomicAdd(&histogram.high[bin], 1U);
  }
  __syncthreads();

  // Ranks: 0 = the largest weights. A thread has `per_thread` neighbouring ranks.
  const auto key_of = [&](int rank) {
    return (prefix << bits | static_cast<unsigned>(bins - 1 - rank)) << shift;
  };
  const auto mass_at = [&](int rank) {
    const int bin = bins - 1 - rank;
    const unsigned long long rest =
        static_cast<unsigned long long>(histogram.high[bin]) << 32 | histogram.low[bin];
    return mass_of(key_of(rank), histogram.count[bin], rest);
  };
  double mass = 0;
  unsigned number = 0;
#pragma unroll 1  // few bins, and registers are dear: they decide how many CTAs fit
  for (int i = 0; i < per_thread; ++i) {
    mass += mass_at(thread * per_thread + i);
    number += histogram.count[bins - 1 - (thread * per_thread + i)];
  }
  const BlockScan<double> masses = block_scan(mass, search.doubles);
  const BlockScan<unsigned> numbers = block_scan(number, search.counts);
  if (first_digit && thread == 0) {
    search.target = static_cast<double>(p) * masses.total;
    search.above = 0;
    search.ties = numbers.total;
  }
  __syncthreads();
  if (numbers.total == 0) return;

  // Sums are rounded, so that in the extreme no bin reaches the target: then the last one does.
  const double target = search.target;
  double above = masses.before;
#pragma unroll 1
  for (int i = 0; i < per_thread; ++i) {
    const int rank = thread * per_thread + i;
    above += mass_at(rank);
    if (histogram.count[bins - 1 - rank] == 0) continue;
    atomicMax(&search.last, rank);
    if (above >= target) atomicMin(&search.reached, rank);
  }
  __syncthreads();
  const int chosen = min(search.reached, search.last);
  const int owner = chosen / per_thread;
  __syncthreads();
  if (thread == owner) {
    double mass_above = masses.before;
    unsigned number_above = numbers.before;
#pragma unroll 1
    for (int rank = owner * per_thread; rank < chosen; ++rank) {
      mass_above += mass_at(rank);
      number_above += histogram.count[bins - 1 - rank];
    }
    search.target = target - mass_above;
    search.above += number_above;
    search.prefix = key_of(chosen) >> shift;
    search.ties = histogram.count[bins - 1 - chosen];
  }
  __syncthreads();
}

/// D_p of `count` weights ≥ 0, exact: radix select on mass, three digits of 11, 10 and 10 bits, no
/// sort. Weights equal to the smallest one needed count only as often as needed; p = 1 counts all
/// that are positive. In all threads.
__device__ __forceinline__ unsigned working_set(const float* weights, std::int32_t count, float p,
                                                WeightHistogram& histogram, WeightSearch& search) {
  if (p >= 1.0F) {
    unsigned positive = 0;
    for (auto i = static_cast<std::int32_t>(threadIdx.x); i < count; i += spread_threads) {
      positive += weights[i] > 0.0F ? 1U : 0U;
    }
    return block_sum(positive, search.counts);
  }
  search_digit<20, 11>(weights, count, p, histogram, search);
  if (search.ties == 0) return 0;  // no positive weight
  search_digit<10, 10>(weights, count, p, histogram, search);
  search_digit<0, 10>(weights, count, p, histogram, search);
  const double weight = static_cast<double>(__uint_as_float(search.prefix));
  const double need = ceil(search.target / weight);
  const double ties = static_cast<double>(search.ties);
  const unsigned found = search.above + static_cast<unsigned>(fmin(fmax(need, 1.0), ties));
  __syncthreads();  // the search may serve another distribution
  return found;
}

/// H / ln n of weights w = Z·π, n ≥ 2: H = ln Z − Σ w·ln w / Z. In all threads.
__device__ __forceinline__ double relative_entropy(const float* weights, std::int32_t count,
                                                   WeightSearch& search) {
  double z = 0;
  double w_log_w = 0;
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < count; i += spread_threads) {
    const float w = weights[i];
    if (w > 0.0F) {
      z += static_cast<double>(w);
      w_log_w += static_cast<double>(w) * static_cast<double>(logf(w));
    }
  }
  z = block_sum(z, search.doubles);
  w_log_w = block_sum(w_log_w, search.doubles);
  if (!(z > 0)) return 0.0;
  return (log(z) - w_log_w / z) / log(static_cast<double>(count));
}

/// Grid (which summary, task), after the scores: r of one KV head into the sums. The weights take
/// the place of the first head's logits, a slot's weight written by the thread that read its logits
/// and alone reads it again.
__global__ void __launch_bounds__(spread_threads, 4)
    spread_kernel(const __grid_constant__ BoundaryStage stage) {
  GROWPAGE_SHARED(WeightHistogram, histogram);
  GROWPAGE_SHARED(WeightSearch, search);
  const BoundaryTask task = boundary_task(stage);
  if (!task.counted) return;
  const auto which = static_cast<std::int32_t>(blockIdx.x);
  const BoundaryScratch& scratch = stage.scratch;
  const DemandOptions& options = stage.batch.demand;
  const std::int32_t count = task.input.candidates;
  const std::int64_t first_row = query_row(stage, task, which * stage.group);
  const Normaliser* normalisers = scratch.normalisers + first_row;
  const bool together = options.group == GroupReduction::mean_distribution;
  const std::int32_t sets = together ? 1 : stage.group;
  const std::int32_t heads = together ? stage.group : 1;
  double sum = 0;
  for (std::int32_t s = 0; s < sets && count > 1; ++s) {
    float* weights = scratch.logits + (first_row + s) * scratch.row;
    for (auto i = static_cast<std::int32_t>(threadIdx.x); i < count; i += spread_threads) {
      float weight = 0.0F;
      for (std::int32_t g = s; g < s + heads; ++g) {
        const Normaliser& n = normalisers[g];
        const float logit = weights[(g - s) * scratch.row + i];
        weight += (together ? n.demand_factor : 1.0F) * softmax_weight(logit, n.candidate_max);
      }
      weights[i] = weight;
    }
    sum +=
        options.metric == DemandMetric::top_p
            ? static_cast<double>(working_set(weights, count, options.p, histogram, search)) / count
            : relative_entropy(weights, count, search);
  }
  if (threadIdx.x != 0) return;
  const double r = count > 1 ? fmax(sum / sets, 0.0) : 1.0;
  const auto units = static_cast<unsigned long long>(rint(r * 0x1p40));
  atomicAdd(reinterpret_cast<unsigned long long*>(stage.batch.sums) + 2 * task.request + which,
            units);
}

inline constexpr int delta_threads = 128;

/// Δ of a request a thread. The difference of the integers is exact, so its sign is.
__global__ void __launch_bounds__(delta_threads)
    delta_kernel(const std::uint64_t* sums, std::int64_t terms, float* delta,
                 std::int32_t requests) {
  const auto request = static_cast<std::int32_t>(blockIdx.x) * delta_threads +
                       static_cast<std::int32_t>(threadIdx.x);
  if (request >= requests) return;
  const auto difference = static_cast<std::int64_t>(sums[2 * std::int64_t{request}] -
                                                    sums[2 * std::int64_t{request} + 1]);
  delta[request] =
      static_cast<float>(static_cast<double>(difference) * 0x1p-40 / static_cast<double>(terms));
}

}  // namespace growpage::cuda
