// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "support/catch.hpp"
#include "support/reference_scene.hpp"

namespace growpage {
namespace {

using reference::Row;
using test::Rows;
using test::Scene;
using test::score_distance;
using Isa = CpuBackend::Isa;

double distance(CpuBackend& backend, Scene& scene, const Scene::Call& call) {
  const auto want = reference::boundary(scene.boundary(call), 5e-6);
  const Scene::Answer got = scene.run(backend, call);
  CHECK(got.workspace_intact);
  return score_distance(got.scores, want);
}

Scene::Options base(std::int32_t slots, DType dtype = DType::f32) {
  Scene::Options options;
  options.cache = {.slots = slots, .dtype = dtype, .seed = 41};
  options.rotary_dim = 32;
  options.steps = 30;
  options.q_scale = 1.5;
  return options;
}

std::vector<Rows> random_scores(const CacheShape& shape, std::int32_t slots, double top) {
  test::Random random(42);
  std::vector<Rows> out;
  for (std::int32_t l = 0; l < shape.layers; ++l) {
    out.emplace_back();
    for (std::int32_t h = 0; h < shape.kv_heads; ++h) {
      Row row;
      for (std::int32_t s = 0; s < slots; ++s) row.push_back(top * random.uniform());
      out.back().push_back(row);
    }
  }
  return out;
}

TEST_CASE("scores: max of both summaries, max over the group, over all used slots") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::int32_t slots = GENERATE(128, 127, 40, 1);
  CAPTURE(static_cast<int>(isa), dtype_name(dtype), slots);
  CpuBackend backend({}, isa);
  Scene scene(backend, base(slots, dtype));
  CHECK(distance(backend, scene, {.slots = slots, .candidates = (slots - 1) / 16 * 16}) <= 1);
}

TEST_CASE("scores: the short and the long summary both have their say") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Scene::Options options;
  options.shape = {.layers = 1, .query_heads = 1, .kv_heads = 1, .head_dim = 16, .page_size = 16};
  options.cache = {.slots = 64};
  options.steps = 60;
  options.query = [](std::int32_t step, std::int32_t, std::int32_t) {
    Row q(16, 0.0);
    q[step < 30 ? 0 : 1] = 4.0;
    return q;
  };
  Scene scene(backend, options);
  for (std::int32_t s = 0; s < 64; ++s) {
    Row k(16, 0.0);
    if (s == 3) k[0] = 60.0;  // what the request used to look at
    if (s == 9) k[1] = 60.0;  // what it looks at now
    scene.cache.set_key(0, 0, s, k);
  }
  const Scene::Answer got = scene.run(backend, {.slots = 64, .candidates = 48});
  CHECK(got.scores[0][0][3] > 0.99);
  CHECK(got.scores[0][0][9] > 0.99);
  CHECK(got.scores[0][0][4] < 1e-6);
}

TEST_CASE("scores: Zipage's window, causal, max over the group, mean over the window") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const std::int32_t window = GENERATE(1, 5, 16);
  const std::int32_t steps =
      GENERATE(3, 16, 37);  // fewer queries than the window, once, many times round
  const std::int32_t slots = GENERATE(64, 61);
  CAPTURE(static_cast<int>(isa), window, steps, slots);
  CpuBackend backend({}, isa);
  Scene::Options options = base(slots);
  options.summary.window = GENERATE(0, 7) + window;  // the ring may hold more than w queries
  options.steps = steps;
  Scene scene(backend, options);
  Scene::Call call{.slots = slots, .candidates = 48};
  call.retention.score = ScoreKind::window;
  call.retention.window = window;
  CHECK(distance(backend, scene, call) <= 1);
}

TEST_CASE("scores: the window's queries are rotated at their own positions") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Scene::Options options = base(64);
  options.summary.window = 8;
  options.position = 5000;  // a compacted request: its true length is far beyond its slots
  options.drift = 0.05;
  Scene scene(backend, options);
  Scene::Call call{.slots = 64, .candidates = 48};
  call.retention.score = ScoreKind::window;
  call.retention.window = 8;
  CHECK(distance(backend, scene, call) <= 1);
}

TEST_CASE("scores: no query of the window sees a later token") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Scene::Options options;
  options.shape = {.layers = 1, .query_heads = 1, .kv_heads = 1, .head_dim = 16, .page_size = 16};
  options.cache = {.slots = 32};
  options.steps = 20;
  options.summary.window = 4;
  options.query = [](std::int32_t, std::int32_t, std::int32_t) { return Row(16, 0.0); };
  Scene scene(backend, options);
  Scene::Call call{.slots = 32, .candidates = 16};
  call.retention.score = ScoreKind::window;
  call.retention.window = 4;
  const Scene::Answer got = scene.run(backend, call);
  const Row& scores = got.scores[0][0];
  // Uniform attention over 32, 31, 30 and 29 visible slots.
  CHECK(scores[31] == Approx(1.0 / 32 / 4));
  CHECK(scores[30] == Approx((1.0 / 32 + 1.0 / 31) / 4));
  CHECK(scores[29] == Approx((1.0 / 32 + 1.0 / 31 + 1.0 / 30) / 4));
  CHECK(scores[28] == Approx((1.0 / 32 + 1.0 / 31 + 1.0 / 30 + 1.0 / 29) / 4));
  CHECK(scores[0] == Approx((1.0 / 32 + 1.0 / 31 + 1.0 / 30 + 1.0 / 29) / 4));
}

