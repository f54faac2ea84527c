// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace simt {

/// Which of a block's threads runs next. `mix` draws one of the others for every block: each finds
/// mistakes that the rest miss, and uniform choice alone misses most.
enum class Order : std::uint8_t {
  mix,
  forward,        ///< the lowest thread that can run
  reverse,        ///< the highest
  uniform,        ///< any
  priority,       ///< the first of a random permutation
  warp_priority,  ///< the same with the lanes of a warp together
  starved,        ///< one thread only when no other can
};

/// When enqueued work runs. `deferred`: not before something waits for it. `eager`: within the call
/// that enqueues it. `mix`: at a random time between the two.
enum class Streams : std::uint8_t { mix, deferred, eager };

struct Settings {
  std::uint64_t seed = 1;          ///< SIMT_SEED
  Order order = Order::mix;        ///< SIMT_SCHED, by the names above
  Streams streams = Streams::mix;  ///< SIMT_STREAMS, by the names above
  bool grid_races = false;         ///< SIMT_GRID_RACES=1: blocks unordered for ThreadSanitizer
};

/// Those in force; from the environment at first.
const Settings& settings();

/// Takes new settings and starts the random numbers anew.
void configure(const Settings& settings);

/// What the last failed kernel or refused call had to say; empty since cudaGetLastError().
std::string last_error_text();

}  // namespace simt
