// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "support/check.hpp"
#include "support/rounds.hpp"

namespace growpage::bench {

/// Calls of the malloc family (operator new included) and of the lock functions of pthreads in this
/// process so far, by any thread; host.cpp. Both stay 0 elsewhere than with glibc.
struct Calls {
  std::int64_t allocations = 0;
  std::int64_t locks = 0;
};
[[nodiscard]] Calls calls_so_far();

/// `measure` for host paths, which allocate nothing and take no lock once they are warm: a last
/// round is counted instead of timed. Counters besides: allocations, locks; the program ends when
/// one is not 0.
template <class Work, class... Reference>
void measure_host(benchmark::State& state, double items, Work&& work, Reference&&... reference) {
  measure(state, items, work, std::forward<Reference>(reference)...);
  const Calls before = calls_so_far();
  work();
  const Calls after = calls_so_far();
  state.counters["allocations"] = static_cast<double>(after.allocations - before.allocations);
  state.counters["locks"] = static_cast<double>(after.locks - before.locks);
  check(after.allocations == before.allocations && after.locks == before.locks);
}

}  // namespace growpage::bench