TEST_CASE("scores: max-pool along slots, clipped at both ends") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const ScoreKind kind = GENERATE(ScoreKind::summaries, ScoreKind::window);
  const std::int32_t width = GENERATE(1, 3, 5, 63);
  CAPTURE(static_cast<int>(isa), static_cast<int>(kind), width);
  CpuBackend backend({}, isa);
  Scene::Options options = base(61);
  options.summary.window = 6;
  Scene scene(backend, options);
  Scene::Call call{.slots = 61, .candidates = 48};
  call.retention.score = kind;
  call.retention.window = 6;
  call.retention.max_pool = width;
  CHECK(distance(backend, scene, call) <= 1);
}

TEST_CASE("scores: the global score is max(new, decay · old)") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const bool in_place = GENERATE(false, true);
  const std::int32_t pool = GENERATE(0, 5);
  CAPTURE(static_cast<int>(isa), in_place, pool);
  CpuBackend backend({}, isa);
  Scene scene(backend, base(64));
  Scene::Call call{.slots = 64, .candidates = 48};
  call.retention.global_decay = 0.8F;
  call.retention.max_pool = pool;
  call.old_scores = random_scores(scene.options.shape, 64, 0.05);
  call.old_in_place = in_place;
  CHECK(distance(backend, scene, call) <= 1);
  // Old scores far above any new one come back decayed.
  call.old_scores = random_scores(scene.options.shape, 64, 1e6);
  const Scene::Answer got = scene.run(backend, call);
  CHECK(got.scores[1][1][7] == Approx(double{0.8F} * call.old_scores[1][1][7]).epsilon(1e-5));
  // The newest page has none; without any, the new ones stand alone.
  call.old_scores = random_scores(scene.options.shape, 48, 0.05);
  CHECK(distance(backend, scene, call) <= 1);
  call.old_scores.clear();
  CHECK(distance(backend, scene, call) <= 1);
}

TEST_CASE("scores: with bf16 keys the query is rounded to bf16, in both forms") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CAPTURE(static_cast<int>(isa));
  CpuBackend backend({}, isa);
  Scene::Options options = base(256, DType::bf16);
  options.q_scale = 1.0;
  options.steps = 20;
  Scene scene(backend, options);
  const Scene::Call call{.slots = 256, .candidates = 240};
  reference::Boundary in = scene.boundary(call);
  const auto rounded = reference::boundary(in, 0);
  in.bf16_keys = false;
  const auto exact = reference::boundary(in, 0);
  const Scene::Answer got = scene.run(backend, call);
  // The mean of the relative errors tells one from the other: a single element that float
  // rounding turned to its neighbour does not weigh much in it.
  const auto mean_error = [&](const reference::BoundaryAnswer& want) {
    double sum = 0;
    double count = 0;
    for (std::size_t l = 0; l < want.scores.size(); ++l) {
      for (std::size_t h = 0; h < want.scores[l].size(); ++h) {
        for (std::size_t s = 0; s < 256; ++s) {
          const double w = want.scores[l][h][s];
          sum += std::abs(got.scores[l][h][s] - w) / w;
          ++count;
        }
      }
    }
    return sum / count;
  };
  CHECK(mean_error(rounded) < 1e-4);
  CHECK(mean_error(exact) > 5e-4);
  CHECK(mean_error(exact) < 5e-3);
}

TEST_CASE("scores: redundancy pushes down tokens whose keys say the same") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Scene::Options options;
  options.shape = {.layers = 1, .query_heads = 2, .kv_heads = 1, .head_dim = 64, .page_size = 16};
  options.cache = {.slots = 64, .seed = 43};
  Scene scene(backend, options);
  // Every fourth token has a key of its own, all others one and the same.
  const Row common = test::Random(44).normal_row(64);
  for (std::int32_t s = 0; s < 64; ++s) {
    if (s % 4 != 1) scene.cache.set_key(0, 0, s, common);
  }
  Scene::Call call{.slots = 64, .candidates = 48};
  const Scene::Answer plain = scene.run(backend, call);
  call.retention.redundancy_weight = 1.0F;  // redundancy alone: score = −redundancy
  const Scene::Answer alone = scene.run(backend, call);
  double unique_lowest = 1e9;
  double common_highest = -1e9;
  for (std::int32_t s = 0; s < 64; ++s) {
    const double score = alone.scores[0][0][static_cast<std::size_t>(s)];
    if (s % 4 == 1) {
      unique_lowest = std::min(unique_lowest, score);
    } else {
      common_highest = std::max(common_highest, score);
    }
    CHECK(std::isfinite(score));
  }
  CHECK(unique_lowest > common_highest);
  // (1 − λ)·score − λ·redundancy is linear in λ.
  call.retention.redundancy_weight = 0.25F;
  const Scene::Answer mixed = scene.run(backend, call);
  double worst = 0;
  for (std::size_t s = 0; s < 64; ++s) {
    const double want = 0.75 * plain.scores[0][0][s] + 0.25 * alone.scores[0][0][s];
    worst = std::max(worst, std::abs(mixed.scores[0][0][s] - want));
  }
  CHECK(worst < 1e-5);
}

TEST_CASE("scores: Zipage's whole pipeline runs on NaN-free numbers") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  CpuBackend backend({}, isa);
  Scene::Options options = base(127, dtype);
  options.summary.window = 16;
  Scene scene(backend, options);
  Scene::Call call{.slots = 127, .candidates = 112};
  call.retention.score = ScoreKind::window;
  call.retention.max_pool = 5;
  call.retention.global_decay = 0.8F;
  call.old_scores = random_scores(scene.options.shape, 127, 0.01);
  CHECK(distance(backend, scene, call) <= 1);
  call.retention.redundancy_weight = 0.8F;
  const Scene::Answer got = scene.run(backend, call);
  bool finite = true;
  for (const Rows& layer : got.scores) {
    for (const Row& row : layer) {
      for (const double x : row) finite = finite && std::isfinite(x);
    }
  }
  CHECK(finite);
  CHECK(got.workspace_intact);
}

}  // namespace
}  // namespace growpage
