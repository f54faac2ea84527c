// SPDX-License-Identifier: Apache-2.0
// Softmax under the contract's rules: NaN = −inf, +inf = the largest float, all −inf = uniform.
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "support/catch.hpp"
#include "support/reference_scene.hpp"

namespace growpage {
namespace {

using reference::Row;
using test::inside;
using test::Scene;
using test::score_distance;
using Isa = CpuBackend::Isa;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// One KV head with two query heads; all queries are 4·e₀, K's first element is the logit.
struct Fixture {
  explicit Fixture(CpuBackend& cpu, DType dtype = DType::f32)
      : backend(cpu), scene(cpu, options(dtype)) {}

  static Scene::Options options(DType dtype) {
    Scene::Options o;
    o.shape = {.layers = 1, .query_heads = 2, .kv_heads = 1, .head_dim = 16, .page_size = 16};
    o.cache = {.slots = slots, .dtype = dtype};
    o.steps = 1;
    o.query = [](std::int32_t, std::int32_t, std::int32_t) {
      Row q(16, 0.0);
      q[0] = 4.0;
      return q;
    };
    return o;
  }
  void logit(std::int32_t slot, double value) {
    // Zeros elsewhere, where the queries are zero: no 0 · inf beside the logit asked for.
    Row k(16, 0.0);
    k[0] = value;
    scene.cache.set_key(0, 0, slot, k);
  }
  void all(double value) {
    for (std::int32_t s = 0; s < slots; ++s) logit(s, value);
  }
  Scene::Answer run() { return scene.run(backend, {.slots = slots, .candidates = candidates}); }
  /// Agreement with the reference, which knows the rules.
  void check() {
    const Scene::Call call{.slots = slots, .candidates = candidates};
    const auto want = reference::boundary(scene.boundary(call), 5e-6);
    const Scene::Answer got = run();
    CHECK(score_distance(got.scores, want) <= 1);
    CHECK(inside(got.demand.short_ratio(), want.short_ratio));
    CHECK(inside(got.demand.long_ratio(), want.long_ratio));
  }

  static constexpr std::int32_t slots = 64, candidates = 48;
  CpuBackend& backend;
  Scene scene;
};

TEST_CASE("softmax: a NaN logit has weight 0") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  CAPTURE(static_cast<int>(isa), dtype_name(dtype));
  CpuBackend backend({}, isa);
  Fixture f(backend, dtype);
  f.all(0.0);
  for (const std::int32_t s : {0, 7, 13, 47, 50, 63}) f.logit(s, nan);
  const Scene::Answer got = f.run();
  CHECK(got.scores[0][0][7] == 0.0);
  CHECK(got.scores[0][0][63] == 0.0);
  CHECK(got.scores[0][0][8] == Approx(1.0 / 58));
  CHECK(got.demand.short_ratio() == Approx(44.0 / 48));  // 0.99 · 44 = 43.56
  f.check();
}

TEST_CASE("softmax: −inf logits have weight 0") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  CAPTURE(static_cast<int>(isa), dtype_name(dtype));
  CpuBackend backend({}, isa);
  Fixture f(backend, dtype);
  f.all(0.0);
  for (std::int32_t s = 0; s < 24; ++s) f.logit(s, -inf);
  CHECK(f.run().scores[0][0][24] == Approx(1.0 / 40));
  CHECK(f.run().scores[0][0][3] == 0.0);
  f.check();
}

TEST_CASE("softmax: a row without a finite logit is uniform") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  CAPTURE(static_cast<int>(isa), dtype_name(dtype));
  CpuBackend backend({}, isa);
  Fixture f(backend, dtype);
  f.all(-inf);
  for (std::int32_t s = 0; s < 64; s += 3) f.logit(s, nan);
  Scene::Answer got = f.run();
  CHECK(got.scores[0][0][0] == Approx(1.0 / 64));
  CHECK(got.scores[0][0][1] == Approx(1.0 / 64));
  CHECK(got.demand.short_ratio() == 1.0);
  f.check();
  // All candidates at −inf, one finite logit on the newest page: the demand is uniform, the scores
  // are not.
  f.logit(60, 0.0);
  got = f.run();
  CHECK(got.demand.short_ratio() == 1.0);
  CHECK(got.scores[0][0][60] == 1.0);
  CHECK(got.scores[0][0][0] == 0.0);
  f.check();
}

TEST_CASE("softmax: +inf counts as the largest float") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  CAPTURE(static_cast<int>(isa), dtype_name(dtype));
  CpuBackend backend({}, isa);
  Fixture f(backend, dtype);
  f.all(3.0);
  f.logit(5, inf);
  f.logit(29, inf);
  f.logit(30, nan);
  f.logit(31, -inf);
  const Scene::Answer got = f.run();
  CHECK(got.scores[0][0][5] == Approx(0.5));
  CHECK(got.scores[0][0][29] == Approx(0.5));
  CHECK(got.scores[0][0][6] == 0.0);
  CHECK(got.demand.short_ratio() == Approx(2.0 / 48));
  f.check();
}

TEST_CASE("softmax: huge and tiny logits neither overflow nor vanish") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Fixture f(backend);
  for (const double height : {1e3, -1e3, 1e6, -1e6, 1e30, -1e30}) {
    CAPTURE(static_cast<int>(isa), height);
    f.all(height);  // equal logits: uniform at any height
    CHECK(f.run().scores[0][0][9] == Approx(1.0 / 64));
    CHECK(f.run().demand.short_ratio() == 1.0);
    f.logit(9, height + std::abs(height));
    CHECK(f.run().scores[0][0][9] == Approx(1.0));
    f.check();
  }
  f.all(1e-30);
  CHECK(f.run().scores[0][0][9] == Approx(1.0 / 64));
  // Weights far below 1 but above the smallest float keep their value.
  f.all(-80.0);
  f.logit(0, 0.0);
  CHECK(f.run().scores[0][0][9] == Approx(std::exp(-80.0)).epsilon(1e-3));
  // Weights below the smallest float are 0, not NaN.
  f.all(-200.0);
  f.logit(0, 0.0);
  CHECK(f.run().scores[0][0][9] < 1e-37);
  CHECK(f.run().scores[0][0][0] == Approx(1.0));
}

TEST_CASE("softmax: a NaN in the query's own summary leaves uniform attention") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Scene::Options options = Fixture::options(DType::f32);
  options.query = [](std::int32_t, std::int32_t, std::int32_t) { return Row(16, nan); };
  Scene scene(backend, options);
  const Scene::Answer got = scene.run(backend, {.slots = 64, .candidates = 48});
  CHECK(got.demand.short_ratio() == 1.0);
  CHECK(got.scores[0][0][0] == Approx(1.0 / 64));
  CHECK(got.scores[0][0][63] == Approx(1.0 / 64));
}

}  // namespace
}  // namespace growpage
