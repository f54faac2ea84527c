// SPDX-License-Identifier: Apache-2.0
// The SIMD form against the scalar oracle, on random shapes.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu_backends.hpp"
#include "backend/scene.hpp"
#include "support/catch.hpp"

namespace growpage::test {

namespace {

void compare(const SceneSpec& spec, const DemandOptions& demand, const RetentionOptions& retention,
             std::int32_t candidates, const RopeParams& rope = {}) {
  ScalarCpu scalar;
  SimdCpu simd;
  Scene<ScalarCpu> oracle(scalar, spec);
  Scene<SimdCpu> scene(simd, spec);
  const BoundaryOutcome want = oracle.boundary(demand, retention, candidates, rope);
  const BoundaryOutcome got = scene.boundary(demand, retention, candidates, rope);
  const double tolerance = 2e-5;
  INFO("dim " << spec.shape.head_dim << " group " << spec.shape.group() << " b "
              << spec.shape.page_size << " slots " << spec.slots << " " << dtype_name(spec.dtype)
              << " " << simd.name());
  double worst = 0;
  for (std::size_t i = 0; i < want.scores.size(); ++i) {
    const double a = double{want.scores[i]};
    const double b = double{got.scores[i]};
    REQUIRE(std::isfinite(a));
    REQUIRE(std::isfinite(b));
    worst = std::max(worst, std::abs(a - b) / (std::abs(a) + 1e-9));
  }
  CHECK(worst <= tolerance);
  REQUIRE(got.demand.count == want.demand.count);
  // Every term may be off by the weight at the edge of its working set.
  const double edge =
      candidates == 0 ? 0.0 : static_cast<double>(want.demand.count) * 1.001 / candidates;
  CHECK(std::abs(got.demand.short_sum - want.demand.short_sum) <= edge);
  CHECK(std::abs(got.demand.long_sum - want.demand.long_sum) <= edge);
}

SceneSpec random_spec(Random& random) {
  const std::int32_t dims[] = {1, 7, 64, 80, 96, 128, 192, 256};
  const std::int32_t sizes[] = {16, 32, 64, 128, 256, 512};
  const std::int32_t groups[] = {1, 2, 3, 4, 5, 7, 8, 17};
  SceneSpec spec;
  spec.seed = random.bits();
  spec.shape.layers = 1 + random.below(2);
  spec.shape.kv_heads = 1 + random.below(3);
  spec.shape.query_heads = spec.shape.kv_heads * groups[random.below(8)];
  spec.shape.head_dim = dims[random.below(8)];
  spec.shape.page_size = sizes[random.below(6)];
  spec.dtype = static_cast<DType>(random.below(3));
  spec.arrangement = static_cast<Arrangement>(random.below(4));
  spec.slots = 1 + random.below(4 * std::min(spec.shape.page_size, 128));
  return spec;
}

}  // namespace

TEST_CASE("SIMD equals scalar on random shapes", "[backend][forms]") {
  Random random(2024);
  for (int round = 0; round < 150; ++round) {
    const SceneSpec spec = random_spec(random);
    DemandOptions demand;
    demand.p = random.below(4) == 0 ? 1.0F : static_cast<float>(0.5 + 0.5 * random.uniform());
    demand.metric = static_cast<DemandMetric>(random.below(2));
    demand.group = static_cast<GroupReduction>(random.below(2));
    const std::int32_t candidates = (spec.slots - 1) / spec.shape.page_size * spec.shape.page_size;
    compare(spec, demand, {}, random.below(3) == 0 ? spec.slots : candidates);
  }
}

TEST_CASE("SIMD equals scalar with RoPE, window scores and Zipage's options", "[backend][forms]") {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    SceneSpec spec = random_spec(random);
    if (spec.shape.head_dim < 64) spec.shape.head_dim = 64;
    spec.window = 1 + random.below(9);
    spec.steps = random.below(20);
    spec.query_scale = 0.7;
    RopeParams rope;
    rope.rotary_dim = random.below(2) == 0 ? spec.shape.head_dim : 32;
    rope.pairing = static_cast<RopePairing>(random.below(2));
    std::vector<float> frequencies;
    for (std::int32_t i = 0; i < rope.rotary_dim / 2; ++i) {
      frequencies.push_back(static_cast<float>(std::pow(1e4, -2.0 * i / rope.rotary_dim)));
    }
    rope.inv_freq = frequencies.data();
    RetentionOptions retention;
    retention.score = static_cast<ScoreKind>(random.below(2));
    retention.window = 1 + random.below(16);
    retention.max_pool = random.below(2) * 5;
    // A mix of both signs has zeros, where a relative error means nothing: only f32 and f16.
    compare(spec, {}, retention, (spec.slots - 1) / 16 * 16, rope);
  }
}

