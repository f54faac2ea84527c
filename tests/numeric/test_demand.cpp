// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "support/catch.hpp"
#include "support/reference_scene.hpp"

namespace growpage {
namespace {

using reference::Row;
using test::Arrangement;
using test::inside;
using test::Scene;
using test::score_distance;
using Isa = CpuBackend::Isa;

/// How far a kernel's p may be off: float rounding of up to a thousand weights.
constexpr double slack = 5e-6;

void agree(CpuBackend& backend, Scene& scene, const Scene::Call& call) {
  const reference::BoundaryAnswer want = reference::boundary(scene.boundary(call), slack);
  const Scene::Answer got = scene.run(backend, call);
  CAPTURE(got.demand.short_ratio(), want.short_ratio.low, want.short_ratio.high,
          got.demand.long_ratio(), want.long_ratio.low, want.long_ratio.high);
  const double tolerance = call.demand.metric == DemandMetric::entropy ? 2e-5 : 1e-9;
  CHECK(inside(got.demand.short_ratio(), want.short_ratio, tolerance));
  CHECK(inside(got.demand.long_ratio(), want.long_ratio, tolerance));
  // The ranges are narrow, or the comparison would say nothing.
  CHECK(want.short_ratio.high - want.short_ratio.low < 0.02 + 2 * want.logit_error);
  CHECK(score_distance(got.scores, want) <= 1);
  CHECK(got.workspace_intact);
}

TEST_CASE("demand: random requests of every metric and reduction") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const double q_scale = GENERATE(0.3, 3.0);  // flat and peaked attention
  CpuBackend backend({}, isa);
  Scene::Options options;
  options.shape.layers = 3;
  options.cache = {.slots = 16 * 9, .dtype = dtype, .seed = 21};
  options.q_scale = q_scale;
  options.rotary_dim = 32;
  Scene scene(backend, options);
  for (const DemandMetric metric : {DemandMetric::top_p, DemandMetric::entropy}) {
    for (const GroupReduction group :
         {GroupReduction::mean_distribution, GroupReduction::per_query_head}) {
      for (const float p : {0.99F, 0.5F, 0.9F}) {
        CAPTURE(static_cast<int>(isa), dtype_name(dtype), q_scale, static_cast<int>(metric),
                static_cast<int>(group), p);
        Scene::Call call{.slots = 144, .candidates = 128};
        call.demand = {p, metric, group, nullptr};
        agree(backend, scene, call);
      }
    }
  }
}

struct Heads {
  std::int32_t query, kv, dim;
};

TEST_CASE("demand: head counts and dims of real models, all memory arrangements") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const Arrangement arrangement =
      GENERATE(Arrangement::nhd, Arrangement::hnd, Arrangement::padded, Arrangement::per_layer);
  const Heads heads = GENERATE(Heads{28, 4, 16}, Heads{8, 8, 7}, Heads{6, 2, 80}, Heads{8, 1, 128});
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  CAPTURE(static_cast<int>(isa), static_cast<int>(arrangement), heads.query, heads.kv, heads.dim,
          dtype_name(dtype));
  CpuBackend backend({}, isa);
  Scene::Options options;
  options.shape = {.layers = 2,
                   .query_heads = heads.query,
                   .kv_heads = heads.kv,
                   .head_dim = heads.dim,
                   .page_size = 16};
  options.cache = {.slots = 16 * 4, .dtype = dtype, .arrangement = arrangement, .seed = 22};
  options.steps = 12;
  Scene scene(backend, options);
  agree(backend, scene, {.slots = 64, .candidates = 48});
}

TEST_CASE("demand: n = P·b − 1 and other fill levels; unused slots are NaN") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const std::int32_t slots = GENERATE(127, 128, 113, 97, 17);
  CAPTURE(static_cast<int>(isa), slots);
  CpuBackend backend({}, isa);
  Scene::Options options;
  options.cache = {.slots = slots, .seed = 23};
  Scene scene(backend, options);
  // Every page but the newest, however full that is.
  agree(backend, scene, {.slots = slots, .candidates = (slots - 1) / 16 * 16});
}

TEST_CASE("demand: an explicit softmax scale, f16 summaries, fewer slots than pages hold") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Scene::Options options;
  options.cache = {.slots = 96, .seed = 24};
  Scene scene(backend, options);
  Scene::Call call{.slots = 96, .candidates = 80};
  call.softmax_scale = 0.5F;
  agree(backend, scene, call);
  agree(backend, scene, {.slots = 90, .candidates = 80});

  options.summary.storage = SummaryOptions::Storage::f16_stochastic;
  Scene halved(backend, options);
  agree(backend, halved, {.slots = 96, .candidates = 80});
}

