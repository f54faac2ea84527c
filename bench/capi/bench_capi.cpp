// SPDX-License-Identifier: Apache-2.0
// What the C boundary costs: the same work on equal states through libgrowpage.so and through the
// C++ API, in turns. `share` is the part of the C++ API's speed that the C ABI reaches.
#include "capi/sides.hpp"
#include "support/check.hpp"
#include "support/host.hpp"

namespace growpage::bench {
namespace {

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
  measure_host(
      state, steps * capi_requests, [&] { return run(c); }, [&] { return run(cpp); }, "share");
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
  measure_host(
      state, static_cast<double>(append_rounds * capi_requests), [&] { return run(c); },
      [&] { return run(cpp); }, "share");
}

/// A prompt of 8 cached pages, per page.
void match(benchmark::State& state) {
  CppMatch cpp;
  CMatch c;
  measure_host(state, 8, timed([&] { c.match(); }), timed([&] { cpp.match(); }), "share");
  check(c.matched == 8 * 256);
}

BENCHMARK(step)->Name("capi/step")->Apply(in_short_rounds);
BENCHMARK_TEMPLATE(append, CBatchAppend)->Name("capi/append_batch")->Apply(in_short_rounds);
BENCHMARK_TEMPLATE(append, CAppend)->Name("capi/append")->Apply(in_short_rounds);
BENCHMARK(match)->Name("capi/match")->Apply(in_short_rounds);

}  // namespace
}  // namespace growpage::bench
