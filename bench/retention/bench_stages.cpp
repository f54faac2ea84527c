// SPDX-License-Identifier: Apache-2.0
// The stages after the read of K, of one (layer, KV head): 8 rows of 4096 logits. They lie in the
// L2 cache as in an event, where they have just been computed; 64 different sets take turns.
#include <cmath>
#include <random>

#include "growpage/detail/cpu_distribution.hpp"
#include "growpage/detail/cpu_kernels.hpp"
#include "retention/baselines.hpp"
#include "retention/event.hpp"
#include "support/rounds.hpp"

namespace growpage::bench {
namespace {

constexpr std::int64_t slots = 4096;
constexpr std::int64_t candidates = slots - 256;
constexpr std::int64_t stride = slots + 16;
constexpr std::int32_t rows = 8;

class Logits {
 public:
  Logits() : source_(sets * rows * stride) {
    std::mt19937_64 random(3);
    std::normal_distribution<float> normal(0.0F, 20.0F);
    for (float& x : source_) x = normal(random);
  }
  /// A fresh set, in the cache.
  float* next() {
    const auto from = source_.begin() + static_cast<std::ptrdiff_t>(at_) * rows * stride;
    work_.assign(from, from + rows * stride);
    at_ = (at_ + 1) % sets;
    return work_.data();
  }

