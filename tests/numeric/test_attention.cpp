// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "support/catch.hpp"
#include "support/reference_keep.hpp"

namespace growpage {
namespace {

using reference::Row;
using test::Arrangement;
using test::OwnedKeepSet;
using test::Random;
using test::RandomCache;
using test::Rows;
using test::Workspace;
using Isa = CpuBackend::Isa;

Row as_float(const Row& row) {
  Row out;
  for (const double x : row) out.push_back(double{static_cast<float>(x)});
  return out;
}

/// Attention of query head `q_head` over logical slots where `visible` is true.
Row expected(const RandomCache& cache, std::int32_t layer, std::int32_t q_head, const Row& query,
             const std::vector<bool>& visible, double scale) {
  const std::int32_t kv_head = q_head / (cache.shape.query_heads / cache.shape.kv_heads);
  Rows keys, values;
  for (std::size_t s = 0; s < visible.size(); ++s) {
    if (!visible[s]) continue;
    keys.push_back(cache.key(layer, kv_head, static_cast<std::int32_t>(s)));
    values.push_back(cache.value(layer, kv_head, static_cast<std::int32_t>(s)));
  }
  return reference::attention(as_float(query), keys, values, cache.shape.v_dim(), scale);
}

TEST_CASE("paged_attention: several requests of any length against the formula") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const Arrangement arrangement =
      GENERATE(Arrangement::nhd, Arrangement::hnd, Arrangement::padded, Arrangement::per_layer);
  const float scale = GENERATE(0.0F, 0.7F);
  CAPTURE(static_cast<int>(isa), dtype_name(dtype), static_cast<int>(arrangement), scale);
  CpuBackend backend({}, isa);
  const CacheShape shape{.layers = 2,
                         .query_heads = 6,
                         .kv_heads = 2,
                         .head_dim = 24,
                         .value_dim = 10,
                         .page_size = 16};
  RandomCache cache(shape, {.slots = 73, .dtype = dtype, .arrangement = arrangement, .seed = 71});
  // Prefixes of one request, one of them empty; entries past the used pages are never looked at.
  const std::vector<std::int32_t> lengths{73, 0, 16, 1, 17, 64};
  const std::int64_t stride = 7;
  std::vector<std::int32_t> table(lengths.size() * 7, -1);
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    for (std::int32_t p = 0; p * 16 < lengths[r]; ++p) {
      table[r * 7 + std::size_t(p)] = cache.table[std::size_t(p)].value;
    }
  }
  Random random(72);
  Rows queries;
  std::vector<float> q;
  for (std::size_t i = 0; i < lengths.size() * 6; ++i) {
    queries.push_back(random.normal_row(24, 2.0));
    q.insert(q.end(), queries.back().begin(), queries.back().end());
  }
  std::vector<float> out(queries.size() * 10, 9.0F);
  Workspace workspace(backend.workspace_bytes(shape, 73));
  PagedAttention a;
  a.shape = shape;
  a.kv = cache.view();
  a.layer = 1;
  a.requests = static_cast<std::int32_t>(lengths.size());
  a.block_table = table.data();
  a.block_table_stride = stride;
  a.kv_lengths = lengths.data();
  a.q = q.data();
  a.out = out.data();
  a.softmax_scale = scale;
  backend.paged_attention(a, workspace.data());
  CHECK(workspace.intact());
  double worst = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const std::vector<bool> visible(std::size_t(lengths[i / 6]), true);
    const Row want = expected(cache, 1, static_cast<std::int32_t>(i % 6), queries[i], visible,
                              scale > 0 ? double{scale} : 1.0 / std::sqrt(24.0));
    const Row got(out.begin() + std::ptrdiff_t(i * 10), out.begin() + std::ptrdiff_t(i * 10 + 10));
    worst = std::max(worst, reference::distance(got, want, 1e-5, 1e-5));
    if (lengths[i / 6] == 0) CHECK(got == Row(10, 0.0));
  }
  CHECK(worst <= 1);
}

TEST_CASE("paged_attention: V read out of K's rows") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  const CacheShape shape{.layers = 1,
                         .query_heads = 4,
                         .kv_heads = 1,
                         .head_dim = 20,
                         .value_dim = 16,
                         .page_size = 16};
  RandomCache cache(shape, {.slots = 50, .seed = 73});
  for (std::int32_t s = 0; s < 50; ++s) {  // so that the reference finds V where it looks for it
    const Row k = cache.key(0, 0, s);
    cache.set_value(0, 0, s, Row(k.begin(), k.begin() + 16));
  }
  Random random(74);
  const Row query = random.normal_row(20);
  std::vector<float> q;
  for (int h = 0; h < 4; ++h) q.insert(q.end(), query.begin(), query.end());
  std::vector<float> out(4 * 16);
  std::vector<std::int32_t> table;
  for (const PageId p : cache.table) table.push_back(p.value);
  const std::int32_t length = 50;
  Workspace workspace(backend.workspace_bytes(shape, 50));
  PagedAttention a;
  a.shape = shape;
  a.kv = cache.view();
  a.kv.v = a.kv.k;
  a.requests = 1;
  a.block_table = table.data();
  a.block_table_stride = 4;
  a.kv_lengths = &length;
  a.q = q.data();
  a.out = out.data();
  backend.paged_attention(a, workspace.data());
  const Row want = expected(cache, 0, 0, query, std::vector<bool>(50, true), 1.0 / std::sqrt(20.0));
  CHECK(reference::distance(Row(out.begin(), out.begin() + 16), want, 1e-5, 1e-5) <= 1);
  CHECK(reference::distance(Row(out.end() - 16, out.end()), want, 1e-5, 1e-5) <= 1);
}

// -- Theorem 3.1
// ------------------------------------------------------------------------------------

