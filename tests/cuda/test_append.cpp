// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/device_array.hpp"
#include "cuda/mirrored_tensor.hpp"
#include "growpage/backend/cpu.hpp"
#include "growpage/backend/cuda/append.hpp"
#include "support/catch.hpp"
#include "support/random_cache.hpp"

using namespace growpage;
using test::Arrangement;

namespace {

void check(const CacheShape& shape, DType dtype, Arrangement arrangement, bool v_in_k,
           std::int32_t tokens) {
  constexpr std::int32_t pages = 4;
  test::Random random(static_cast<std::uint64_t>(shape.head_dim + tokens));
  test::MirroredCache cache(shape, pages, dtype, arrangement, random, v_in_k);
  std::vector<std::int64_t> slots(static_cast<std::size_t>(pages * shape.page_size));
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::int64_t>(i);
  random.shuffle(slots);
  slots.resize(static_cast<std::size_t>(tokens));
  for (std::size_t i = 0; i < slots.size(); i += 3) slots[i] = -1 - slots[i];
  const auto rows = [&](std::int32_t dim) {
    std::vector<std::byte> values(static_cast<std::size_t>(tokens * shape.kv_heads * dim) *
                                  dtype_bytes(dtype));
    for (std::byte& value : values) value = static_cast<std::byte>(random.below(256));
    return values;
  };
  const std::vector<std::byte> k = rows(shape.head_dim);
  const std::vector<std::byte> v = rows(shape.v_dim());
  const test::DeviceArray<std::int64_t> device_slots(slots);
  const test::DeviceArray<std::byte> device_k(k);
  const test::DeviceArray<std::byte> device_v(v);

  AppendKv append{shape, cache.host(), 1, slots.data(), tokens, k.data(), v.data()};
  if (v_in_k) append.v = nullptr;
  CpuBackend({}, CpuBackend::Isa::scalar).append_kv(append);
  append.kv = cache.device();
  append.slot_mapping = device_slots.get();
  append.k = device_k.get();
  append.v = v_in_k ? nullptr : device_v.get();
  REQUIRE(cuda::append_kv(append, {}).ok());
  CAPTURE(shape.head_dim, static_cast<int>(arrangement), dtype_name(dtype), tokens);
  CHECK(cache.equal());
}

}  // namespace

TEST_CASE("rows are appended to their slots for every type, layout and head dim") {
  const Arrangement arrangement =
      GENERATE(Arrangement::nhd, Arrangement::hnd, Arrangement::padded, Arrangement::per_layer);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  CacheShape shape{.layers = 2, .query_heads = 3, .kv_heads = 3, .head_dim = 64, .page_size = 16};
  for (const std::int32_t dim : {64, 80, 128, 256, 20, 40, 33}) {
    shape.head_dim = dim;
    shape.value_dim = dim == 128 ? 64 : 0;
    check(shape, dtype, arrangement, dim == 80, 17);
  }
}

TEST_CASE("one token, none, and as many as the cache holds") {
  const CacheShape shape{
      .layers = 2, .query_heads = 1, .kv_heads = 1, .head_dim = 8, .page_size = 32};
  check(shape, DType::bf16, Arrangement::hnd, false, 1);
  check(shape, DType::bf16, Arrangement::hnd, false, 2);
  check(shape, DType::bf16, Arrangement::hnd, false, 0);
  check(shape, DType::bf16, Arrangement::hnd, false, 128);
}