 private:
  static constexpr std::int32_t sets = 64;
  std::vector<float> source_, work_;
  std::int32_t at_ = 0;
};

/// `prepare(logits)`, then `f(logits)` with each of the 64 sets: seconds of `f` with one. Median:
/// each takes microseconds, few are interrupted.
template <class Prepare, class F>
double over_sets(Logits& logits, Prepare&& prepare, F&& f) {
  std::vector<double> seconds;
  for (int i = 0; i < 64; ++i) {
    float* x = logits.next();
    prepare(x);
    const double start = now();
    f(x);
    benchmark::ClobberMemory();
    seconds.push_back(now() - start);
  }
  return median(seconds);
}
void nothing(const float*) {}

const float scale = 1.0F / std::sqrt(128.0F);

void weights(float* x) {
  const detail::CpuKernels& kernels = detail::simd_kernels();
  for (std::int32_t j = 0; j < rows; ++j) {
    const float max = kernels.sanitize_max(x + j * stride, slots, scale);
    benchmark::DoNotOptimize(detail::to_weights(kernels, x + j * stride, slots, max));
  }
}

void softmax(benchmark::State& state) {
  Logits logits;
  const auto naive = [](float* x) {
    for (std::int32_t j = 0; j < rows; ++j) {
      benchmark::DoNotOptimize(baseline::softmax_weights(x + j * stride, slots, scale));
    }
  };
  measure(
      state, 1, [&] { return over_sets(logits, nothing, weights); },
      [&] { return over_sets(logits, nothing, naive); }, "speedup");
}

/// The exponentials alone, of one row, per number; its maximum is known.
void exponentials(benchmark::State& state) {
  Logits logits;
  const detail::CpuKernels& kernels = detail::simd_kernels();
  float max = 0;
  const auto run = [&](auto&& exp_sum) {
    return over_sets(
        logits, [&](float* x) { max = kernels.sanitize_max(x, slots, scale); },
        [&](float* x) { benchmark::DoNotOptimize(exp_sum(x)); });
  };
  const auto ours = [&](float* x) { return kernels.exp_sum(x, slots, max); };
  const auto standard = [&](float* x) {
    double sum = 0;
    for (std::int64_t i = 0; i < slots; ++i) {
      x[i] = std::exp(x[i] - max);
      sum += double{x[i]};
    }
    return sum;
  };
  float* x = logits.next();
  max = kernels.sanitize_max(x, slots, scale);
  std::vector<float> copy(x, x + stride);
  const double sum = ours(x);
  check(std::abs(standard(copy.data()) / sum - 1) < 1e-5);
  measure(
      state, slots, [&] { return run(ours); }, [&] { return run(standard); }, "speedup");
}

/// The demand of one (layer, KV head): mean distributions of both summaries and their working sets.
void demand(benchmark::State& state) {
  Logits logits;
  const detail::CpuKernels& kernels = detail::simd_kernels();
  std::vector<float> mean(stride), scratch(stride), sorted;
  const float factor[4] = {0.25F, 0.25F, 0.25F, 0.25F};
  const auto plain_mix = [&](const float* x) {
    for (std::int64_t i = 0; i < candidates; ++i) {
      mean[static_cast<std::size_t>(i)] =
          0.25F * (x[i] + x[stride + i] + x[2 * stride + i] + x[3 * stride + i]);
    }
  };
  const auto run = [&](auto&& mix, auto&& count) {
    return over_sets(logits, weights, [&](float* x) {
      for (const float* half : {x, x + 4 * stride}) {
        mix(half);
        benchmark::DoNotOptimize(count());
      }
    });
  };
  const auto fast = [&] {
    return detail::working_set(kernels, mean.data(), candidates, 0.99F, scratch.data());
  };
  const auto naive = [&] { return baseline::top_p(mean.data(), candidates, 0.99F, sorted); };
  float* x = logits.next();
  weights(x);
  plain_mix(x);
  check(std::abs(fast() - naive()) <= 1);  // sums are added in another order
  const auto mix = [&](const float* from) {
    kernels.mix(from, stride, factor, 4, candidates, mean.data());
  };
  measure(
      state, 1, [&] { return run(mix, fast); }, [&] { return run(plain_mix, naive); }, "speedup");
}

/// The working set of one distribution, by search and by sorting.
void top_p(benchmark::State& state) {
  Logits logits;
  const detail::CpuKernels& kernels = detail::simd_kernels();
  std::vector<float> scratch(stride), sorted;
  const auto run = [&](auto&& count) {
    return over_sets(logits, weights, [&](float* x) { benchmark::DoNotOptimize(count(x)); });
  };
  const auto fast = [&](const float* w) {
    return detail::working_set(kernels, w, candidates, 0.99F, scratch.data());
  };
  const auto naive = [&](const float* w) { return baseline::top_p(w, candidates, 0.99F, sorted); };
  measure(
      state, 1, [&] { return run(fast); }, [&] { return run(naive); }, "speedup");
}

/// Retention scores from the weights: the largest over summaries and heads.
void scores(benchmark::State& state) {
  Logits logits;
  const detail::CpuKernels& kernels = detail::simd_kernels();
  std::vector<float> out(stride);
  std::vector<float> factor(rows, 0.001F);
  measure(state, 1, [&] {
    return over_sets(logits, weights, [&](float* x) {
      kernels.max_scaled(x, stride, factor.data(), rows, slots, out.data());
    });
  });
  check(out[100] > 0);
}

/// Quotas and top-k of 64 heads, per head, against nth_element on indices. Without quotas: a pure
/// top 15/16 of 4096.
void select(benchmark::State& state) {
  const bool quotas = state.range(0) != 0;
  CpuBackend backend;
  Scene scene(backend, {.shape = qwen3_8b(8)});
  Event event(backend, scene, CompactionStrategy::fill_holes);
  RetentionOptions retention;
  if (!quotas) retention.recent = retention.local_per_256 = 0;
  event.pass();
  baseline::Select naive(slots, 256, retention.recent, retention.local_quota(256));
  const auto heads = static_cast<std::int64_t>(scene.heads());
  const float* from = event.scores().data();
  event.select(retention);
  for (std::int64_t h = 0; h < heads; ++h) {
    const std::vector<bool>& kept = naive.run(from + h * slots, event.keep());
    for (std::int64_t s = 0; s < slots; ++s) {
      const std::uint64_t word = event.bits()[static_cast<std::size_t>(h * slots + s) / 64];
      check(kept[static_cast<std::size_t>(s)] == ((word >> (s % 64) & 1) != 0));
    }
  }
  measure(
      state, static_cast<double>(heads),
      [&] { return seconds_of([&] { event.select(retention); }); },
      [&] {
        return seconds_of([&] {
          for (std::int64_t h = 0; h < heads; ++h) naive.run(from + h * slots, event.keep());
        });
      },
      "speedup");
}

BENCHMARK(softmax)->Name("retention/softmax")->Apply(in_short_rounds);
BENCHMARK(exponentials)->Name("retention/exp")->Apply(in_short_rounds);
BENCHMARK(demand)->Name("retention/demand")->Apply(in_short_rounds);
BENCHMARK(top_p)->Name("retention/top_p")->Apply(in_short_rounds);
BENCHMARK(scores)->Name("retention/scores")->Apply(in_short_rounds);
BENCHMARK(select)
    ->Name("retention/select")
    ->ArgName("quotas")
    ->Arg(0)
    ->Arg(1)
    ->Apply(in_short_rounds);

}  // namespace
}  // namespace growpage::bench