TEST_CASE("demand: two workers answer bit for bit what one answers") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  CpuBackend one({}, isa);
  CpuBackend two(test::two_threads(), isa);
  Scene::Options options;
  options.shape.layers = 3;
  options.shape.kv_heads = 4;
  options.cache = {.slots = 144, .dtype = dtype, .seed = 29};
  options.summary.window = 8;
  Scene scene(one, options);
  Scene::Call call{.slots = 144, .candidates = 128};
  for (const ScoreKind kind : {ScoreKind::summaries, ScoreKind::window}) {
    call.retention.score = kind;
    call.retention.max_pool = 5;
    call.retention.redundancy_weight = 0.5F;
    const Scene::Answer a = scene.run(one, call);
    const Scene::Answer b = scene.run(two, call);
    CHECK(a.scores == b.scores);
    CHECK(a.demand.short_sum == b.demand.short_sum);
    CHECK(a.demand.long_sum == b.demand.long_sum);
    CHECK(a.demand.count == b.demand.count);
    CHECK(b.workspace_intact);
  }
}

TEST_CASE("demand: one large page of 512 tokens and many small pages") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const std::int32_t page_size = GENERATE(16, 64, 512);
  CAPTURE(static_cast<int>(isa), page_size);
  CpuBackend backend({}, isa);
  Scene::Options options;
  options.shape.page_size = page_size;
  options.cache = {.slots = 1024, .seed = 25};
  options.steps = 10;
  Scene scene(backend, options);
  agree(backend, scene, {.slots = 1024, .candidates = 1024 - page_size});
}

/// One layer, G = 1 by default; every query is 4·e₀, so that K's first element alone sets the
/// logit.
struct Designed {
  Designed(CpuBackend& backend, std::int32_t slots, std::int32_t query_heads = 1,
           std::int32_t kv_heads = 1)
      : scene(backend, options(slots, query_heads, kv_heads)) {}

  static Scene::Options options(std::int32_t slots, std::int32_t query_heads,
                                std::int32_t kv_heads) {
    Scene::Options o;
    o.shape = {.layers = 1,
               .query_heads = query_heads,
               .kv_heads = kv_heads,
               .head_dim = 16,
               .page_size = 16};
    o.cache = {.slots = slots};
    o.steps = 1;
    // e₀ for the first group, e₁ for the second, …
    o.query = [=](std::int32_t, std::int32_t, std::int32_t h) {
      Row q(16, 0.0);
      q[static_cast<std::size_t>(h / (query_heads / kv_heads))] = 4.0;
      return q;
    };
    return o;
  }
  /// Logit of each slot (scale 1/√16 · 4 = 1, up to ε of the calibration).
  void logits(std::int32_t kv_head, const std::function<double(std::int32_t)>& logit) {
    for (std::int32_t s = 0; s < scene.options.cache.slots; ++s) {
      Row k(16, 0.0);
      k[static_cast<std::size_t>(kv_head)] = logit(s);
      scene.cache.set_key(0, kv_head, s, k);
    }
  }
  Scene scene;
};

constexpr double nowhere = -1e4;  // weight 0 in float and in double

TEST_CASE("demand: ties at the threshold are counted only as many as needed") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Designed d(backend, 128);
  const auto ratio = [&](float p) {
    Scene::Call call{.slots = 128, .candidates = 112};
    call.demand.p = p;
    const Demand got = d.scene.run(backend, call).demand;
    CHECK(got.short_sum == got.long_sum);  // one step: S = L
    CHECK(got.delta() == 0.0);
    return got.short_ratio() * 112;
  };
  d.logits(0, [](std::int32_t) { return 0.5; });
  CHECK(ratio(0.99F) == Approx(111));  // 110.88
  CHECK(ratio(0.5F) == Approx(56));    // reached exactly
  CHECK(ratio(1.0F) == Approx(112));
  CHECK(ratio(1e-6F) == Approx(1));

  // Eight equal weights, the others exactly zero: p = 1 needs no zero weight.
  d.logits(0, [](std::int32_t s) { return s % 14 == 3 ? 2.0 : nowhere; });
  CHECK(ratio(1.0F) == Approx(8));
  CHECK(ratio(0.5F) == Approx(4));
  CHECK(ratio(0.51F) == Approx(5));

  // One weight of 1/2 and sixteen of 1/32.
  d.logits(0, [](std::int32_t s) { return s == 100 ? std::log(16.0) : s < 16 ? 0.0 : nowhere; });
  CHECK(ratio(0.49F) == Approx(1));
  CHECK(ratio(0.52F) == Approx(2));
  CHECK(ratio(0.99F) == Approx(17));
  CHECK(ratio(0.95F) == Approx(16));  // 1/2 + 15/32 = 0.969, 1/2 + 14/32 = 0.9375

  // All the mass on one slot.
  d.logits(0, [](std::int32_t s) { return s == 31 ? 0.0 : nowhere; });
  CHECK(ratio(0.99F) == Approx(1));
  CHECK(ratio(1.0F) == Approx(1));
}

