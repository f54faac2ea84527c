// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "support/catch.hpp"
#include "support/reference_scene.hpp"

namespace growpage {
namespace {

using test::inside;
using test::Scene;
using test::score_distance;
using Isa = CpuBackend::Isa;

double distance(CpuBackend& backend, Scene& scene, double relative = 1e-4) {
  const Scene::Call call{.slots = scene.options.cache.slots, .candidates = 48};
  const auto want = reference::boundary(scene.boundary(call), 5e-6);
  const Scene::Answer got = scene.run(backend, call);
  CHECK(inside(got.demand.short_ratio(), want.short_ratio));
  CHECK(inside(got.demand.long_ratio(), want.long_ratio));
  return score_distance(got.scores, want.scores, relative, 1e-7);
}

Scene::Options base(std::int32_t dim) {
  Scene::Options options;
  options.shape.head_dim = dim;
  options.cache = {.slots = 64, .seed = 31};
  options.steps = 8;
  return options;
}

TEST_CASE("rope: pairings, partial dims, attention scale") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const RopePairing pairing = GENERATE(RopePairing::half_split, RopePairing::interleaved);
  const std::int32_t rotary = GENERATE(0, 2, 10, 24, 48);
  const float scale = GENERATE(1.0F, 1.34F);
  CAPTURE(static_cast<int>(isa), static_cast<int>(pairing), rotary, scale);
  CpuBackend backend({}, isa);
  Scene::Options options = base(48);
  options.pairing = pairing;
  options.rotary_dim = rotary;
  options.attention_scale = scale;
  options.position = 1234;
  Scene scene(backend, options);
  CHECK(distance(backend, scene) <= 1);

  // The test can tell: another pairing, position or scale gives other scores.
  if (rotary >= 10) {
    scene.rope.pairing =
        pairing == RopePairing::half_split ? RopePairing::interleaved : RopePairing::half_split;
    const Scene::Call call{.slots = 64, .candidates = 48};
    const auto other = reference::boundary(scene.boundary(call), 0);
    scene.rope.pairing = pairing;
    CHECK(score_distance(scene.run(backend, call).scores, other.scores, 1e-4, 1e-7) > 10);
  }
}

TEST_CASE("rope: tables are read at the row of the position and win over frequencies") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const RopePairing pairing = GENERATE(RopePairing::half_split, RopePairing::interleaved);
  CpuBackend backend({}, isa);
  Scene::Options options = base(32);
  options.rotary_dim = 20;
  options.pairing = pairing;
  options.position = 99;  // the last row
  Scene scene(backend, options);
  test::Random random(5);
  std::vector<float> cosines, sines;
  for (int i = 0; i < 100 * 10; ++i) {
    cosines.push_back(static_cast<float>(random.normal()));
    sines.push_back(static_cast<float>(random.normal()));
  }
  scene.rope.cos_table = cosines.data();
  scene.rope.sin_table = sines.data();
  scene.rope.max_position = 100;
  CHECK(distance(backend, scene) <= 1);
  scene.rope.inv_freq = nullptr;
  CHECK(distance(backend, scene) <= 1);
}

TEST_CASE("rope: large positions do not lose their phase") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  // 2^24 + 1 is the first position a float cannot hold.
  const std::int64_t position =
      GENERATE(std::int64_t{131071}, std::int64_t{1000003}, (std::int64_t{1} << 24) + 1);
  CAPTURE(static_cast<int>(isa), position);
  CpuBackend backend({}, isa);
  Scene::Options options = base(64);
  options.rotary_dim = 64;
  options.position = position;
  Scene scene(backend, options);
  CHECK(distance(backend, scene) <= 1);
}

}  // namespace
}  // namespace growpage
