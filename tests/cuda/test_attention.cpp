// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "cuda/device_array.hpp"
#include "cuda/mirrored_tensor.hpp"
#include "growpage/backend/cpu.hpp"
#include "growpage/backend/cuda/attention.hpp"
#include "support/catch.hpp"
#include "support/random_cache.hpp"

using namespace growpage;
using test::Arrangement;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

struct AttentionCase {
  CacheShape shape{.layers = 2, .query_heads = 4, .kv_heads = 2, .head_dim = 64, .page_size = 16};
  DType dtype = DType::f32;
  Arrangement arrangement = Arrangement::hnd;
  bool v_in_k = false;
  std::vector<std::int32_t> lengths;
  double query_scale = 1.0;
  float softmax_scale = 0.0F;
  enum class Keys { finite, special, no_logit } keys = Keys::finite;
};

/// Keys whose products with a positive query are NaN, +inf or −inf.
void plant(const AttentionCase& in, test::MirroredCache& cache, std::int32_t pages,
           test::Random& random) {
  if (in.keys == AttentionCase::Keys::finite) return;
  const KvTensor k = cache.k.host();
  for (std::int32_t p = 0; p < pages; ++p) {
    for (std::int32_t h = 0; h < in.shape.kv_heads; ++h) {
      for (std::int32_t t = 0; t < in.shape.page_size; ++t) {
        const float values[] = {std::nanf(""), -inf, inf};
        const bool none = in.keys == AttentionCase::Keys::no_logit;
        if (!none && random.below(20) != 0) continue;
        store_element(k.row(1, PageId{p}, h, t), in.dtype, 0, values[random.below(none ? 2 : 3)]);
      }
    }
  }
  cache.k.upload();
}

void check(const AttentionCase& in) {
  const CacheShape& shape = in.shape;
  test::Random random(static_cast<std::uint64_t>(shape.head_dim + shape.query_heads));
  const auto requests = static_cast<std::int32_t>(in.lengths.size());
  const std::int32_t longest = *std::max_element(in.lengths.begin(), in.lengths.end());
  const std::int32_t stride = (longest + shape.page_size - 1) / shape.page_size + 1;
  std::vector<std::int32_t> table(static_cast<std::size_t>(requests * stride));
  std::iota(table.begin(), table.end(), 0);
  random.shuffle(table);
  const auto pages = static_cast<std::int32_t>(table.size());
  test::MirroredCache cache(shape, pages, in.dtype, in.arrangement, random, in.v_in_k);
  plant(in, cache, pages, random);
  std::vector<float> q(static_cast<std::size_t>(requests * shape.query_heads * shape.head_dim));
  for (float& x : q) x = static_cast<float>(in.query_scale * std::abs(random.normal()));
  const std::vector<float> unset(
      static_cast<std::size_t>(requests * shape.query_heads * shape.v_dim()), -9.0F);

  PagedAttention attention;
  attention.shape = shape;
  attention.kv = cache.host();
  attention.layer = 1;
  attention.requests = requests;
  attention.block_table = table.data();
  attention.block_table_stride = stride;
  attention.kv_lengths = in.lengths.data();
  attention.q = q.data();
  std::vector<float> want = unset;
  attention.out = want.data();
  attention.softmax_scale = in.softmax_scale;
  CpuBackend oracle({}, CpuBackend::Isa::scalar);
  std::vector<std::byte> host_workspace(
      static_cast<std::size_t>(oracle.workspace_bytes(shape, longest)));
  oracle.paged_attention(attention, host_workspace.data());

  const std::int32_t max_slots = longest + 300;  // a bound, and a chunk that nobody reaches
  const test::DeviceArray<std::int32_t> device_table(table);
  const test::DeviceArray<std::int32_t> lengths(in.lengths);
  const test::DeviceArray<float> device_q(q);
  const test::DeviceArray<float> out(unset);
  const test::DeviceArray<std::byte> workspace(std::vector<std::byte>(
      static_cast<std::size_t>(cuda::paged_attention_workspace_bytes(shape, requests, max_slots)),
      std::byte{0xff}));
  attention.kv = cache.device();
  attention.block_table = device_table.get();
  attention.kv_lengths = lengths.get();
  attention.q = device_q.get();
  attention.out = out.get();
  REQUIRE(cuda::paged_attention(attention, max_slots, workspace.get(), {}).ok());
  const std::vector<float> got = out.download();
  float worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float error = std::abs(got[i] - want[i]);
    worst = std::isnan(error) ? inf : std::max(worst, error);
  }
  CAPTURE(shape.head_dim, shape.query_heads, dtype_name(in.dtype));
  CHECK(worst < 2e-5F);
}

}  // namespace

TEST_CASE("attention of every type, layout and head dim") {
  AttentionCase in;
  in.arrangement =
      GENERATE(Arrangement::nhd, Arrangement::hnd, Arrangement::padded, Arrangement::per_layer);
  in.dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  in.lengths = {33, 16, 0, 47, 1};
  for (const std::int32_t dim : {64, 20}) {
    in.shape.head_dim = dim;
    check(in);
  }
}

TEST_CASE("head dims, other value dims, V in K, pages and chunks") {
  AttentionCase in;
  in.dtype = DType::bf16;
  in.shape.head_dim = GENERATE(40, 80, 128, 256);
  in.shape.page_size = GENERATE(16, 64, 256);
  in.shape.value_dim = in.shape.head_dim == 80 ? 72 : in.shape.head_dim == 256 ? 200 : 0;
  in.v_in_k = in.shape.head_dim == 256;
  in.shape.kv_heads = 1;
  in.lengths = {256, 257, 255, 70};
  check(in);
}

TEST_CASE("groups smaller and larger than a CTA answers, and a scale") {
  AttentionCase in;
  in.shape.query_heads = GENERATE(2, 6, 16, 22);
  in.shape.head_dim = GENERATE(32, 2048);
  in.shape.value_dim = 32;
  in.softmax_scale = 0.05F;
  in.lengths = {40, 3};
  check(in);
}

TEST_CASE("NaN, infinite and missing logits; sharp distributions") {
  AttentionCase in;
  in.keys = GENERATE(AttentionCase::Keys::finite, AttentionCase::Keys::special,
                     AttentionCase::Keys::no_logit);
  in.query_scale = GENERATE(1.0, 100.0);
  in.lengths = {300, 520, 16};
  check(in);
}

TEST_CASE("attention for nobody") { CHECK(cuda::paged_attention({}, 100, nullptr, {}).ok()); }