TEST_CASE("demand: p = 1 counts every weight, however small") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Designed d(backend, 128);
  // From e⁻¹⁵ to 1: a float sum no longer changes when the smallest are added.
  d.logits(0, [](std::int32_t s) { return s == 0 ? 15.0 : 0.01 * (s % 7); });
  Scene::Call call{.slots = 128, .candidates = 112};
  call.demand.p = 1.0F;
  CHECK(d.scene.run(backend, call).demand.short_ratio() == 1.0);
}

TEST_CASE("demand: only the candidates count; scores see every used slot") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Designed d(backend, 64);
  d.logits(0, [](std::int32_t s) { return s >= 48 ? 20.0 : 0.0; });  // the newest page has it all
  const Scene::Answer got = d.scene.run(backend, {.slots = 64, .candidates = 48});
  CHECK(got.demand.short_ratio() == 1.0);  // 48 equal weights: 0.99 · 48 = 47.52
  CHECK(got.scores[0][0][50] == Approx(1.0 / 16).epsilon(1e-4));
  CHECK(got.scores[0][0][10] < 1e-8);
}

TEST_CASE("demand: one candidate is its own working set, none leaves the result alone") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DemandMetric metric = GENERATE(DemandMetric::top_p, DemandMetric::entropy);
  CpuBackend backend({}, isa);
  Designed d(backend, 16);
  d.logits(0, [](std::int32_t s) { return 0.1 * s; });
  Scene::Call call{.slots = 16, .candidates = 1};
  call.demand.metric = metric;
  Scene::Answer got = d.scene.run(backend, call);
  CHECK(got.demand.short_ratio() == 1.0);
  CHECK(got.demand.long_ratio() == 1.0);

  call.candidates = 0;
  call.before = {1.5, 0.25, 7};
  got = d.scene.run(backend, call);
  CHECK(got.demand.short_sum == 1.5);
  CHECK(got.demand.long_sum == 0.25);
  CHECK(got.demand.count == 7);
  // The scores are there all the same.
  const auto want = reference::boundary(d.scene.boundary(call), 0);
  CHECK(score_distance(got.scores, want.scores, 1e-5, 1e-8) <= 1);
  // A single used slot has all the attention.
  call.slots = 1;
  CHECK(d.scene.run(backend, call).scores[0][0][0] == 1.0);
}

TEST_CASE("demand: the result is added to, scores and demand can be left out") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Scene::Options options;
  options.cache = {.slots = 64, .seed = 26};
  Scene scene(backend, options);
  Scene::Call call{.slots = 64, .candidates = 48};
  const Scene::Answer both = scene.run(backend, call);
  call.before = {0.5, 0.25, 3};
  const Scene::Answer added = scene.run(backend, call);
  CHECK(added.demand.short_sum == Approx(both.demand.short_sum + 0.5));
  CHECK(added.demand.long_sum == Approx(both.demand.long_sum + 0.25));
  CHECK(added.demand.count == both.demand.count + 3);

  call.want_scores = false;
  const Scene::Answer demand_only = scene.run(backend, call);
  CHECK(demand_only.demand.short_sum == added.demand.short_sum);
  CHECK(std::isnan(demand_only.scores[0][0][0]));
  call.want_scores = true;
  call.want_demand = false;
  const Scene::Answer scores_only = scene.run(backend, call);
  CHECK(score_distance(scores_only.scores, both.scores, 1e-5, 1e-9) <= 1);
  CHECK(scores_only.demand.count == 3);
}

TEST_CASE("demand: query head h reads KV head h / G, not h % Hkv") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const GroupReduction group =
      GENERATE(GroupReduction::mean_distribution, GroupReduction::per_query_head);
  CpuBackend backend({}, isa);
  Designed d(backend, 64, 8, 2);  // heads 0–3 ask e₀, heads 4–7 ask e₁
  d.logits(0, [](std::int32_t) { return 0.0; });
  d.logits(1, [](std::int32_t s) { return s == 5 ? 60.0 : 0.0; });
  Scene::Call call{.slots = 64, .candidates = 48};
  call.demand.group = group;
  const Scene::Answer got = d.scene.run(backend, call);
  // KV head 0: uniform. KV head 1: all four of its heads look at slot 5 alone.
  CHECK(got.demand.short_ratio() == Approx((1.0 + 1.0 / 48) / 2));
  CHECK(got.scores[0][0][5] == Approx(1.0 / 64));
  CHECK(got.scores[0][1][5] == Approx(1.0));
  CHECK(got.scores[0][1][6] < 1e-8);
}

