// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "growpage/core/ids.hpp"

namespace growpage::replay {

/// A request of a trace or of a generated workload. Its tokens are not here: they are made when it
/// is submitted, so that a trace of millions of prompt tokens costs little memory.
struct TraceRequest {
  static constexpr std::int64_t block_tokens = 512;  ///< tokens a block id stands for

  double arrival_s = 0;
  std::int64_t prompt_tokens = 0;  ///< ≥ 1
  std::int64_t output_tokens = 0;  ///< ≥ 1
  /// Content of each 512-token run of the prompt: equal ids give equal tokens, thus shared
  /// prefixes. Empty: the whole prompt is that of `prompt_id`.
  std::vector<std::uint64_t> blocks;
  std::uint64_t prompt_id = 0;
};

/// The prompt's tokens into `out` `[prompt_tokens]`.
void make_prompt(const TraceRequest& request, std::vector<TokenId>& out);

/// The token request `tag` generates at `position` of its text, whatever the policy.
[[nodiscard]] TokenId generated_token(std::uint64_t tag, std::int64_t position) noexcept;

/// Keeps the first `limit` requests (0 = all) and multiplies every length by `scale`, each at
/// least 1.
void reshape(std::vector<TraceRequest>& requests, std::int64_t limit, double scale);

struct WorkloadTotals {
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t longest = 0;  ///< prompt + output of the longest request
};
[[nodiscard]] WorkloadTotals totals(std::span<const TraceRequest> requests);

}  // namespace growpage::replay