TEST_CASE("redundancy: SIMD equals scalar", "[backend][forms]") {
  Random random(17);
  for (int round = 0; round < 10; ++round) {
    SceneSpec spec = random_spec(random);
    spec.dtype = DType::f32;
    RetentionOptions retention;
    retention.redundancy_weight = 1.0F;  // −redundancy alone
    compare(spec, {}, retention, 0);
  }
}

TEST_CASE("huge and tiny logits", "[backend][forms]") {
  for (const double scale : {1e-6, 30.0, 1e6, 1e30}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      SceneSpec spec;
      spec.dtype = dtype;
      spec.key_scale = scale;
      spec.query_scale = scale > 1e20 ? 1e8 : 1.0;
      ScalarCpu scalar;
      SimdCpu simd;
      const auto want = Scene<ScalarCpu>(scalar, spec).boundary({}, {}, 48);
      const auto got = Scene<SimdCpu>(simd, spec).boundary({}, {}, 48);
      for (std::size_t i = 0; i < got.scores.size(); ++i) {
        REQUIRE(std::isfinite(got.scores[i]));
        REQUIRE(got.scores[i] >= 0.0F);
        // With huge logits one slot takes all, the same in both forms; where the products overflow
        // a float it depends on the order of the additions.
        if (scale < 1e20) {
          REQUIRE(double{got.scores[i]} == Approx(double{want.scores[i]}).margin(1e-3));
        }
      }
      CHECK(got.demand.count == want.demand.count);
    }
  }
}

TEST_CASE("bad keys: NaN weighs nothing, infinity takes all, in both forms", "[backend][forms]") {
  SceneSpec spec;
  spec.slots = 50;
  spec.shape.query_heads = 2;
  spec.shape.head_dim = 2;
  const auto poison = [&](auto& backend, float first, float second) {
    Scene scene(backend, spec);
    // Every key's first two elements decide its logit's sign; slot 3 of head 0 is replaced.
    const KvView kv = scene.kv();
    auto* row = static_cast<float*>(kv.k.row(0, scene.pages[0], 0, 3));
    row[0] = first;
    row[1] = second;
    return scene.boundary({}, {}, 48);
  };
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  ScalarCpu scalar;
  SimdCpu simd;
  for (const float value : {nan, inf, -inf}) {
    const auto want = poison(scalar, value, 0.0F);
    const auto got = poison(simd, value, 0.0F);
    CHECK(got.demand.short_sum == Approx(want.demand.short_sum));
    CHECK(got.demand.long_sum == Approx(want.demand.long_sum));
    for (std::size_t i = 0; i < got.scores.size(); ++i) {
      REQUIRE(std::isfinite(got.scores[i]));
      REQUIRE(double{got.scores[i]} == Approx(double{want.scores[i]}).margin(1e-6));
    }
    if (std::isnan(value)) CHECK(got.scores[3] == 0.0F);
  }
}

