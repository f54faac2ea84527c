// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workload.hpp"

namespace growpage::replay {

/// A benchmark of the GrowPage paper (arXiv 2609.03494): its questions, samples drawn per question,
/// and the mean output of Qwen3-8B under GrowPage that its tables imply (tokens/s × hours ÷
/// requests). The median prompt is an assumption.
struct Benchmark {
  const char* name;
  std::int32_t questions;
  std::int32_t samples;      ///< per question
  double mean_output;        ///< tokens
  double median_prompt = 0;  ///< tokens
};

inline constexpr Benchmark amc23_benchmark{"AMC23", 40, 32, 9030, 120};
inline constexpr Benchmark aime24_benchmark{"AIME24", 30, 32, 16824, 150};
inline constexpr Benchmark gsm8k_benchmark{"GSM8K", 1319, 1, 2328, 105};
/// The paper's mixed workload: 3559 requests.
inline constexpr Benchmark mixed_benchmarks[] = {amc23_benchmark, aime24_benchmark,
                                                 gsm8k_benchmark};

/// Assumptions: the paper gives no spread. Lengths are lognormal. A question has a difficulty that
/// its samples share; samples differ further on their own.
struct MixedWorkloadOptions {
  std::uint64_t seed = 1;
  double sigma_question = 0.45;  ///< σ of log output length between questions
  double sigma_sample = 0.45;    ///< … between samples of one question
  double sigma_prompt = 0.35;    ///< σ of log prompt length between questions
  std::int64_t output_cap = 32768;
};

/// Requests of the benchmarks in random order, all arriving at 0. Samples of a question share its
/// prompt. Each benchmark's mean output, after the cap, is the published one to within a token.
[[nodiscard]] std::vector<TraceRequest> mixed_workload(std::span<const Benchmark> benchmarks,
                                                       const MixedWorkloadOptions& options);

}  // namespace growpage::replay
