// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <string>

#include "growpage/core/kv_layout.hpp"
#include "support/catch.hpp"

namespace growpage {
namespace {

constexpr CacheShape shape{
    .layers = 3, .query_heads = 8, .kv_heads = 2, .head_dim = 64, .page_size = 16};
constexpr std::int64_t pages = 10;

TEST_CASE("KvLayout: NHD offsets are those of [layer, page, token, head, dim]") {
  const KvLayout nhd = KvLayout::nhd(shape, pages, 64);
  for (const std::int32_t page : {0, 3, 9}) {
    for (const std::int32_t head : {0, 1}) {
      for (const std::int32_t token : {0, 7, 15}) {
        CHECK(nhd.offset(PageId{page}, head, token) == ((page * 16 + token) * 2 + head) * 64);
      }
    }
  }
  CHECK(nhd.layer_stride == 10 * 16 * 2 * 64);
}

TEST_CASE("KvLayout: HND offsets are those of [layer, page, head, token, dim]") {
  const KvLayout hnd = KvLayout::hnd(shape, pages, 64);
  for (const std::int32_t page : {0, 3, 9}) {
    for (const std::int32_t head : {0, 1}) {
      for (const std::int32_t token : {0, 7, 15}) {
        CHECK(hnd.offset(PageId{page}, head, token) == ((page * 2 + head) * 16 + token) * 64);
      }
    }
  }
  CHECK(hnd.layer_stride == 10 * 16 * 2 * 64);
  CHECK_FALSE(hnd == KvLayout::nhd(shape, pages, 64));
}

TEST_CASE("KvLayout: page id × stride beyond 2^31 and 2^32 elements") {
  const CacheShape big{
      .layers = 2, .query_heads = 8, .kv_heads = 8, .head_dim = 128, .page_size = 256};
  const std::int64_t many = std::numeric_limits<std::int32_t>::max();
  const KvLayout hnd = KvLayout::hnd(big, many, 128);
  CHECK(hnd.page_stride == 262144);
  CHECK(hnd.offset(PageId{8192}, 0, 0) == 2147483648);
  CHECK(hnd.offset(PageId{2147483646}, 7, 255) ==
        2147483646LL * 262144 + 7LL * 256 * 128 + 255LL * 128);
  CHECK(hnd.layer_stride == 2147483647LL * 262144);
}

TEST_CASE("KvTensor: rows by one base or by a base per layer") {
  alignas(4) static char memory[64];
  KvTensor one;
  one.base = memory;
  one.layout = KvLayout::hnd(shape, pages, 64);
  for (const DType t : {DType::f32, DType::f16, DType::bf16}) {
    one.dtype = t;
    const std::int64_t bytes = t == DType::f32 ? 4 : 2;
    const std::int64_t element = 2 * (10 * 16 * 2 * 64) + ((4 * 2 + 1) * 16 + 5) * 64;
    CHECK(reinterpret_cast<std::uintptr_t>(one.row(2, PageId{4}, 1, 5)) ==
          reinterpret_cast<std::uintptr_t>(memory) + static_cast<std::uintptr_t>(element * bytes));
  }
  void* const bases[3] = {memory, memory + 8, memory + 24};
  KvTensor each = one;
  each.base = nullptr;
  each.layer_base = bases;
  each.layout.layer_stride = -1000000;  // unused
  CHECK(each.row(1, PageId{0}, 0, 0) == memory + 8);
  CHECK(each.layer(2) == memory + 24);
  CHECK_FALSE(one.null());
  CHECK_FALSE(each.null());
  CHECK(KvTensor{}.null());
}

TEST_CASE("KvView: V is a view of K when it has no memory of its own") {
  char memory[8];
  KvView kv;
  kv.k.base = memory;
  CHECK(kv.v_in_k());
  kv.v.base = memory;
  CHECK(kv.v_in_k());
  kv.v.base = memory + 4;
  CHECK_FALSE(kv.v_in_k());
}

KvView view(const KvLayout& k, const KvLayout& v) {
  static char memory[2];
  KvView kv;
  kv.k.base = memory;
  kv.v.base = memory + 1;
  kv.k.layout = k;
  kv.v.layout = v;
  return kv;
}

void refused(const Status& s, const std::string& argument, const std::string& value) {
  CAPTURE(argument, s.message());
  CHECK(s == StatusCode::invalid_argument);
  REQUIRE(s.detail() != nullptr);
  CHECK(s.detail()->argument == argument);
  CHECK(s.detail()->value == value);
  CHECK_FALSE(s.detail()->allowed.empty());
}

TEST_CASE("KvView::validate accepts the layouts engines have") {
  const KvLayout nhd = KvLayout::nhd(shape, pages, 64);
  const KvLayout hnd = KvLayout::hnd(shape, pages, 64);
  CHECK(view(nhd, nhd).validate(shape, pages).ok());
  CHECK(view(hnd, nhd).validate(shape, pages).ok());
  KvLayout padded = nhd;
  padded.token_stride += 8;
  padded.page_stride = 16 * padded.token_stride + 32;
  padded.layer_stride = pages * padded.page_stride;
  CHECK(view(padded, padded).validate(shape, pages).ok());
  // K and V of a page side by side: [layer, page, 2, token, head, dim].
  KvLayout beside = nhd;
  beside.page_stride *= 2;
  beside.layer_stride *= 2;
  CHECK(view(beside, beside).validate(shape, pages).ok());
  // All layers of a page side by side: [page, layer, token, head, dim].
  KvLayout layers_inside = nhd;
  layers_inside.layer_stride = nhd.page_stride;
  layers_inside.page_stride = nhd.page_stride * 3;
  CHECK(view(layers_inside, layers_inside).validate(shape, pages).ok());
  // A single page, head or layer: its stride does not matter.
  CacheShape small = shape;
  small.layers = 1;
  small.kv_heads = 1;
  CHECK(view({0, 0, 0, 64}, {0, 0, 0, 64}).validate(small, 1).ok());
}

TEST_CASE("KvView::validate refuses overlapping rows and half-given memory") {
  const KvLayout hnd = KvLayout::hnd(shape, pages, 64);
  KvLayout bad = hnd;
  bad.token_stride = 63;
  refused(view(bad, hnd).validate(shape, pages), "KvView::k.layout.token_stride", "63");
  bad = hnd;
  bad.page_stride -= 1;
  refused(view(hnd, bad).validate(shape, pages), "KvView::v.layout.page_stride",
          std::to_string(hnd.page_stride - 1));
  bad = hnd;
  bad.head_stride = 64;  // like the token stride: heads and tokens collide
  CHECK_FALSE(view(bad, hnd).validate(shape, pages).ok());
  bad = hnd;
  bad.head_stride = -64;
  CHECK_FALSE(view(bad, hnd).validate(shape, pages).ok());

  KvView none;
  refused(none.validate(shape, pages), "KvView::k", "null");
  KvView both = view(hnd, hnd);
  void* const bases[3] = {};
  both.v.layer_base = bases;
  CHECK_FALSE(both.validate(shape, pages).ok());
}

TEST_CASE("KvView::validate refuses layers that overlap") {
  const KvLayout hnd = KvLayout::hnd(shape, pages, 64);
  // Layer 1 would begin at the second token of layer 0, at its second page, at its last row.
  for (const std::int64_t stride :
       {std::int64_t{0}, std::int64_t{64}, hnd.page_stride, hnd.layer_stride - 64}) {
    CAPTURE(stride);
    KvLayout bad = hnd;
    bad.layer_stride = stride;
    const Status s = view(bad, hnd).validate(shape, pages);
    CHECK(s == StatusCode::invalid_argument);  // which of two colliding strides is named is open
    CHECK(s.detail() != nullptr);
  }
  // With a base per layer the stride is unused.
  void* const bases[3] = {};
  KvView each = view(hnd, hnd);
  each.k.base = nullptr;
  each.k.layer_base = bases;
  each.k.layout.layer_stride = 0;
  CHECK(each.validate(shape, pages).ok());
}

}  // namespace
}  // namespace growpage
