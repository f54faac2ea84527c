// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace growpage::runtime {

Progress::Progress(std::int64_t requests, bool enabled)
    : requests_(requests), enabled_(enabled), terminal_(isatty(STDERR_FILENO) == 1) {}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::update(const Counters& c) {
  const Clock::time_point now = Clock::now();
  if (!enabled_ || !terminal_ || now - shown_ < std::chrono::milliseconds(100)) return;
  shown_ = now;
  fmt::print(stderr, "\r{} of {} requests, {} prefilled, {} generated, {:.1f} tokens/s \x1b[K",
             c.finished, requests_, c.prefill_tokens, c.decode_tokens,
             static_cast<double>(c.decode_tokens) / seconds());
  std::fflush(stderr);
}

void Progress::summarise(const Counters& c) {
  if (!enabled_) return;
  const double s = seconds();
  const auto held = static_cast<double>(c.kv_token_steps) /
                    static_cast<double>(std::max<std::int64_t>(c.running_steps, 1));
  fmt::print(stderr, "{}{} requests, {} steps, {:.2f} s\n", terminal_ ? "\r\x1b[K" : "", c.finished,
             c.steps, s);
  fmt::print(stderr,
             "prefilled {} tokens, {} found in the prefix cache; generated {}: {:.1f} tokens/s\n",
             c.prefill_tokens, c.prefix_hit_tokens, c.decode_tokens,
             static_cast<double>(c.decode_tokens) / s);
  fmt::print(
      stderr,
      "{:.0f} KV tokens a request; {} grow, {} compact, {} shrink, {} fallback, {} preempt\n", held,
      c.grow, c.compact, c.shrink, c.fallback, c.preempt);
}

}  // namespace growpage::runtime
