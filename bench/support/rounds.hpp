// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <vector>

/// How everything in bench/ is measured. A benchmark is `rounds` rounds; in each the work is timed
/// between two timings of what it is compared with (a bandwidth, a baseline), and a ratio is taken
/// of neighbours in time. Medians over the rounds are reported, as counters: on a shared machine
/// the times drift from second to second, the ratios hold.
namespace growpage::bench {

inline constexpr int rounds = 11;
/// Host calls take nanoseconds: many rounds, each too short for most of them to be interrupted.
inline constexpr int short_rounds = 31;

inline void in_rounds(benchmark::internal::Benchmark* bench) {
  bench->Iterations(rounds)->UseManualTime();
}
inline void in_short_rounds(benchmark::internal::Benchmark* bench) {
  bench->Iterations(short_rounds)->UseManualTime();
}

/// Wall clock, seconds.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds the calling thread has been on a CPU: what other programs take from it does not count.
/// What they take of the caches and of the memory does, for probes and kernels alike.
inline double thread_now() {
#if defined(CLOCK_THREAD_CPUTIME_ID)
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
#else
  return now();
#endif
}

/// The clock for work of so many threads: that of the calling thread when it works alone.
inline double now(std::int32_t threads) { return threads == 1 ? thread_now() : now(); }

inline double median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Seconds of one call.
template <class F>
double seconds_of(F&& f, std::int32_t threads = 1) {
  const double start = now(threads);
  f();
  benchmark::ClobberMemory();
  return now(threads) - start;
}

/// Makes a callable that times `f`, seconds per call, over as many calls as take `at_least`
/// seconds, so that the clock does not count.
template <class F>
auto timed(F f, double at_least = 3e-4) {
  return [f, at_least, calls = std::int64_t{0}]() mutable {
    const auto run = [&](std::int64_t n) {
      const double start = thread_now();
      for (std::int64_t i = 0; i < n; ++i) f();
      return thread_now() - start;
    };
    for (std::int64_t n = 1; calls == 0; n *= 2) {  // also warms code and branches up
      // The least of three: an interrupt would make the calls look slow, and the rounds too short.
      const double took = std::min({run(n), run(n), run(n)});
      const double wanted = at_least / took * static_cast<double>(n);
      if (took > at_least / 2) calls = std::max<std::int64_t>(1, std::llround(wanted));
    }
    return run(calls) / static_cast<double>(calls);
  };
}

/// The spread a reader should know of: half the distance between the quartiles, over the median.
inline double spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[n * 3 / 4] - values[n / 4]) / 2 / values[n / 2];
}

/// Times `work` (returns seconds, for `items` items) alone. Counters: ns per item, spread.
template <class Work>
void measure(benchmark::State& state, double items, Work&& work) {
  std::vector<double> times;
  work();  // touches everything once, and calibrates
  for (auto _ : state) {
    times.push_back(work() / items);
    state.SetIterationTime(times.back());
  }
  state.counters["ns"] = median(times) * 1e9;
  state.counters["spread"] = spread(times);
}

/// Times `work` between two timings of `reference` (both return seconds, for the same `items`).
/// Counters besides: reference_ns, and under `ratio_name` how many times the work's time the
/// reference takes: the share of a floor that is reached, or the speed-up over a baseline.
template <class Work, class Reference>
void measure(benchmark::State& state, double items, Work&& work, Reference&& reference,
             const char* ratio_name) {
  std::vector<double> times;
  std::vector<double> references;
  std::vector<double> ratios;
  work();
  reference();
  for (auto _ : state) {
    const double before = reference();
    const double took = work();
    const double compared = (before + reference()) / 2;
    times.push_back(took / items);
    references.push_back(compared / items);
    ratios.push_back(compared / took);
    state.SetIterationTime(times.back());
  }
  state.counters["ns"] = median(times) * 1e9;
  state.counters["spread"] = spread(times);
  state.counters["reference_ns"] = median(references) * 1e9;
  state.counters[ratio_name] = median(ratios);
}

}  // namespace growpage::bench
