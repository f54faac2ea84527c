// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include "cuda/boundary_agreement.hpp"
#include "cuda/boundary_scene.hpp"
#include "support/catch.hpp"

/// Scores by window, Zipage's refinements and layer masks on the device against the scalar CPU
/// backend.
namespace growpage {
namespace {

using test::Arrangement;
using test::BoundaryCall;
using test::BoundaryScene;
using test::BoundarySpec;
using test::check_boundary;
using Old = BoundaryCall::Old;

TEST_CASE("window scores: fewer queries than the window, once round, many times round") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::int64_t steps = GENERATE(0, 3, 8, 37);
  const std::int32_t window = GENERATE(1, 5);
  CAPTURE(dtype_name(dtype), steps, window);
  BoundarySpec spec;
  spec.dtype = dtype;
  spec.shape.layers = 1;
  spec.rotary_dim = 64;
  spec.window = 7;  // the ring holds more than the score asks for
  spec.steps = steps;
  spec.slots = {64, 3, 0, 49};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.retention.score = ScoreKind::window;
  call.retention.window = window;
  check_boundary(scene, call);
}

TEST_CASE("window scores: more queries than meet the keys at once, in waves") {
  const std::int32_t query_heads = GENERATE(8, 40);
  const std::int64_t wave_bytes = GENERATE(0, 1);
  CAPTURE(query_heads, wave_bytes);
  BoundarySpec spec;
  spec.shape = {
      .layers = 1, .query_heads = query_heads, .kv_heads = 1, .head_dim = 64, .page_size = 16};
  spec.window = 14;
  spec.steps = 40;
  spec.slots = {40, 300};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.wave_bytes = wave_bytes;
  call.retention.score = ScoreKind::window;
  call.retention.window = 11;
  check_boundary(scene, call);
  call.sums = false;
  check_boundary(scene, call);
}

TEST_CASE(
    "window scores: without a window every score is 0, at the first tokens few queries count") {
  BoundarySpec spec;
  spec.window = GENERATE(0, 5);
  spec.position = 1;  // two queries so far
  spec.steps = 9;
  spec.slots = {33};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.retention.score = ScoreKind::window;
  check_boundary(scene, call);
}

TEST_CASE("refinements: max-pool reaches over the borders of blocks of slots") {
  const ScoreKind kind = GENERATE(ScoreKind::summaries, ScoreKind::window);
  const std::int32_t pool = GENERATE(1, 3, 5, 63);
  CAPTURE(static_cast<int>(kind), pool);
  BoundarySpec spec;
  spec.window = 4;
  spec.slots = {520, 12};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.retention.score = kind;
  call.retention.window = 4;
  call.retention.max_pool = pool;
  check_boundary(scene, call);
}

TEST_CASE("refinements: the global score, from another array or in place, after the pool") {
  const Old old = GENERATE(Old::separate, Old::in_place);
  const std::int32_t pool = GENERATE(0, 5);
  CAPTURE(static_cast<int>(old), pool);
  BoundarySpec spec;
  spec.slots = {300, 48, 2};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.old = old;
  call.retention.global_decay = 0.8F;
  call.retention.max_pool = pool;
  check_boundary(scene, call);
  call.retention.global_decay = 0.0F;  // old scores are there, but off
  check_boundary(scene, call);
}

TEST_CASE("refinements: redundancy, with everything else") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const Arrangement arrangement = GENERATE(Arrangement::nhd, Arrangement::padded);
  const ScoreKind kind = GENERATE(ScoreKind::summaries, ScoreKind::window);
  CAPTURE(dtype_name(dtype), static_cast<int>(arrangement), static_cast<int>(kind));
  BoundarySpec spec;
  spec.dtype = dtype;
  spec.arrangement = arrangement;
  spec.window = 4;
  spec.slots = {300, 1, 40};
  BoundaryScene scene(spec);
  scene.edit_keys([&](std::int32_t, std::int32_t, std::int32_t, std::int32_t slot, void* key) {
    // Some keys are the same, one has no length: the redundant and the unusual stand out.
    if (slot % 5 == 0 || slot == 7) {
      for (std::int32_t i = 0; i < spec.shape.head_dim; ++i) {
        store_element(key, dtype, i, slot == 7 ? 0.0F : static_cast<float>(i % 7) - 3.0F);
      }
    }
  });
  BoundaryCall call;
  call.retention.score = kind;
  call.retention.window = 4;
  call.retention.max_pool = 3;
  call.retention.global_decay = 0.8F;
  call.retention.redundancy_weight = 0.8F;
  call.retention.redundancy_temperature = 0.05F;
  call.old = Old::in_place;
  check_boundary(scene, call);
}

TEST_CASE("layer mask: only counted layers have a term") {
  const ScoreKind kind = GENERATE(ScoreKind::summaries, ScoreKind::window);
  const bool scores = GENERATE(false, true);
  BoundarySpec spec;
  spec.shape.layers = 3;
  spec.window = 4;
  spec.slots = {48, 20};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.retention.score = kind;
  call.scores = scores;
  const std::vector<std::vector<std::uint8_t>> masks = {{1, 0, 1}, {0, 200, 0}, {0, 0, 0}};
  for (const auto& mask : masks) {
    call.layer_mask = mask;
    check_boundary(scene, call);
  }
}

}  // namespace
}  // namespace growpage
