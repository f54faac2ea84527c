// SPDX-License-Identifier: Apache-2.0
#include "sampler.hpp"

#include <algorithm>
#include <cmath>

namespace growpage::runtime {
namespace {

/// SplitMix64's finaliser (Steele, Lea, Flood 2014).
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// [0, 1).
constexpr double uniform(std::uint64_t seed, std::uint64_t tag, std::int64_t index) noexcept {
  const std::uint64_t key = mix(mix(mix(seed) + tag) + static_cast<std::uint64_t>(index));
  return static_cast<double>(key >> 11) * 0x1p-53;
}

}  // namespace

Status SamplingOptions::validate() const {
  if (!(std::isfinite(temperature) && temperature >= 0)) {
    return Status::invalid("temperature", temperature, "finite, at least 0");
  }
  if (!(top_p > 0 && top_p <= 1)) return Status::invalid("top_p", top_p, "above 0, at most 1");
  return {};
}

TokenId Sampler::sample(std::span<const float> logits, const SamplingOptions& options,
                        std::uint64_t tag, std::int64_t index) {
  const auto best = std::ranges::max_element(logits);
  if (options.temperature == 0) return static_cast<TokenId>(best - logits.begin());
  candidates_.clear();
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double weight = std::exp((double{logits[i]} - double{*best}) / options.temperature);
    total += weight;
    candidates_.push_back({weight, static_cast<TokenId>(i)});
  }
  if (options.top_p < 1) {
    std::ranges::stable_sort(candidates_, std::greater(), &Candidate::weight);
    double kept = 0;
    std::size_t count = 0;
    while (count < candidates_.size() && kept < options.top_p * total) {
      kept += candidates_[count++].weight;
    }
    candidates_.resize(count);
    total = kept;
  }
  double left = uniform(options.seed, tag, index) * total;
  for (const Candidate& candidate : candidates_) {
    left -= candidate.weight;
    if (left < 0) return candidate.token;
  }
  // Rounding, at the very end of the distribution.
  return candidates_.back().token;
}

}  // namespace growpage::runtime
