// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "growpage/core/ids.hpp"
#include "growpage/core/status.hpp"

namespace growpage::runtime {

struct SamplingOptions {
  double temperature = 0;  ///< 0 = greedy; ties go to the lower token
  double top_p = 1;        ///< of the likeliest tokens that reach this much, 0 < top_p ≤ 1
  std::uint64_t seed = 0;

  [[nodiscard]] Status validate() const;
};

/// Draws tokens. The draw is a hash of seed, request and place in the output, so that a request's
/// text repeats whatever else runs and however often it is preempted.
class Sampler {
 public:
  /// The token `index` of the output of request `tag`.
  [[nodiscard]] TokenId sample(std::span<const float> logits, const SamplingOptions& options,
                               std::uint64_t tag, std::int64_t index);

 private:
  struct Candidate {
    double weight;
    TokenId token;
  };
  std::vector<Candidate> candidates_;
};

}  // namespace growpage::runtime
