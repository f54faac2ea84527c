// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "cuda/boundary_agreement.hpp"
#include "cuda/boundary_scene.hpp"
#include "support/catch.hpp"

/// D_p, entropy and Δ on the device.
namespace growpage {
namespace {

using test::BoundaryCall;
using test::BoundaryOutcome;
using test::BoundaryScene;
using test::BoundarySpec;
using test::check_boundary;
using test::DeviceArray;

TEST_CASE("working set: metrics, reductions over the group, p") {
  const DemandMetric metric = GENERATE(DemandMetric::top_p, DemandMetric::entropy);
  const GroupReduction group =
      GENERATE(GroupReduction::mean_distribution, GroupReduction::per_query_head);
  const std::int32_t query_heads = GENERATE(2, 6, 16);
  const double query_scale = GENERATE(0.2, 3.0);  // flat and peaked attention
  CAPTURE(static_cast<int>(metric), static_cast<int>(group), query_heads, query_scale);
  BoundarySpec spec;
  spec.shape.query_heads = query_heads;
  spec.shape.layers = 1;
  spec.dtype = DType::f32;
  spec.query_scale = query_scale;
  spec.slots = {300, 17};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.scores = false;
  for (const float p : {0.5F, 0.99F, 1.0F}) {
    call.demand = {p, metric, group, nullptr};
    check_boundary(scene, call);
  }
}

/// A request whose logits are `logit(slot)` in every head: one element of key and query counts.
BoundaryScene with_logits(std::int32_t slots, const std::function<double(std::int32_t)>& logit) {
  BoundarySpec spec;
  spec.shape = {.layers = 1, .query_heads = 2, .kv_heads = 1, .head_dim = 16, .page_size = 16};
  spec.dtype = DType::f32;
  spec.slots = {slots};
  BoundaryScene scene(spec);
  std::vector<float> summaries(scene.state().summary_size(), 0.0F);
  for (std::size_t i = 0; i < summaries.size(); i += 16) summaries[i] = 1.0F;
  scene.state().set_summaries(summaries);
  scene.edit_keys([&](std::int32_t, std::int32_t, std::int32_t, std::int32_t s, void* key) {
    // Calibration makes the query's element 1 / (0.25 + 1e-6).
    store_element(key, DType::f32, 0, static_cast<float>(logit(s) * (0.25 + 1e-6)));
  });
  return scene;
}

TEST_CASE("working set: distributions that a search by digits could get wrong") {
  struct Shape {
    const char* name;
    std::function<double(std::int32_t)> logit;
  };
  const std::vector<Shape> shapes = {
      {"uniform", [](std::int32_t) { return 0.7; }},
      {"two values", [](std::int32_t s) { return s % 3 == 0 ? 1.0 : -2.0; }},
      {"one of many", [](std::int32_t s) { return s == 11 ? 60.0 : 0.0; }},
      {"geometric", [](std::int32_t s) { return -0.05 * s; }},
      {"down to the floor", [](std::int32_t s) { return -static_cast<double>(s); }},
      {"half below the floor", [](std::int32_t s) { return s % 2 == 0 ? 0.0 : -88.0; }},
      {"neighbouring floats", [](std::int32_t s) { return 1e-7 * (s % 5); }},
      {"few large, many equal small", [](std::int32_t s) { return s < 3 ? 5.0 : 0.0; }},
  };
  for (const Shape& shape : shapes) {
    for (const std::int32_t slots : {273, 40}) {
      BoundaryScene scene = with_logits(slots, shape.logit);
      for (const float p : {1e-6F, 0.25F, 0.5F, 0.9F, 0.99F, 0.999999F, 1.0F}) {
        for (const GroupReduction group :
             {GroupReduction::mean_distribution, GroupReduction::per_query_head}) {
          CAPTURE(shape.name, slots, p, static_cast<int>(group));
          BoundaryCall call;
          call.scores = false;
          call.softmax_scale = 1.0F;
          call.demand = {p, DemandMetric::top_p, group, nullptr};
          check_boundary(scene, call);
        }
      }
    }
  }
}

TEST_CASE("working set: ties count only as often as needed") {
  // 256 candidates of equal weight.
  BoundaryScene scene = with_logits(257, [](std::int32_t) { return 0.0; });
  BoundaryCall call;
  call.demand.p = 0.5F;
  CHECK(test::from_units(scene.device(call).sums[0]) == 0.5);
  call.demand.p = 0.501F;  // 128.256 weights
  CHECK(test::from_units(scene.device(call).sums[0]) == 129.0 / 256.0);
  call.demand.p = 1.0F;
  CHECK(test::from_units(scene.device(call).sums[0]) == 1.0);
}

TEST_CASE("working set: more equal weights than a 32-bit sum of their lower bits holds") {
  // 1/6000 has .92 · 2^20 in the bits below the first digit; 6000 times that is beyond 2^32.
  BoundaryScene scene = with_logits(6001, [](std::int32_t) { return 0.0; });
  BoundaryCall call;
  call.scores = false;
  call.demand.p = 0.5F;
  CHECK(test::from_units(scene.device(call).sums[0]) == 0.5);
}

TEST_CASE("working set: the same count as the oracle in nearly every head") {
  // The ranges that the other tests accept are for sums within rounding of p, which are rare.
  BoundarySpec spec;
  spec.shape = {.layers = 8, .query_heads = 12, .kv_heads = 4, .head_dim = 32, .page_size = 16};
  spec.dtype = DType::f32;
  spec.query_scale = 2.0;
  spec.slots = {200};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.scores = false;
  int different = 0;
  for (std::int32_t l = 0; l < spec.shape.layers; ++l) {
    call.layer_mask.assign(8, 0);
    call.layer_mask[static_cast<std::size_t>(l)] = 1;
    const BoundaryOutcome got = scene.device(call);
    const Demand want = scene.oracle(call, 0, call.demand.p).demand;
    different += std::abs(test::from_units(got.sums[0]) - want.short_sum) > 1e-9 ? 1 : 0;
    different += std::abs(test::from_units(got.sums[1]) - want.long_sum) > 1e-9 ? 1 : 0;
  }
  CHECK(different <= 1);
}

TEST_CASE("demand: Δ from sums, its sign exact, 0 without candidates") {
  constexpr std::uint64_t one = std::uint64_t{1} << 40;
  const std::vector<std::uint64_t> sums = {3 * one, 1 * one,  // short, long
                                           one,     one + 1, 0, 0, one * 4000 + 1, one * 4000};
  const DeviceArray<std::uint64_t> device_sums(sums);
  const DeviceArray<float> delta(std::vector<float>(5, 9.0F));
  REQUIRE(cuda::demand_delta(device_sums.get(), 4, delta.get(), 4, {}).ok());
  const std::vector<float> got = delta.download();
  CHECK(got[0] == 0.5F);
  CHECK(got[1] == -0x1p-42F);
  CHECK(got[2] == 0.0F);
  CHECK(got[3] == 0x1p-42F);
  CHECK(got[4] == 9.0F);  // not a request
}

TEST_CASE("demand: equal inputs give equal bits, whatever the order of blocks and threads") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const DemandMetric metric = GENERATE(DemandMetric::top_p, DemandMetric::entropy);
  BoundarySpec spec;
  spec.dtype = dtype;
  spec.window = 3;
  spec.slots = {300, 40};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.demand.metric = metric;
  call.retention.max_pool = 5;
  call.retention.redundancy_weight = 0.5F;
  const BoundaryOutcome first = scene.device(call);
  for (const std::int64_t wave_bytes : {0, 0, 1, 50'000}) {  // nor the division into waves
    call.wave_bytes = wave_bytes;
    const BoundaryOutcome again = scene.device(call);
    CHECK(again.sums == first.sums);
    CHECK(again.scores == first.scores);
  }
}

/// A rank of a tensor-parallel group: KV heads [first_head, first_head + kv_heads) of a model.
BoundaryScene rank_of(std::int32_t first_head, std::int32_t kv_heads) {
  constexpr std::int32_t group = 3;
  constexpr std::int32_t dim = 32;
  BoundarySpec spec;
  spec.shape = {.layers = 2,
                .query_heads = group * kv_heads,
                .kv_heads = kv_heads,
                .head_dim = dim,
                .page_size = 16};
  spec.slots = {300, 70};
  spec.seed = static_cast<std::uint64_t>(first_head + 10 * kv_heads);  // other pages in every rank
  BoundaryScene scene(spec);
  // Numbers depend on the head's place in the model alone.
  const auto value = [](std::int32_t a, std::int32_t b, std::int32_t c) {
    return static_cast<float>(std::sin(12.9898 * a + 78.233 * b + 37.719 * c));
  };
  scene.edit_keys([&](std::int32_t l, std::int32_t h, std::int32_t r, std::int32_t s, void* key) {
    for (std::int32_t i = 0; i < dim; ++i) {
      store_element(key, spec.dtype, i, 12.0F * value(s + 1000 * r, first_head + h + 50 * l, i));
    }
  });
  const std::int32_t heads = spec.shape.query_heads;
  std::vector<float> summaries(scene.state().summary_size());
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    const auto at = static_cast<std::int32_t>(i);
    const std::int32_t head = at / dim % heads + first_head * group;
    summaries[i] = value(at % dim, head, at / (dim * heads));
  }
  scene.state().set_summaries(summaries);
  return scene;
}

TEST_CASE("demand: ranks that add their sums agree with one that has all heads, bit for bit") {
  const auto sums_of = [](BoundaryScene scene) { return scene.device({}).sums; };
  const std::vector<std::uint64_t> all = sums_of(rank_of(0, 4));
  const std::vector<std::uint64_t> left = sums_of(rank_of(0, 2));
  const std::vector<std::uint64_t> right = sums_of(rank_of(2, 2));
  REQUIRE(all.size() == 4);
  std::vector<std::uint64_t> reduced;
  for (std::size_t i = 0; i < all.size(); ++i) reduced.push_back(left[i] + right[i]);
  CHECK(reduced == all);
  CHECK(left != right);
  const auto delta_of = [](const std::vector<std::uint64_t>& sums) {
    const DeviceArray<std::uint64_t> device_sums(sums);
    const DeviceArray<float> delta(std::vector<float>(2, 9.0F));
    REQUIRE(cuda::demand_delta(device_sums.get(), 2 * 4, delta.get(), 2, {}).ok());
    return delta.download();
  };
  CHECK(delta_of(reduced) == delta_of(all));
}

}  // namespace
}  // namespace growpage