/// Evicts one page's worth of slots and compacts; the retained slots per KV head come back.
struct Eviction {
  Eviction(CpuBackend& backend, RandomCache& cache, const std::vector<std::vector<bool>>& kept)
      : left(cache.slots - cache.shape.page_size) {
    const std::vector<std::uint8_t> marks(static_cast<std::size_t>(cache.pages), page_private);
    OwnedKeepSet keep(cache.shape, cache.slots);
    for (std::int32_t h = 0; h < cache.shape.kv_heads; ++h) keep.set(0, h, kept[std::size_t(h)]);
    keep.count(cache.shape.page_size);
    CompactionMove move;
    move.shape = cache.shape;
    move.kv = cache.view();
    move.pages = cache.table.data();
    move.marks = marks.data();
    move.plan = *plan_compaction(marks, keep.page_kept(), 1, CompactionStrategy::fill_holes);
    move.keep = keep.view;
    backend.compact(move);
    for (const std::int32_t p : reference::page_order(cache.pages, move.plan)) {
      table.push_back(cache.table[std::size_t(p)]);
    }
  }
  std::int32_t left;
  std::vector<PageId> table;
};

TEST_CASE("theorem 3.1: keeping mass m bounds the output error by 2·Vmax·(1 − m)") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  const CacheShape shape{
      .layers = 1, .query_heads = 4, .kv_heads = 2, .head_dim = 16, .page_size = 16};
  Random random(75);
  double closest = 0;
  for (int round = 0; round < 20; ++round) {
    RandomCache cache(shape, {.slots = 48, .seed = random.bits()});
    Rows query;
    for (int h = 0; h < 4; ++h) query.push_back(random.normal_row(16, 0.5 + round % 5));
    std::vector<std::vector<bool>> kept;
    for (int h = 0; h < 2; ++h) {
      std::vector<bool> row(48, true);
      std::vector<std::size_t> order;
      for (std::size_t s = 0; s < 48; ++s) order.push_back(s);
      random.shuffle(order);
      for (std::size_t i = 0; i < 16; ++i) row[order[i]] = false;
      kept.push_back(row);
    }
    // Mass, bound and expected outputs before the rows move.
    std::vector<double> bounds;
    Rows full, after;
    for (std::int32_t h = 0; h < 4; ++h) {
      const std::vector<bool>& row = kept[std::size_t(h / 2)];
      Row logits;
      double largest_value = 0;
      for (std::int32_t s = 0; s < 48; ++s) {
        logits.push_back(reference::dot(as_float(query[std::size_t(h)]), cache.key(0, h / 2, s)) /
                         4.0);
        largest_value = std::max(largest_value, reference::norm(cache.value(0, h / 2, s)));
      }
      const Row weights = reference::softmax(logits);
      double mass = 0;
      for (std::size_t s = 0; s < 48; ++s) mass += row[s] ? weights[s] : 0.0;
      bounds.push_back(2 * largest_value * (1 - mass));
      full.push_back(
          expected(cache, 0, h, query[std::size_t(h)], std::vector<bool>(48, true), 0.25));
      after.push_back(expected(cache, 0, h, query[std::size_t(h)], row, 0.25));
    }
    const Rows whole = paged_attention(backend, cache, cache.table, 0, 48, query);
    const Eviction eviction(backend, cache, kept);
    const Rows rest = paged_attention(backend, cache, eviction.table, 0, eviction.left, query);
    for (std::size_t h = 0; h < 4; ++h) {
      CHECK(reference::distance(whole[h], full[h], 1e-5, 1e-5) <= 1);
      CHECK(reference::distance(rest[h], after[h], 1e-5, 1e-5) <= 1);
      Row error = whole[h];
      for (std::size_t i = 0; i < error.size(); ++i) error[i] -= rest[h][i];
      CHECK(reference::norm(error) <= bounds[h] + 1e-5);
      closest = std::max(closest, reference::norm(error) / bounds[h]);
    }
  }
  CHECK(closest > 0.1);  // the bound is a bound on something
}

TEST_CASE("theorem 3.1: the bound is reached when kept and evicted values are opposite") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  const CacheShape shape{
      .layers = 1, .query_heads = 1, .kv_heads = 1, .head_dim = 16, .page_size = 16};
  RandomCache cache(shape, {.slots = 48, .seed = 76});
  Random random(77);
  const Row value = random.normal_row(16);
  Row opposite = value;
  for (double& x : opposite) x = -x;
  std::vector<bool> kept(48, true);
  for (std::size_t s = 0; s < 48; s += 3) kept[s] = false;
  for (std::int32_t s = 0; s < 48; ++s) {
    cache.set_value(0, 0, s, kept[std::size_t(s)] ? value : opposite);
  }
  const Row query = random.normal_row(16);
  Row logits;
  for (std::int32_t s = 0; s < 48; ++s) {
    logits.push_back(reference::dot(as_float(query), cache.key(0, 0, s)) / 4.0);
  }
  const Row weights = reference::softmax(logits);
  double mass = 0;
  for (std::size_t s = 0; s < 48; ++s) mass += kept[s] ? weights[s] : 0.0;
  const double bound = 2 * reference::norm(value) * (1 - mass);
  REQUIRE(bound > 0.1);

  Row error = paged_attention(backend, cache, cache.table, 0, 48, {query})[0];
  const Eviction eviction(backend, cache, {kept});
  const Row rest = paged_attention(backend, cache, eviction.table, 0, eviction.left, {query})[0];
  for (std::size_t i = 0; i < error.size(); ++i) error[i] -= rest[i];
  CHECK(reference::norm(error) == Approx(bound).epsilon(1e-5));
}

}  // namespace
}  // namespace growpage
