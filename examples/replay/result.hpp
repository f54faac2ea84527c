// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "growpage/observe/counters.hpp"

namespace growpage::replay {

/// One policy's run.
struct RunResult {
  std::string policy;
  Counters counters;
  std::int64_t requests = 0;
  std::int64_t pool_pages = 0;
  double seconds = 0;       ///< on the replay's clock (see Signal::step_seconds)
  double wall_seconds = 0;  ///< the whole replay, on this machine
  /// Mean over requests of the KV tokens that a decode step of it attends to.
  double kv_per_request = 0;
  double tpot_ms = 0;  ///< mean over requests of (last − first token) / (tokens − 1)
  /// What went wrong; empty: every request finished with its exact output length, the invariants
  /// held, and all pages came back.
  std::string failure;

  [[nodiscard]] double kv_tokens() const noexcept {
    return ratio(counters.kv_token_steps, counters.running_steps);
  }
  [[nodiscard]] double resident() const noexcept {
    return ratio(counters.running_steps, counters.steps);
  }
  [[nodiscard]] double tokens_per_s() const noexcept {
    return seconds > 0 ? static_cast<double>(counters.decode_tokens) / seconds : 0;
  }
  /// The paper's: of all decisions.
  [[nodiscard]] double grow_percent() const noexcept {
    return 100 * ratio(counters.grow, counters.grow + counters.compact + counters.shrink);
  }
  [[nodiscard]] double prefix_hit_percent() const noexcept {
    return 100 * ratio(counters.prefix_hit_tokens, counters.prefix_query_tokens);
  }

 private:
  [[nodiscard]] static double ratio(std::int64_t a, std::int64_t b) noexcept {
    return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : 0;
  }
};

}  // namespace growpage::replay
