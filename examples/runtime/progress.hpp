// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "growpage/observe/counters.hpp"

namespace growpage::runtime {

/// Progress on standard error while requests run, and what it came to. The line that moves is drawn
/// on a terminal only.
class Progress {
 public:
  /// `enabled` = false prints nothing anywhere.
  Progress(std::int64_t requests, bool enabled);

  void update(const Counters& counters);
  /// Tokens a second, the KV held, and what the policy did.
  void summarise(const Counters& counters);

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] double seconds() const;

  std::int64_t requests_;
  bool enabled_;
  bool terminal_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
};

}  // namespace growpage::runtime
