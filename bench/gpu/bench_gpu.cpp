// SPDX-License-Identifier: Apache-2.0
// One capacity boundary on a GPU, kernel by kernel, at the Qwen3-8B shape. Every line has the bytes
// that must move and their share of a device-to-device copy measured in the same run. With
// GROWPAGE_BENCH_SMOKE=1: a shape of toys, which shows that it runs.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "event.hpp"

namespace growpage::bench {
namespace {

bool smoke() {
  static const bool on = std::getenv("GROWPAGE_BENCH_SMOKE") != nullptr;
  return on;
}

CacheShape shape() {
  return smoke() ? CacheShape{1, 4, 2, 64, 0, 16} : CacheShape{36, 32, 8, 128, 0, 256};
}

/// Seconds that `f` takes on the device.
template <class F>
double device_seconds(F&& f) {
  cudaEvent_t start = nullptr, stop = nullptr;
  check(cudaEventCreate(&start), "cudaEventCreate");
  check(cudaEventCreate(&stop), "cudaEventCreate");
  check(cudaEventRecord(start, nullptr), "cudaEventRecord");
  f();
  check(cudaEventRecord(stop, nullptr), "cudaEventRecord");
  check(cudaEventSynchronize(stop), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start, stop), "cudaEventElapsedTime");
  check(cudaEventDestroy(start), "cudaEventDestroy");
  check(cudaEventDestroy(stop), "cudaEventDestroy");
  return milliseconds * 1e-3;
}

/// Bytes a second, read and written, of a device-to-device copy: the median of nine.
double copy_rate() {
  const std::int64_t bytes = smoke() ? 1 << 20 : std::int64_t{1} << 30;
  const Device<std::byte> from(bytes), to(bytes);
  std::vector<double> rates;
  for (int i = 0; i < 10; ++i) {
    const double seconds = device_seconds([&] {
      check(cudaMemcpyAsync(to.get(), from.get(), from.bytes(), cudaMemcpyDeviceToDevice, nullptr),
            "cudaMemcpyAsync");
    });
    if (i > 0) rates.push_back(2.0 * static_cast<double>(bytes) / seconds);
  }
  std::nth_element(rates.begin(), rates.begin() + 4, rates.end());
  return rates[4];
}

/// The scene of the last size: making one takes longer than measuring it.
Event& event(std::int64_t slots, std::int64_t requests) {
  static std::unique_ptr<Event> held;
  static std::int64_t of_slots = 0, of_requests = 0;
  if (held == nullptr || of_slots != slots || of_requests != requests) {
    held.reset();
    held = std::make_unique<Event>(shape(), static_cast<std::int32_t>(requests),
                                   static_cast<std::int32_t>(slots));
    of_slots = slots;
    of_requests = requests;
    held->pass();
    held->select();
    held->plan();
    check(cudaDeviceSynchronize(), "warming up");
  }
  return *held;
}

template <class F, class Bytes>
void measure(benchmark::State& state, bool writes_pages, F&& f, Bytes&& bytes) {
  try {
    Event& e = event(state.range(0), state.range(1));
    if (writes_pages && e.shares_pages()) {
      state.SkipWithError("the GPU has no room for a page table without shared pages");
      return;
    }
    const double copy = copy_rate();
    std::int32_t round = 0;
    for (auto _ : state) {
      state.SetIterationTime(device_seconds([&] { f(e, round++); }));
    }
    const double moved = bytes(e);
    using benchmark::Counter;
    state.counters["bytes"] = moved;
    state.counters["copy_GBps"] = copy * 1e-9;
    state.counters["share_of_copy"] = Counter(moved / copy, Counter::kIsIterationInvariantRate);
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

void summary_update(benchmark::State& state) {
  measure(
      state, false, [](Event& e, std::int32_t round) { e.update_summaries(round); },
      [](Event& e) { return e.summary_bytes(); });
}
void boundary_pass(benchmark::State& state) {
  measure(
      state, false, [](Event& e, std::int32_t) { e.pass(); }, [](Event& e) { return e.k_bytes(); });
}
void select(benchmark::State& state) {
  measure(
      state, false, [](Event& e, std::int32_t) { e.select(); },
      [](Event& e) { return e.score_bytes(); });
}
void plan(benchmark::State& state) {
  measure(
      state, false, [](Event& e, std::int32_t) { e.plan(); }, [](Event&) { return 0.0; });
}
void compact(benchmark::State& state) {
  measure(
      state, true, [](Event& e, std::int32_t) { e.compact(); },
      [](Event& e) { return e.moved_bytes(); });
}
/// share_of_copy is 1 / (the event's time over the floor: K read once and the moved rows).
void whole_event(benchmark::State& state) {
  measure(
      state, true,
      [](Event& e, std::int32_t) {
        e.pass();
        e.select();
        e.plan();
        e.compact();
      },
      [](Event& e) { return e.k_bytes() + e.moved_bytes(); });
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"slots", "requests"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  const std::vector<std::int64_t> slots =
      smoke() ? std::vector<std::int64_t>{64} : std::vector<std::int64_t>{4096, 8192, 32768};
  const std::vector<std::int64_t> requests =
      smoke() ? std::vector<std::int64_t>{2} : std::vector<std::int64_t>{1, 8, 64};
  if (smoke()) bench->Iterations(1);
  bench->ArgsProduct({slots, requests});
}

BENCHMARK(boundary_pass)->Apply(sizes);
BENCHMARK(select)->Apply(sizes);
BENCHMARK(plan)->Apply(sizes);
BENCHMARK(compact)->Apply(sizes);
BENCHMARK(whole_event)->Apply(sizes);
BENCHMARK(summary_update)->Apply(sizes);

/// "NVIDIA H200" → "nvidia-h200".
std::string file_name(std::string name) {
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0
            ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
            : '-';
  }
  return name;
}

}  // namespace
}  // namespace growpage::bench

/// Writes GROWPAGE_RESULTS/<gpu>.json unless --benchmark_out says otherwise.
int main(int argc, char** argv) {
  cudaDeviceProp device{};
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
    (void)std::fprintf(stderr, "no CUDA device\n");
    return 1;
  }
  benchmark::AddCustomContext("device", device.name);
  benchmark::AddCustomContext("commit", GROWPAGE_COMMIT);
  const std::string out = std::string("--benchmark_out=") + GROWPAGE_RESULTS + "/" +
                          growpage::bench::file_name(device.name) + ".json";
  std::vector<std::string> arguments(argv, argv + argc);
  arguments.insert(arguments.begin() + 1, out);  // a later one wins
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
