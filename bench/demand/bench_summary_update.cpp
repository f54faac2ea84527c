// SPDX-License-Identifier: Apache-2.0
// Both running means of the queries of a batch, one decode step of all layers of Qwen3-8B, against
// reading and rewriting as many bytes.
#include <random>
#include <vector>

#include "examples/runtime/thread_pool.hpp"
#include "support/floors.hpp"
#include "support/scene.hpp"

namespace growpage::bench {
namespace {

class Summaries {
 public:
  Summaries(CpuBackend& backend, SummaryOptions::Storage storage, std::int32_t requests)
      : backend_(backend) {
    options_.beta_long = 0.999F;
    options_.slots = requests;
    options_.storage = storage;
    bytes_ = summary_bytes(shape, options_);
    view_.summaries = backend.allocate(bytes_.summaries);
    view_.query_rms = static_cast<float*>(backend.allocate(bytes_.query_rms));
    view_.steps = static_cast<std::int64_t*>(backend.allocate(bytes_.steps));
    view_.storage = storage;
    view_.layers = shape.layers;
    view_.slots = requests;
    view_.query_heads = shape.query_heads;
    view_.head_dim = shape.head_dim;
    q_.resize(static_cast<std::size_t>(shape.layers) * static_cast<std::size_t>(requests) * heads);
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (BFloat16& x : q_) x = BFloat16::from_float(normal(random));
    for (std::int32_t r = 0; r < requests; ++r) entries_.push_back({r, 1});
  }
  ~Summaries() {
    backend_.deallocate(view_.summaries, bytes_.summaries);
    backend_.deallocate(view_.query_rms, bytes_.query_rms);
    backend_.deallocate(view_.steps, bytes_.steps);
  }
  Summaries(const Summaries&) = delete;
  Summaries& operator=(const Summaries&) = delete;

  void update() {
    SummaryUpdate update;
    update.state = view_;
    update.options = options_;
    update.entries = entries_.data();
    update.requests = static_cast<std::int32_t>(entries_.size());
    update.layers = shape.layers;
    update.q = q_.data();
    update.q_dtype = DType::bf16;
    update.q_head_stride = shape.head_dim;
    update.q_request_stride = heads;
    update.q_layer_stride = heads * update.requests;
    backend_.summary_update(update);
    for (SummaryEntry& entry : entries_) entry.first = 0;
  }
  [[nodiscard]] Traffic traffic() const {
    return {.read = static_cast<double>(q_.size() * sizeof(BFloat16)),
            .rewritten = static_cast<double>(bytes_.summaries)};
  }
  [[nodiscard]] std::int64_t steps() const { return view_.steps[0]; }

 private:
  static constexpr CacheShape shape = qwen3_8b(36);
  static constexpr std::int32_t heads = shape.query_heads * shape.head_dim;
  CpuBackend& backend_;
  SummaryOptions options_;
  SummaryBytes bytes_;
  SummaryView view_;
  std::vector<BFloat16> q_;
  std::vector<SummaryEntry> entries_;
};

void update(benchmark::State& state) {
  const auto threads = static_cast<std::int32_t>(state.range(1));
  runtime::ThreadPool pool(threads);
  CpuBackend backend(pool.executor());
  Floors floors(pool.executor());
  Summaries summaries(backend, static_cast<SummaryOptions::Storage>(state.range(0)), 96);
  measure_kernel(state, floors, summaries.traffic(),
                 [&] { return seconds_of([&] { summaries.update(); }, threads); });
  check(summaries.steps() == rounds + 1);
}

BENCHMARK(update)
    ->Name("demand/summary_update")
    ->ArgNames({"f16", "threads"})
    ->ArgsProduct({{0, 1}, {1, 2}})
    ->Apply(in_rounds);

}  // namespace
}  // namespace growpage::bench