TEST_CASE("select is exact: equal scores give equal sets in both forms", "[backend][forms]") {
  Random random(99);
  ScalarCpu scalar;
  SimdCpu simd;
  for (int round = 0; round < 60; ++round) {
    SceneSpec spec = random_spec(random);
    spec.shape.head_dim = 1;
    spec.slots = spec.shape.page_size * 2 + random.below(spec.shape.page_size * 3);
    Scene<ScalarCpu> oracle(scalar, spec);
    Scene<SimdCpu> scene(simd, spec);
    std::vector<float> scores(static_cast<std::size_t>(scene.rows()) *
                              static_cast<std::size_t>(spec.slots));
    const std::int32_t kinds = 1 + random.below(40);
    const float specials[] = {0.0F,
                              -0.0F,
                              std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::denorm_min()};
    for (float& x : scores) {
      x = round % 2 == 0 ? static_cast<float>(random.normal() * 1e-3)
                         : static_cast<float>(random.below(kinds));
      if (random.below(20) == 0) x = specials[random.below(6)];
    }
    std::vector<std::uint8_t> marks;
    for (std::int32_t p = 0; p < scene.page_count(); ++p) {
      marks.push_back(random.below(5) == 0 && p + 1 < scene.page_count() ? std::uint8_t{0}
                                                                         : std::uint8_t{1});
    }
    std::int32_t available = 0;
    for (std::int32_t s = 0; s < spec.slots; ++s) {
      available += marks[static_cast<std::size_t>(s / spec.shape.page_size)];
    }
    RetentionOptions options;
    options.recent = random.below(16);
    options.local_per_256 = random.below(257);
    const std::int32_t keep = std::max(available - spec.shape.page_size, 40);
    const auto want = oracle.select(scores, options, marks, keep, random.below(2) * 9);
    const auto got = scene.select(scores, options, marks, keep, 0);
    const auto same = oracle.select(scores, options, marks, keep, 0);
    CHECK(got.bits == same.bits);
    CHECK(got.page_kept == same.page_kept);
    // Protection changes which rows are kept, not how many.
    std::int32_t total = 0;
    std::int32_t total_protected = 0;
    for (const std::int32_t k : got.page_kept) total += k;
    for (const std::int32_t k : want.page_kept) total_protected += k;
    CHECK(total == (std::min(keep, available) + spec.slots - available) * scene.rows());
    CHECK(total == total_protected);
  }
}

TEST_CASE("the result does not depend on the number of workers", "[backend][forms]") {
  SceneSpec spec;
  spec.shape = {.layers = 3, .query_heads = 6, .kv_heads = 3, .head_dim = 80, .page_size = 32};
  spec.slots = 100;
  SimdCpu one;
  SimdCpu two(two_workers());
  Scene<SimdCpu> alone(one, spec);
  Scene<SimdCpu> shared(two, spec);
  const auto a = alone.boundary({}, {}, 96);
  const auto b = shared.boundary({}, {}, 96);
  CHECK(a.demand.short_sum == b.demand.short_sum);
  CHECK(a.demand.long_sum == b.demand.long_sum);
  CHECK(a.scores == b.scores);
  const std::vector<std::uint8_t> marks(4, page_private);
  CHECK(alone.select(a.scores, {}, marks, 68).bits == shared.select(b.scores, {}, marks, 68).bits);
}

TEST_CASE("the form: environment, names", "[backend]") {
  CHECK(std::string(ScalarCpu().name()) == "cpu-scalar");
  CHECK(std::string(SimdCpu().name()).rfind("cpu-", 0) == 0);
  CHECK(setenv("GROWPAGE_CPU", "scalar", 1) == 0);
  CHECK(std::string(CpuBackend().name()) == "cpu-scalar");
  CHECK(std::string(SimdCpu().name()) == std::string(CpuBackend({}, CpuBackend::Isa::simd).name()));
  CHECK(setenv("GROWPAGE_CPU", "simd", 1) == 0);
  CHECK(std::string(CpuBackend().name()) == SimdCpu().name());
  CHECK(setenv("GROWPAGE_CPU", "something else", 1) == 0);
  CHECK(std::string(CpuBackend().name()) == SimdCpu().name());
  CHECK(unsetenv("GROWPAGE_CPU") == 0);
}

}  // namespace growpage::test
