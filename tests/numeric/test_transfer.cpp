// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "support/catch.hpp"
#include "support/reference_scene.hpp"

namespace growpage {
namespace {

using test::Arrangement;
using test::Random;
using test::RandomCache;
using test::Row;
using Isa = CpuBackend::Isa;

constexpr CacheShape shape{
    .layers = 2, .query_heads = 4, .kv_heads = 2, .head_dim = 12, .value_dim = 6, .page_size = 16};

/// Whether page `a` of one cache holds what page `b` of another holds, K and V.
bool equal_pages(const RandomCache& x, PageId a, const RandomCache& y, PageId b) {
  for (std::int32_t l = 0; l < shape.layers; ++l) {
    for (std::int32_t h = 0; h < shape.kv_heads; ++h) {
      for (std::int32_t t = 0; t < shape.page_size; ++t) {
        if (x.k.row(l, a, h, t) != y.k.row(l, b, h, t)) return false;
        if (x.v.row(l, a, h, t) != y.v.row(l, b, h, t)) return false;
      }
    }
  }
  return true;
}

/// Whether nobody has written to a page: all NaN.
bool untouched(const RandomCache& x, PageId page) {
  for (std::int32_t l = 0; l < shape.layers; ++l) {
    for (std::int32_t h = 0; h < shape.kv_heads; ++h) {
      for (std::int32_t t = 0; t < shape.page_size; ++t) {
        for (const double v : x.k.row(l, page, h, t)) {
          if (!std::isnan(v)) return false;
        }
        for (const double v : x.v.row(l, page, h, t)) {
          if (!std::isnan(v)) return false;
        }
      }
    }
  }
  return true;
}

std::vector<PageId> spare(const RandomCache& cache) {
  std::vector<PageId> out;
  for (std::int32_t p = 0; p < cache.pool; ++p) {
    bool used = false;
    for (const PageId held : cache.table) used = used || held == PageId{p};
    if (!used) out.push_back(PageId{p});
  }
  return out;
}

TEST_CASE("copy_pages: all layers, K and V, nothing else") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const Arrangement arrangement =
      GENERATE(Arrangement::nhd, Arrangement::hnd, Arrangement::padded, Arrangement::per_layer);
  CAPTURE(static_cast<int>(isa), dtype_name(dtype), static_cast<int>(arrangement));
  CpuBackend backend({}, isa);
  const RandomCache::Options options{
      .slots = 64, .spare_pages = 3, .dtype = dtype, .arrangement = arrangement, .seed = 81};
  RandomCache cache(shape, options), original(shape, options);
  const std::vector<PageId> free = spare(cache);
  const std::vector<PageCopy> copies{{cache.table[2], free[0]}, {cache.table[0], free[2]}};
  backend.copy_pages(shape, cache.view(), copies);
  CHECK(equal_pages(cache, free[0], original, original.table[2]));
  CHECK(equal_pages(cache, free[2], original, original.table[0]));
  CHECK(untouched(cache, free[1]));
  for (const PageId p : cache.table) CHECK(equal_pages(cache, p, original, p));
  backend.copy_pages(shape, cache.view(), {});
  CHECK(untouched(cache, free[1]));
}

TEST_CASE("pages_to_host: packed [layer, kv_head, token, dim], K before V; and back") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const Arrangement arrangement =
      GENERATE(Arrangement::nhd, Arrangement::padded, Arrangement::per_layer);
  CAPTURE(static_cast<int>(isa), dtype_name(dtype), static_cast<int>(arrangement));
  CpuBackend backend({}, isa);
  const RandomCache::Options options{
      .slots = 64, .spare_pages = 3, .dtype = dtype, .arrangement = arrangement, .seed = 82};
  RandomCache cache(shape, options), original(shape, options);
  const std::int64_t bytes = page_bytes(shape, cache.view());
  const auto element = static_cast<std::int64_t>(dtype_bytes(dtype));
  CHECK(bytes == 2 * 2 * 16 * (12 + 6) * element);
  std::vector<std::byte> host(static_cast<std::size_t>(bytes * 5), std::byte{0x5a});
  const std::vector<PageTransfer> out{{cache.table[3], PageId{1}}, {cache.table[1], PageId{4}}};
  backend.pages_to_host(shape, cache.view(), out, host.data());

  bool packed = true;
  const std::byte* page = host.data() + bytes * 4;
  for (std::int32_t l = 0; l < 2; ++l) {
    for (std::int32_t h = 0; h < 2; ++h) {
      for (std::int32_t t = 0; t < 16; ++t) {
        const std::int64_t row = (l * 2 + h) * 16 + t;
        const Row k = original.key(l, h, 16 + t);
        const Row v = original.value(l, h, 16 + t);
        for (std::int64_t i = 0; i < 12; ++i) {
          packed = packed && double{load_element(page, dtype, row * 12 + i)} == k[std::size_t(i)];
        }
        for (std::int64_t i = 0; i < 6; ++i) {
          packed = packed && double{load_element(page + 64 * 12 * element, dtype, row * 6 + i)} ==
                                 v[std::size_t(i)];
        }
      }
    }
  }
  CHECK(packed);
  bool gap = true;  // host pages nobody named
  for (std::int64_t i = 0; i < bytes; ++i) {
    gap = gap && host[std::size_t(i)] == std::byte{0x5a} &&
          host[std::size_t(2 * bytes + i)] == std::byte{0x5a};
  }
  CHECK(gap);

