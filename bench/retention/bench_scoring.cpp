// SPDX-License-Identifier: Apache-2.0
// The read of K: products of the 8 queries of a group (4 heads, short and long) with every key,
// against reading the same bytes and doing nothing with them.
#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/cpu_scalar.hpp"
#include "support/floors.hpp"
#include "support/scene.hpp"

namespace growpage::bench {
namespace {

constexpr std::int32_t queries = 8;

class Scoring {
 public:
  Scoring(const detail::CpuKernels& kernels, const Scene& scene)
      : kernels_(kernels),
        scene_(scene),
        kernel_(scene.options().dtype == DType::bf16
                    ? detail::bf16_queries
                    : static_cast<std::int32_t>(scene.options().dtype)),
        stride_(scene.slots() + 16),
        queries_(queries * dim()),
        packed_(queries * dim()),
        tile_(detail::tile_rows * dim()),
        logits(queries * static_cast<std::size_t>(stride_)) {
    std::mt19937_64 random(2);
    std::normal_distribution<float> normal;
    for (float& x : queries_) x = BFloat16::from_float(normal(random)).to_float();
  }

  void run() {
    const CacheShape& shape = scene_.options().shape;
    kernels_.pack[kernel_](queries_.data(), shape.head_dim, queries, shape.head_dim,
                           packed_.data());
    for (std::int32_t layer = 0; layer < shape.layers; ++layer) {
      for (std::int32_t head = 0; head < shape.kv_heads; ++head) {
        for (std::int32_t page = 0; page < scene_.options().pages; ++page) {
          kernels_.dot[kernel_](rows(layer, head, page), packed_.data(), queries,
                                logits.data() + page * shape.page_size, stride_, tile_.data());
        }
      }
    }
  }

 private:
  [[nodiscard]] std::size_t dim() const {
    return static_cast<std::size_t>(scene_.options().shape.head_dim);
  }
  [[nodiscard]] detail::KRows rows(std::int32_t layer, std::int32_t head, std::int32_t page) const {
    const CacheShape& shape = scene_.options().shape;
    const KvTensor& k = scene_.kv().k;
    const auto at = [&](std::int32_t p) { return k.row(layer, scene_.table(0)[p], head, 0); };
    return {at(page), k.layout.token_stride, shape.page_size, shape.head_dim,
            page + 1 < scene_.options().pages ? at(page + 1) : nullptr};
  }

  const detail::CpuKernels& kernels_;
  const Scene& scene_;
  std::int32_t kernel_;
  std::int64_t stride_;
  std::vector<float> queries_, packed_, tile_;

 public:
  std::vector<float> logits;  ///< [query, stride], of the last head
};

SceneOptions options_of(const benchmark::State& state, std::int32_t layers) {
  return {.shape = qwen3_8b(layers),
          .dtype = static_cast<DType>(state.range(0)),
          .layout = static_cast<PageLayout>(state.range(1))};
}

void scoring(benchmark::State& state) {
  CpuBackend memory;
  Scene scene(memory, options_of(state, 8));
  Scoring simd(detail::simd_kernels(), scene);
  Scoring scalar(detail::scalar::kernels, scene);
  simd.run();
  scalar.run();
  for (std::size_t i = 0; i < 4096; ++i) {
    check(std::abs(simd.logits[i] - scalar.logits[i]) < 1e-3F * (1 + std::abs(scalar.logits[i])));
  }
  Floors floors;
  measure_kernel(state, floors, {.read = scene.k_bytes()},
                 [&] { return seconds_of([&] { simd.run(); }); });
  state.SetLabel(detail::simd_kernels().name);
}

/// The scalar form beside SIMD. Counter `speedup`.
void scoring_naive(benchmark::State& state) {
  CpuBackend memory;
  Scene scene(memory, options_of(state, 2));
  Scoring simd(detail::simd_kernels(), scene);
  Scoring scalar(detail::scalar::kernels, scene);
  measure(
      state, 1, [&] { return seconds_of([&] { simd.run(); }); },
      [&] { return seconds_of([&] { scalar.run(); }); }, "speedup");
}

BENCHMARK(scoring)
    ->Name("retention/scoring")
    ->ArgNames({"dtype", "nhd"})
    ->ArgsProduct({{0, 1, 2}, {0, 1}})
    ->Apply(in_rounds);
BENCHMARK(scoring_naive)
    ->Name("retention/scoring_against_scalar")
    ->ArgNames({"dtype", "nhd"})
    ->ArgsProduct({{0, 1, 2}, {0}})
    ->Apply(in_rounds);

}  // namespace
}  // namespace growpage::bench