TEST_CASE("demand: one set of the mean distribution is not the mean of the sets") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Scene::Options options = Designed::options(64, 2, 1);
  // Two heads of one group, each with all its attention on a slot of its own.
  options.query = [](std::int32_t, std::int32_t, std::int32_t h) {
    Row q(16, 0.0);
    q[static_cast<std::size_t>(h)] = 4.0;
    return q;
  };
  Scene scene(backend, options);
  for (std::int32_t s = 0; s < 64; ++s) {
    Row k(16, 0.0);
    if (s == 3) k[0] = 50.0;
    if (s == 9) k[1] = 50.0;
    scene.cache.set_key(0, 0, s, k);
  }
  Scene::Call call{.slots = 64, .candidates = 48};
  CHECK(scene.run(backend, call).demand.short_ratio() == Approx(2.0 / 48));
  call.demand.group = GroupReduction::per_query_head;
  CHECK(scene.run(backend, call).demand.short_ratio() == Approx(1.0 / 48));
}

TEST_CASE("demand: masked layers do not count, but are scored") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Scene::Options options;
  options.shape.layers = 4;
  options.cache = {.slots = 64, .seed = 27};
  options.q_scale = 2.0;
  Scene scene(backend, options);
  const std::vector<std::vector<std::uint8_t>> masks{{0, 1, 0, 7}, {1, 1, 1, 1}, {0, 0, 1, 0}};
  std::int64_t counts[3] = {};
  for (std::size_t i = 0; i < masks.size(); ++i) {
    CAPTURE(i);
    Scene::Call call{.slots = 64, .candidates = 48};
    call.demand.layer_mask = masks[i].data();
    agree(backend, scene, call);
    counts[i] = scene.run(backend, call).demand.count;
  }
  CHECK(counts[0] == 2 * counts[2]);
  CHECK(counts[1] == 4 * counts[2]);
  CHECK(counts[2] > 0);
  const std::vector<std::uint8_t> none(4, 0);
  Scene::Call call{.slots = 64, .candidates = 48};
  call.demand.layer_mask = none.data();
  CHECK(scene.run(backend, call).demand.count == 0);
}

TEST_CASE("demand: Δ is positive when attention widens and negative when it narrows") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const bool widening = GENERATE(true, false);
  CpuBackend backend({}, isa);
  Scene::Options options = Designed::options(128, 1, 1);
  options.steps = 60;
  // Early queries look at one slot (e₀), late ones everywhere (e₁), or the other way round.
  options.query = [=](std::int32_t step, std::int32_t, std::int32_t) {
    Row q(16, 0.0);
    q[(step < 20) == widening ? 0 : 1] = 4.0;
    return q;
  };
  Scene scene(backend, options);
  for (std::int32_t s = 0; s < 128; ++s) {
    Row k(16, 0.0);
    if (s == 3) k[0] = 40.0;
    scene.cache.set_key(0, 0, s, k);
  }
  const Scene::Call call{.slots = 128, .candidates = 112};
  const double delta = scene.run(backend, call).demand.delta();
  CHECK((widening ? delta > 0.5 : delta < -0.5));
  agree(backend, scene, call);
}

TEST_CASE("demand: a summary is calibrated to the latest query's RMS") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Scene::Options options;
  options.cache = {.slots = 64, .seed = 28};
  options.drift = 1.0;  // independent queries: the long summary's RMS is a small part of q's
  options.steps = 30;
  Scene scene(backend, options);
  agree(backend, scene, {.slots = 64, .candidates = 48});

  // Queries that cancel out: RMS(q̄) = 0 leaves a zero query and uniform attention, not NaN.
  Scene::Options zero = Designed::options(64, 1, 1);
  zero.query = [](std::int32_t, std::int32_t, std::int32_t) { return Row(16, 0.0); };
  Scene still(backend, zero);
  const Scene::Answer got = still.run(backend, {.slots = 64, .candidates = 48});
  CHECK(got.demand.short_ratio() == 1.0);
  CHECK(got.scores[0][0][7] == Approx(1.0 / 64));
}

}  // namespace
}  // namespace growpage