  const std::vector<PageId> free = spare(cache);
  const std::vector<PageTransfer> in{{free[0], PageId{4}}, {free[2], PageId{1}}};
  backend.pages_from_host(shape, cache.view(), in, host.data());
  CHECK(equal_pages(cache, free[0], original, original.table[1]));
  CHECK(equal_pages(cache, free[2], original, original.table[3]));
  CHECK(untouched(cache, free[1]));
  for (const PageId p : cache.table) CHECK(equal_pages(cache, p, original, p));
}

TEST_CASE("pages_to_host: V in K is not stored twice") {
  CpuBackend backend({}, Isa::scalar);
  RandomCache cache(shape, {.slots = 32, .seed = 83});
  KvView kv = cache.view();
  kv.v = kv.k;
  const std::int64_t bytes = page_bytes(shape, kv);
  CHECK(bytes == 2 * 2 * 16 * 12 * 4);
  std::vector<std::byte> host(static_cast<std::size_t>(bytes) + 64, std::byte{0x5a});
  const std::vector<PageTransfer> out{{cache.table[0], PageId{0}}};
  backend.pages_to_host(shape, kv, out, host.data());
  CHECK(host[static_cast<std::size_t>(bytes)] == std::byte{0x5a});
  CHECK(double{load_element(host.data(), DType::f32, 5)} == cache.key(0, 0, 0)[5]);
}

TEST_CASE("append_kv: rows go to their slots, padding is skipped") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const Arrangement arrangement =
      GENERATE(Arrangement::nhd, Arrangement::hnd, Arrangement::padded, Arrangement::per_layer);
  CAPTURE(static_cast<int>(isa), dtype_name(dtype), static_cast<int>(arrangement));
  CpuBackend backend({}, isa);
  RandomCache cache(shape, {.slots = 16, .dtype = dtype, .arrangement = arrangement, .seed = 84});
  const std::vector<PageId> free = spare(cache);
  REQUIRE(free.size() == 2);
  // Ascending is not required; −1 is padding.
  const std::vector<std::int64_t> slots{free[0].offset() * 16 + 15, -1, free[1].offset() * 16,
                                        free[0].offset() * 16 + 2};
  Random random(85);
  std::vector<float> k(4 * 2 * 12), v(4 * 2 * 6);  // room for any dtype
  for (std::int64_t i = 0; i < 4 * 2 * 12; ++i) {
    store_element(k.data(), dtype, i, static_cast<float>(random.normal()));
  }
  for (std::int64_t i = 0; i < 4 * 2 * 6; ++i) {
    store_element(v.data(), dtype, i, static_cast<float>(random.normal()));
  }
  AppendKv append;
  append.shape = shape;
  append.kv = cache.view();
  append.layer = 1;
  append.slot_mapping = slots.data();
  append.tokens = 4;
  append.k = k.data();
  append.v = v.data();
  backend.append_kv(append);
  for (const std::int64_t token : {0, 2, 3}) {
    const std::int64_t slot = slots[std::size_t(token)];
    const PageId page{static_cast<std::int32_t>(slot / 16)};
    for (std::int32_t h = 0; h < 2; ++h) {
      Row want_k, want_v;
      for (int i = 0; i < 12; ++i) {
        want_k.push_back(load_element(k.data(), dtype, (token * 2 + h) * 12 + i));
      }
      for (int i = 0; i < 6; ++i) {
        want_v.push_back(load_element(v.data(), dtype, (token * 2 + h) * 6 + i));
      }
      CHECK(cache.k.row(1, page, h, static_cast<std::int32_t>(slot % 16)) == want_k);
      CHECK(cache.v.row(1, page, h, static_cast<std::int32_t>(slot % 16)) == want_v);
      CHECK(std::isnan(cache.k.get(0, page, h, static_cast<std::int32_t>(slot % 16), 0)));
    }
  }
  CHECK(std::isnan(cache.k.get(1, free[0], 0, 3, 0)));
  CHECK(std::isnan(cache.v.get(1, free[1], 1, 1, 0)));
}

TEST_CASE("allocate: zero-filled, 64-byte aligned; copies between it and the host") {
  CpuBackend backend;
  for (const std::int64_t bytes : {1, 63, 64, 100000}) {
    void* const memory = backend.allocate(bytes);
    REQUIRE(memory != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
    std::vector<std::byte> host(static_cast<std::size_t>(bytes), std::byte{1});
    backend.copy_to_host(host.data(), memory, bytes);
    CHECK(host == std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{0}));
    host.assign(host.size(), std::byte{7});
    backend.copy_from_host(memory, host.data(), bytes);
    backend.synchronize();
    CHECK(std::memcmp(memory, host.data(), host.size()) == 0);
    backend.deallocate(memory, bytes);
  }
  CHECK(backend.name() != nullptr);
}

}  // namespace
}  // namespace growpage
