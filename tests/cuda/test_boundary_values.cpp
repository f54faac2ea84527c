// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <vector>

#include "cuda/boundary_agreement.hpp"
#include "cuda/boundary_scene.hpp"
#include "support/catch.hpp"

/// Numbers at the edges: the boundary pass on the device against the scalar CPU backend.
namespace growpage {
namespace {

using test::BoundaryCall;
using test::BoundaryScene;
using test::BoundarySpec;
using test::check_boundary;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("values: NaN and infinite keys, one element of some rows") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const float value = GENERATE(nan, inf, -inf);
  const bool tail = GENERATE(false, true);
  CAPTURE(dtype_name(dtype), value, tail);
  BoundarySpec spec;
  spec.dtype = dtype;
  spec.slots = {72};
  BoundaryScene scene(spec);
  scene.edit_keys([&](std::int32_t l, std::int32_t h, std::int32_t, std::int32_t s, void* key) {
    const bool chosen = tail ? s == 66 : s % 9 == 4;
    if (chosen && (l + h) % 2 == 0) store_element(key, dtype, (s * 5) % 64, value);
  });
  check_boundary(scene, {});
}

TEST_CASE("values: rows without any finite logit are uniform") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::int32_t which = GENERATE(0, 1, 2);  // all slots, the candidates, the later ones
  CAPTURE(dtype_name(dtype), which);
  BoundarySpec spec;
  spec.dtype = dtype;
  spec.slots = {300, 40};
  spec.window = 3;
  BoundaryScene scene(spec);
  scene.edit_keys([&](std::int32_t, std::int32_t, std::int32_t r, std::int32_t s, void* key) {
    const bool candidate = s < scene.candidates({}, r);
    if (which == 0 || (which == 1) == candidate) store_element(key, dtype, 3, nan);
  });
  BoundaryCall call;
  call.demand.p = GENERATE(0.99F, 1.0F);
  check_boundary(scene, call);
  call.retention.score = ScoreKind::window;
  call.retention.window = 3;
  check_boundary(scene, call);
}

TEST_CASE("values: huge logits leave one candidate, tiny ones all") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const double key_scale = GENERATE(1e-3, 300.0);
  CAPTURE(dtype_name(dtype), key_scale);
  BoundarySpec spec;
  spec.dtype = dtype;
  spec.key_scale = key_scale;
  spec.query_scale = 20.0;
  spec.slots = {300};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.demand.p = GENERATE(0.5F, 0.99F);
  // Logits of thousands: their own rounding is what the weights' relative error grows with.
  check_boundary(scene, call, {.score = key_scale > 1 ? 0.2 : 2e-5});
}

TEST_CASE("values: products beyond float's range") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  BoundarySpec spec;
  spec.dtype = dtype;
  spec.slots = {40};
  BoundaryScene scene(spec);
  scene.edit_keys([&](std::int32_t, std::int32_t, std::int32_t, std::int32_t s, void* key) {
    // One product alone overflows; its sign is the query's.
    if (s % 7 == 3) store_element(key, dtype, 5, 3e38F);
  });
  std::vector<float> summaries(scene.state().summary_size(), 0.25F);
  scene.state().set_summaries(summaries);
  BoundaryCall call;
  call.softmax_scale = 8.0F;
  check_boundary(scene, call);
  for (float& x : summaries) x = -x;
  scene.state().set_summaries(summaries);
  check_boundary(scene, call);
}

TEST_CASE("values: queries of very different size, half keys") {
  // Their second half must carry what the first one loses, at every magnitude.
  const double query_scale = GENERATE(1e-20, 1e-6, 1e4, 1e20);
  CAPTURE(query_scale);
  BoundarySpec spec;
  spec.dtype = DType::f16;
  spec.query_scale = query_scale;
  spec.slots = {100};
  BoundaryScene scene(spec);
  BoundaryCall call;
  // The latest queries' RMS has the same scale, so logits of order 1 come back.
  call.softmax_scale = static_cast<float>(0.5 / query_scale);
  check_boundary(scene, call);
}

TEST_CASE("values: queries of zeros and of NaN") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const float value = GENERATE(0.0F, nan, inf);
  CAPTURE(dtype_name(dtype), value);
  BoundarySpec spec;
  spec.dtype = dtype;
  spec.slots = {50};
  BoundaryScene scene(spec);
  std::vector<float> summaries(scene.state().summary_size());
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    summaries[i] = i / 64 % 2 == 0 ? value : static_cast<float>(i % 5) - 2.0F;
  }
  scene.state().set_summaries(summaries);
  check_boundary(scene, {});
}

}  // namespace
}  // namespace growpage
