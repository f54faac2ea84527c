// SPDX-License-Identifier: Apache-2.0
// What the C boundary costs: the same work on equal states through libgrowpage.so and through the
// C++ API, in turns. `share` is the part of the C++ API's speed that the C ABI reaches, `overhead`
// the same the other way: the time through the C ABI over that through the C++ API.
#include "capi/appends.hpp"
#include "capi/matches.hpp"
#include "capi/schedulers.hpp"
#include "support/check.hpp"
#include "support/host.hpp"

namespace growpage::bench {
namespace {

/// The ratios are near 1, and a few per cent of them are the answer: many rounds.
void in_many_rounds(benchmark::internal::Benchmark* bench) {
  bench->Iterations(301)->UseManualTime();
}

template <class C, class Cpp>
void compare(benchmark::State& state, double items, C&& c, Cpp&& cpp) {
  measure_host(state, items, c, cpp, "share");
  state.counters["overhead"] = 1 / state.counters["share"].value;
}

/// schedule() and complete() of 64 requests, per request; the answers between them count, too.
void step(benchmark::State& state) {
  constexpr int steps = 64;  // 0.2 ms
  CppScheduler cpp;
  CScheduler c;
  const auto run = [](auto& side) {
    return seconds_of([&] {
      for (int i = 0; i < steps; ++i) side.step();
    });
  };
  compare(
      state, steps * capi_requests, [&] { return run(c); }, [&] { return run(cpp); });
}

/// A token to each of 64 sequences, as a step of an engine with its own scheduler does it.
template <class CSide>
void append(benchmark::State& state) {
  CppAppend cpp;
  CSide c;
  const auto run = [](auto& side) {
    side.rewind();
    return seconds_of([&] {
      for (std::int64_t i = 0; i < append_rounds; ++i) side.append();
    });
  };
  compare(
      state, static_cast<double>(append_rounds * capi_requests), [&] { return run(c); },
      [&] { return run(cpp); });
}

/// A prompt of 8 cached pages, per page.
void match(benchmark::State& state) {
  CppMatch cpp;
  CMatch c;
  compare(state, 8, timed([&] { c.match(); }), timed([&] { cpp.match(); }));
  check(c.matched == 8 * 256);
}

BENCHMARK(step)->Name("capi/step")->Apply(in_many_rounds);
BENCHMARK_TEMPLATE(append, CBatchAppend)->Name("capi/append_batch")->Apply(in_many_rounds);
BENCHMARK_TEMPLATE(append, CAppend)->Name("capi/append")->Apply(in_many_rounds);
BENCHMARK(match)->Name("capi/match")->Apply(in_many_rounds);

}  // namespace
}  // namespace growpage::bench
