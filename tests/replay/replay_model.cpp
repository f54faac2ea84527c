// SPDX-License-Identifier: Apache-2.0
// What stands in for attention and for the machine: the demand process, the clock, the tensors.
#include <cmath>
#include <vector>

#include "demand_process.hpp"
#include "step_clock.hpp"
#include "support/catch.hpp"
#include "tensor_generator.hpp"

using namespace growpage::replay;  // NOLINT(google-build-using-namespace)
using growpage::CacheShape;

namespace {

constexpr CacheShape qwen3_8b{36, 32, 8, 128, 0, 256};

}  // namespace

TEST_CASE("the process has the paper's grow and shrink ratios and the stated correlation") {
  const DemandProcess process;
  std::int64_t positive = 0;
  std::int64_t narrow = 0;
  std::int64_t values = 0;
  double covariance = 0;
  double variance = 0;
  for (std::uint64_t request = 0; request < 400; ++request) {
    for (std::int64_t page = 8; page < 58; ++page) {
      const double delta = process.delta(request, page);
      const double x = delta - process.mean;
      ++values;
      positive += delta > 0 ? 1 : 0;
      narrow += delta < -0.005 ? 1 : 0;
      variance += x * x;
      covariance += x * (process.delta(request, page + 1) - process.mean);
    }
  }
  const auto n = static_cast<double>(values);
  CHECK(static_cast<double>(positive) / n == Approx(0.309).margin(0.015));
  CHECK(static_cast<double>(narrow) / (n - static_cast<double>(positive)) ==
        Approx(0.416).margin(0.015));
  CHECK(std::sqrt(variance / n) == Approx(process.deviation).epsilon(0.03));
  CHECK(covariance / variance == Approx(process.correlation).margin(0.04));
}

TEST_CASE("the process is a pure function of seed, request and page") {
  DemandProcess process;
  const double later = process.delta(3, 40);
  CHECK(process.delta(3, 12) != later);
  CHECK(process.delta(3, 40) == later);
  CHECK(process.delta(4, 40) != later);
  const growpage::Demand demand = process.demand(3, 40, 288);
  CHECK(demand.count == 288);
  CHECK(demand.delta() == Approx(later).margin(1e-12));
  CHECK(demand.long_ratio() > 0.05);
  CHECK(demand.long_ratio() < 0.95);
  process.seed = 2;
  CHECK(process.delta(3, 40) != later);
}

TEST_CASE("an A100-80GB holds the pool the paper's figures imply") {
  CHECK(kv_bytes_per_token(qwen3_8b) == Approx(147'456));
  // 121 resident requests of 3442 tokens are 1627 pages; ours leaves room for fp32 summaries.
  CHECK(pool_pages(StepCosts(), qwen3_8b, 512) == 1597);
}

TEST_CASE("a step costs what the roofline says") {
  StepCosts costs;
  StepWork work;
  CHECK(step_seconds(costs, qwen3_8b, work) == Approx(costs.step_overhead_s));
  // Decode: bound by reading weights and KV.
  work.tokens = 121;
  work.kv_slots = 121 * 3442;
  const double decode = 4e-3 + 16.4e9 / 1.5e12 + 121 * 3442 * 147'456.0 / 1.5e12;
  CHECK(step_seconds(costs, qwen3_8b, work) == Approx(decode));
  CHECK(121 / decode == Approx(2213).epsilon(0.03));  // the paper's speed with 121 resident
  work.tokens = 20;                                   // few: reading the weights takes longer
  work.kv_slots = 0;
  CHECK(step_seconds(costs, qwen3_8b, work) == Approx(4e-3 + 16.4e9 / 1.5e12));
  // Prefill: bound by compute, and attention on top.
  work = {};
  work.tokens = 8192;
  work.prefill_pairs = 8192.0 * 8193 / 2;
  CHECK(step_seconds(costs, qwen3_8b, work) ==
        Approx(4e-3 + 2 * 8.2e9 * 8192 / 1.87e14 +
               4.0 * 36 * 32 * 128 * work.prefill_pairs / 1.87e14));
  // Boundary events, scaled by slots and by what of them is exposed; swap over the host link.
  work = {};
  work.demand_slots = 3164;
  work.compaction_slots = 6328;
  work.transferred_pages = 10;
  CHECK(step_seconds(costs, qwen3_8b, work) ==
        Approx(4e-3 + 0.017 * (5.84e-3 + 2 * 37.01e-3) + 10 * 256 * 147'456.0 / 2.5e10));
}

TEST_CASE("made-up queries attend to few keys in one phase and to all in another") {
  constexpr CacheShape shape{1, 2, 1, 64, 0, 32};
  const TensorGenerator generator(shape, 1);
  constexpr std::int32_t keys = 512;
  std::vector<float> k(keys * 64), v(64), q(2 * 64);
  for (std::int32_t i = 0; i < keys; ++i) {
    generator.key_value(i, i, 0, &k[static_cast<std::size_t>(i) * 64], v.data());
  }
  // The weight of the heaviest tenth of the keys. RoPE touches the first half of a head, which is
  // noise: the raw query is close enough.
  const auto top_share = [&](std::int64_t position) {
    generator.query(7, position, 0, q.data());
    std::vector<double> weights;
    double sum = 0;
    for (std::int32_t i = 0; i < keys; ++i) {
      double dot = 0;
      for (std::size_t d = 0; d < 64; ++d) {
        dot += double{q[d]} * double{k[static_cast<std::size_t>(i) * 64 + d]};
      }
      weights.push_back(std::exp(dot / 8));
      sum += weights.back();
    }
    std::ranges::sort(weights, std::greater{});
    double top = 0;
    for (std::size_t i = 0; i < keys / 10; ++i) top += weights[i];
    return top / sum;
  };
  std::int64_t diffuse = 0;
  for (std::int64_t phase = 0; phase < 200; ++phase) {
    const std::int64_t position = phase * TensorGenerator::phase_tokens + 5;
    const bool wide = generator.diffuse(7, position);
    diffuse += wide ? 1 : 0;
    if (phase < 20) {
      CAPTURE(phase, wide);
      if (wide) CHECK(top_share(position) < 0.3);
      if (!wide) CHECK(top_share(position) > 0.9);
    }
  }
  CHECK(diffuse > 30);
  CHECK(diffuse < 95);  // about 31 %
}

TEST_CASE("tensors are functions of token and position; small heads are refused") {
  constexpr CacheShape shape{2, 4, 2, 32, 0, 16};
  const TensorGenerator generator(shape, 9);
  std::vector<float> k1(64), k2(64), v1(64), v2(64);
  generator.key_value(5, 77, 1, k1.data(), v1.data());
  generator.key_value(5, 77, 1, k2.data(), v2.data());
  CHECK(k1 == k2);
  CHECK(v1 == v2);
  generator.key_value(6, 77, 1, k2.data(), v2.data());
  CHECK(k1 != k2);
  generator.key_value(5, 77, 0, k2.data(), v2.data());
  CHECK(k1 != k2);
  CHECK(TensorGenerator::validate(shape).ok());
  CHECK_FALSE(TensorGenerator::validate({2, 4, 2, 16, 0, 16}).ok());
  CHECK_FALSE(TensorGenerator::validate({2, 3, 2, 32, 0, 16}).ok());
  CHECK(generator.rope().validate(32).ok());
}
