// SPDX-License-Identifier: Apache-2.0
#include "mixed_workload.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "random.hpp"

namespace growpage::replay {
namespace {

enum Draw : std::uint64_t { difficulty = 1, sample_noise = 2, prompt_length = 3, order = 4 };

/// The output length, in tokens, of log length `log_scale` + `z`.
std::int64_t output_length(double log_scale, double z, std::int64_t cap) {
  const double tokens = std::min(std::exp(log_scale + z), static_cast<double>(cap));
  return std::max<std::int64_t>(1, std::llround(tokens));
}

/// The log scale that gives the deviations `z` a mean capped length of `mean`. The mean rises with
/// it, so bisection finds it.
double calibrate(std::span<const double> z, double mean, std::int64_t cap) {
  double low = 0;
  double high = std::log(static_cast<double>(cap)) + 8;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const double deviation : z) {
      sum += static_cast<double>(output_length(middle, deviation, cap));
    }
    (sum < mean * static_cast<double>(z.size()) ? low : high) = middle;
  }
  return high;
}

}  // namespace

std::vector<TraceRequest> mixed_workload(std::span<const Benchmark> benchmarks,
                                         const MixedWorkloadOptions& options) {
  std::vector<TraceRequest> requests;
  std::vector<double> z;
  std::uint64_t question_id = 0;
  for (const Benchmark& benchmark : benchmarks) {
    z.clear();
    const std::size_t first = requests.size();
    for (std::int32_t question = 0; question < benchmark.questions; ++question) {
      const std::uint64_t key = mix(options.seed, question_id);
      const double hard = options.sigma_question * normal(mix(key, difficulty));
      const double log_prompt = std::log(benchmark.median_prompt) +
                                options.sigma_prompt * normal(mix(key, prompt_length));
      TraceRequest request;
      request.prompt_id = question_id++;
      request.prompt_tokens = std::max<std::int64_t>(1, std::llround(std::exp(log_prompt)));
      for (std::int32_t sample = 0; sample < benchmark.samples; ++sample) {
        const std::uint64_t draw = mix(mix(key, sample_noise), static_cast<std::uint64_t>(sample));
        z.push_back(hard + options.sigma_sample * normal(draw));
        requests.push_back(request);
      }
    }
    const double log_scale = calibrate(z, benchmark.mean_output, options.output_cap);
    for (std::size_t i = 0; i < z.size(); ++i) {
      requests[first + i].output_tokens = output_length(log_scale, z[i], options.output_cap);
    }
  }
  for (std::size_t i = requests.size(); i > 1; --i) {  // Fisher–Yates
    std::swap(requests[i - 1], requests[mix(mix(options.seed, order), i) % i]);
  }
  return requests;
}

}  // namespace growpage::replay
