// SPDX-License-Identifier: Apache-2.0
#pragma once

// The second half of the conformance suite: summaries, copies, append, attention; and `everything`.

#include <cstdint>
#include <cstring>
#include <vector>

#include "backend/conformance.hpp"

namespace growpage::test::conformance {

template <KvBackend B>
void summary_update(B& backend) {
  const std::int32_t layers = 2, slots = 3, heads = 2, dim = 20, window = 3;
  const auto zeros = [](std::int64_t n) { return std::vector<float>(at(n), 9.0F); };
  DeviceArray<B, float> summaries(backend, zeros(layers * slots * 2 * heads * dim));
  DeviceArray<B, float> rms(backend, zeros(layers * slots * heads));
  DeviceArray<B, float> ring(backend, zeros(layers * slots * window * heads * dim));
  DeviceArray<B, std::int64_t> steps(backend, std::vector<std::int64_t>(at(layers * slots), 77));
  SummaryUpdate update;
  update.state = {summaries.get(), rms.get(), ring.get(), steps.get(), SummaryOptions::Storage::f32,
                  layers,          slots,     heads,      dim,         window};
  update.options.window = window;
  update.options.beta_long = 0.999F;
  SummaryEntry entry{2, 1};
  update.entries = &entry;
  update.requests = 1;
  update.layers = layers;
  update.q_layer_stride = heads * dim + 5;
  update.q_request_stride = 0;
  update.q_head_stride = dim;
  Random random(3);
  std::vector<double> short_want(at(layers * heads * dim)), long_want = short_want;
  std::vector<float> q(at(layers * update.q_layer_stride));
  for (int step = 0; step < 5; ++step, entry.first = 0) {
    for (float& x : q) x = static_cast<float>(random.normal());
    DeviceArray<B, float> query(backend, q);
    update.q = query.get();
    backend.summary_update(update, {});
    backend.synchronize({});
    for (std::int32_t l = 0; l < layers; ++l) {
      for (std::int32_t i = 0; i < heads * dim; ++i) {
        const double x = double{q[at(l * update.q_layer_stride + i)]};
        double& s = short_want[at(l * heads * dim + i)];
        double& m = long_want[at(l * heads * dim + i)];
        s = step == 0 ? x : 0.9 * s + 0.1 * x;
        m = step == 0 ? x : 0.999 * m + 0.001 * x;
      }
    }
  }
  const auto got = summaries.download();
  const auto got_ring = ring.download();
  const auto got_rms = rms.download();
  for (std::int32_t l = 0; l < layers; ++l) {
    CHECK(steps.download()[at(l * slots + 2)] == 5);
    CHECK(steps.download()[at(l * slots + 1)] == 77);
    double squares = 0;
    for (std::int32_t i = 0; i < heads * dim; ++i) {
      REQUIRE(double{got[at(update.state.index(l, 2, 0, 0) + i)]} ==
              Approx(short_want[at(l * heads * dim + i)]).margin(1e-6));
      REQUIRE(double{got[at(update.state.index(l, 2, 1, 0) + i)]} ==
              Approx(long_want[at(l * heads * dim + i)]).margin(1e-6));
      REQUIRE(got[at(update.state.index(l, 1, 0, 0) + i)] == 9.0F);
      const float last = q[at(l * update.q_layer_stride + i)];
      // The fifth query lies at index 4 % 3.
      REQUIRE(got_ring[at(((l * slots + 2) * window + 1) * heads * dim + i)] == last);
      if (i < dim) squares += double{last} * double{last};
    }
    CHECK(double{got_rms[at((l * slots + 2) * heads)]} == Approx(std::sqrt(squares / dim)));
  }
}

template <KvBackend B>
void page_transfers(B& backend, Arrangement arrangement, DType dtype) {
  SceneSpec spec;
  spec.arrangement = arrangement;
  spec.dtype = dtype;
  spec.shape.value_dim = 24;
  Scene<B> scene(backend, spec);
  const Scene<B> before(backend, spec);
  const std::int64_t size = page_bytes(spec.shape, scene.kv());
  auto* const host = static_cast<std::byte*>(backend.allocate_host(3 * size));
  REQUIRE(host != nullptr);
  CHECK(host[3 * size - 1] == std::byte{0});
  const PageTransfer out[] = {{scene.pages[0], PageId{2}}, {scene.pages[3], PageId{0}}};
  backend.pages_to_host(spec.shape, scene.kv(), out, host, {});
  backend.synchronize({});
  CHECK(host[size] == std::byte{0});  // page 1 was not asked for
  // K [layer, kv_head, token, dim] first: layer 1, head 1, token 3 of page 0.
  const Row row = before.k_row(1, 1, 3);
  const auto row_bytes =
      std::int64_t{spec.shape.head_dim} * static_cast<std::int64_t>(dtype_bytes(dtype));
  const std::int64_t first = 2 * size + (3 * spec.shape.page_size + 3) * row_bytes;
  for (std::int32_t i = 0; i < spec.shape.head_dim; ++i) {
    REQUIRE(load_element(host + first, dtype, i) == row[at(i)]);
  }
  // Back in exchanged places, then page 1 over page 2.
  const PageTransfer in[] = {{scene.pages[0], PageId{0}}, {scene.pages[3], PageId{2}}};
  backend.pages_from_host(spec.shape, scene.kv(), in, host, {});
  const PageCopy copy[] = {{scene.pages[1], scene.pages[2]}};
  backend.copy_pages(spec.shape, scene.kv(), copy, {});
  backend.synchronize({});
  backend.deallocate_host(host, 3 * size);
  scene.download();
  const std::int32_t b = spec.shape.page_size;
  scene.for_rows([&](std::int32_t l, std::int32_t h, std::int32_t s) {
    const std::int32_t from = s < b ? s + 3 * b : s >= 3 * b ? s - 3 * b : s >= 2 * b ? s - b : s;
    REQUIRE(scene.k_row(l, h, s) == before.k_row(l, h, from));
    REQUIRE(scene.v_row(l, h, s) == before.v_row(l, h, from));
  });
}

template <KvBackend B>
void append_and_attend(B& backend) {
  SceneSpec spec;
  spec.slots = 40;
  spec.shape.value_dim = 24;
  Scene<B> scene(backend, spec);
  const CacheShape& s = spec.shape;
  Random random(8);
  std::vector<float> k(at(3 * s.kv_heads * s.head_dim)), v(at(3 * s.kv_heads * s.v_dim()));
  for (float& x : k) x = static_cast<float>(random.normal());
  for (float& x : v) x = static_cast<float>(random.normal());
  // Token 0 → slot 0, token 1 is padding, token 2 → slot 39.
  const auto slot = [&](std::int32_t logical) {
    return scene.pages[at(logical / s.page_size)].offset() * s.page_size + logical % s.page_size;
  };
  DeviceArray<B, std::int64_t> mapping(backend, {slot(0), -1, slot(39)});
  DeviceArray<B, float> k_new(backend, k), v_new(backend, v);
  AppendKv append;
  append.shape = s;
  append.kv = scene.kv();
  append.layer = 1;
  append.slot_mapping = mapping.get();
  append.tokens = 3;
  append.k = k_new.get();
  append.v = v_new.get();
  backend.append_kv(append, {});
  backend.synchronize({});
  scene.download();
  CHECK(scene.k_row(1, 1, 39)[2] == k[at((2 * s.kv_heads + 1) * s.head_dim + 2)]);
  CHECK(scene.v_row(1, 1, 0)[5] == v[at(s.v_dim() + 5)]);
  CHECK(scene.k_row(0, 0, 0) == Scene<B>(backend, spec).k_row(0, 0, 0));

  std::vector<float> q(at(2 * s.query_heads * s.head_dim));
  for (float& x : q) x = static_cast<float>(random.normal());
  std::vector<std::int32_t> table(8, 0);
  for (std::int32_t p = 0; p < 3; ++p) table[at(p)] = scene.pages[at(p)].value;
  DeviceArray<B, float> query(backend, q);
  DeviceArray<B, std::int32_t> blocks(backend, table), lengths(backend, {40, 0});
  DeviceArray<B, float> out(backend, std::vector<float>(at(2 * s.query_heads * s.v_dim()), 5.0F));
  PagedAttention attend;
  attend.shape = s;
  attend.kv = scene.kv();
  attend.layer = 1;
  attend.requests = 2;
  attend.block_table = blocks.get();
  attend.block_table_stride = 4;
  attend.kv_lengths = lengths.get();
  attend.max_slots = 40;
  attend.q = query.get();
  attend.out = out.get();
  backend.paged_attention(attend, scene.workspace(), {});
  const auto got = out.download();
  for (std::int32_t h = 0; h < s.query_heads; ++h) {
    std::vector<double> want(at(s.v_dim()), 0.0);
    double sum = 0;
    for (std::int32_t t = 0; t < 40; ++t) {
      const Row key = scene.k_row(1, h / s.group(), t);
      double logit = 0;
      for (std::int32_t i = 0; i < s.head_dim; ++i) {
        logit += double{q[at(h * s.head_dim + i)]} * double{key[at(i)]};
      }
      const double weight = std::exp(logit / std::sqrt(static_cast<double>(s.head_dim)));
      sum += weight;
      const Row value = scene.v_row(1, h / s.group(), t);
      for (std::int32_t i = 0; i < s.v_dim(); ++i) want[at(i)] += weight * double{value[at(i)]};
    }
    for (std::int32_t i = 0; i < s.v_dim(); ++i) {
      REQUIRE(double{got[at(h * s.v_dim() + i)]} == Approx(want[at(i)] / sum).margin(1e-4));
      REQUIRE(got[at((s.query_heads + h) * s.v_dim() + i)] == 0.0F);
    }
  }
}

template <KvBackend B>
void everything() {
  B backend;
  SECTION("allocate") {
    void* memory = backend.allocate(1000);
    REQUIRE(memory != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
    std::vector<char> host(1000, 'x');
    backend.copy_to_host(host.data(), memory, 1000, {});
    backend.synchronize({});
    CHECK(host == std::vector<char>(1000, '\0'));
    backend.deallocate(memory, 1000);
  }
  SECTION("summary_update") { summary_update(backend); }
  SECTION("demand and scores") { demand_and_scores(backend); }
  SECTION("select") { selection(backend); }
  SECTION("compact") {
    for (const auto strategy : {CompactionStrategy::fill_holes, CompactionStrategy::in_order}) {
      for (const std::int32_t victims : {1, 2}) {
        for (const auto arrangement :
             {Arrangement::hnd, Arrangement::nhd, Arrangement::padded, Arrangement::per_layer}) {
          compaction(backend, strategy, victims, arrangement);
        }
      }
    }
  }
  SECTION("pages") {
    page_transfers(backend, Arrangement::hnd, DType::f32);
    page_transfers(backend, Arrangement::nhd, DType::bf16);
    page_transfers(backend, Arrangement::padded, DType::f16);
    page_transfers(backend, Arrangement::per_layer, DType::f16);
  }
  SECTION("append_kv and paged_attention") { append_and_attend(backend); }
  const Status status = backend.take_status();
  INFO(status.message());
  CHECK(status.ok());
}

}  // namespace growpage::test::conformance
