// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/boundary_agreement.hpp"
#include "cuda/boundary_scene.hpp"
#include "support/catch.hpp"

/// The boundary pass on the device against the scalar CPU backend: shapes, dtypes and layouts.
namespace growpage {
namespace {

using test::Arrangement;
using test::BoundaryCall;
using test::BoundaryScene;
using test::BoundarySpec;
using test::check_boundary;

TEST_CASE("boundary: every dtype and head dim, slots around page boundaries") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::int32_t dim = GENERATE(64, 80, 96, 128, 192, 256, 20);
  CAPTURE(dtype_name(dtype), dim);
  BoundarySpec spec;
  spec.shape.head_dim = dim;
  spec.shape.layers = 1;
  spec.dtype = dtype;
  spec.slots = {47, 48, 49};
  spec.rotary_dim = dim / 2 * 2;
  BoundaryScene scene(spec);
  check_boundary(scene, {});
}

TEST_CASE("boundary: every memory arrangement") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const Arrangement arrangement =
      GENERATE(Arrangement::nhd, Arrangement::hnd, Arrangement::padded, Arrangement::per_layer);
  const std::int32_t dim = GENERATE(64, 40);
  CAPTURE(dtype_name(dtype), static_cast<int>(arrangement), dim);
  BoundarySpec spec;
  spec.shape.head_dim = dim;
  spec.dtype = dtype;
  spec.arrangement = arrangement;
  spec.slots = {33, 80};
  BoundaryScene scene(spec);
  check_boundary(scene, {});
}

TEST_CASE("boundary: page sizes, several chunks of slots") {
  const std::int32_t page_size = GENERATE(16, 64, 256);
  const std::int32_t beyond = GENERATE(-1, 0, 1);
  CAPTURE(page_size, beyond);
  BoundarySpec spec;
  spec.shape = {
      .layers = 1, .query_heads = 3, .kv_heads = 1, .head_dim = 64, .page_size = page_size};
  spec.slots = {512 + beyond, page_size + beyond};
  BoundaryScene scene(spec);
  check_boundary(scene, {});
}

struct Heads {
  std::int32_t query, kv;
};

TEST_CASE("boundary: group sizes from one to more than a block of queries") {
  const Heads heads = GENERATE(Heads{2, 2}, Heads{3, 1}, Heads{8, 2}, Heads{8, 1}, Heads{20, 1});
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  CAPTURE(heads.query, heads.kv, dtype_name(dtype));
  BoundarySpec spec;
  spec.shape.query_heads = heads.query;
  spec.shape.kv_heads = heads.kv;
  spec.shape.layers = 1;
  spec.dtype = dtype;
  spec.slots = {70};
  BoundaryScene scene(spec);
  check_boundary(scene, {});
}

TEST_CASE("boundary: keys longer than the matrix units' form takes") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::int32_t dim = GENERATE(288, 576);
  CAPTURE(dtype_name(dtype), dim);
  BoundarySpec spec;
  spec.shape = {.layers = 1, .query_heads = 10, .kv_heads = 1, .head_dim = dim, .page_size = 16};
  spec.dtype = dtype;
  spec.slots = {40};
  BoundaryScene scene(spec);
  check_boundary(scene, {});
}

TEST_CASE("boundary: rotary embeddings of all kinds, near and far") {
  const RopePairing pairing = GENERATE(RopePairing::half_split, RopePairing::interleaved);
  const bool tables = GENERATE(false, true);
  const std::int32_t rotary_dim = GENERATE(64, 32);
  CAPTURE(static_cast<int>(pairing), tables, rotary_dim);
  BoundarySpec spec;
  spec.pairing = pairing;
  spec.rope_tables = tables;
  spec.rotary_dim = rotary_dim;
  spec.position = tables ? 1000 : 1'000'000;
  spec.slots = {48};
  BoundaryScene scene(spec);
  check_boundary(scene, {});
}

TEST_CASE("boundary: f16 summaries, an explicit softmax scale") {
  BoundarySpec spec;
  spec.storage = SummaryOptions::Storage::f16_stochastic;
  spec.slots = {48};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.softmax_scale = 0.5F;
  check_boundary(scene, call);
}

TEST_CASE("boundary: a batch that mixes lengths, with padding, empty candidates, in waves") {
  const std::int64_t wave_bytes = GENERATE(0, 1, 100'000);
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  CAPTURE(wave_bytes, dtype_name(dtype));
  BoundarySpec spec;
  spec.dtype = dtype;
  spec.rotary_dim = 64;
  spec.slots = {5, 0, 300, 16, 17, 1};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.wave_bytes = wave_bytes;
  check_boundary(scene, call);
}

TEST_CASE("boundary: scores alone, demand alone, nothing") {
  BoundarySpec spec;
  spec.slots = {48, 100};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.scores = GENERATE(false, true);
  call.sums = GENERATE(false, true);
  check_boundary(scene, call);
}

TEST_CASE("boundary: candidates that end anywhere") {
  BoundarySpec spec;
  spec.shape.page_size = 64;
  spec.slots = {300};
  BoundaryScene scene(spec);
  BoundaryCall call;
  call.candidates = GENERATE(0, 1, 7, 37, 255, 256, 257, 300);
  check_boundary(scene, call);
}

TEST_CASE("boundary: what it cannot do it refuses, by name") {
  BoundarySpec spec;
  BoundaryScene scene(spec);
  cuda::BoundaryBatch batch;
  batch.shape = spec.shape;
  batch.requests = 1;
  batch.max_slots = 100;
  float score = 0;
  batch.scores = &score;
  batch.score_stride = 99;
  const Status stride = cuda::boundary_pass(batch, nullptr, {});
  CHECK(stride == StatusCode::invalid_argument);
  CHECK(stride.message().find("score_stride is 99") != std::string::npos);
  batch.score_stride = 100;
  batch.shape.head_dim = 2000;
  CHECK(cuda::boundary_pass(batch, nullptr, {}) == StatusCode::unsupported);
  CHECK(cuda::demand_delta(nullptr, 0, nullptr, 1, {}) == StatusCode::invalid_argument);
  batch.requests = 0;
  CHECK(cuda::boundary_pass(batch, nullptr, {}).ok());
}

}  // namespace
}  // namespace growpage
