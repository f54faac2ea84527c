// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "support/catch.hpp"
#include "support/reference_keep.hpp"

namespace growpage {
namespace {

using reference::Move;
using reference::Row;
using test::Arrangement;
using test::OwnedKeepSet;
using test::Random;
using test::RandomCache;
using test::Rows;
using Isa = CpuBackend::Isa;

constexpr std::uint8_t mine = page_private;

// -- Planning
// ---------------------------------------------------------------------------------------

CompactionPlan plan(const std::vector<std::uint8_t>& marks, const std::vector<std::int32_t>& kept,
                    std::int32_t victims, CompactionStrategy strategy) {
  const auto result = plan_compaction(marks, kept, victims, strategy);
  REQUIRE(result.ok());
  CHECK(result->victims == victims);
  CHECK(result->strategy == strategy);
  return *result;
}

TEST_CASE("plan_compaction: fill_holes takes the page with the fewest retained rows") {
  const auto holes = CompactionStrategy::fill_holes;
  const std::vector<std::uint8_t> marks(5, mine);
  CHECK(plan(marks, {9, 4, 7, 5, 1}, 1, holes).victim[0] == 1);  // never the newest
  CHECK(plan(marks, {4, 4, 7, 4, 4}, 1, holes).victim[0] == 3);  // ties → later page
  const CompactionPlan two = plan(marks, {9, 4, 7, 5, 1}, 2, holes);
  CHECK((two.victim[0] == 1 && two.victim[1] == 3));
  const CompactionPlan tied = plan(marks, {5, 5, 5, 5, 5}, 2, holes);
  CHECK((tied.victim[0] == 2 && tied.victim[1] == 3));
  // Pages others read and protected pages are no victims.
  CHECK(plan({mine, 0, mine, mine | page_protected, mine}, {9, 1, 8, 2, 3}, 1, holes).victim[0] ==
        2);
}

TEST_CASE("plan_compaction: in_order empties the last private pages") {
  const auto in_order = CompactionStrategy::in_order;
  CHECK(plan({mine, mine, mine}, {1, 2, 3}, 1, in_order).victim[0] == 2);
  const CompactionPlan two = plan({0, mine, mine, mine}, {1, 2, 3, 4}, 2, in_order);
  CHECK((two.victim[0] == 2 && two.victim[1] == 3));
  CHECK(plan({mine, mine, 0}, {1, 2, 3}, 1, in_order).victim[0] == 1);
}

TEST_CASE("plan_compaction: too few private pages is a capacity answer, bad arguments are errors") {
  const auto holes = CompactionStrategy::fill_holes;
  const std::vector<std::int32_t> kept{1, 2, 3};
  const auto code = [&](const std::vector<std::uint8_t>& marks, std::int32_t victims) {
    return plan_compaction(marks, kept, victims, holes).code();
  };
  CHECK(code({0, 0, mine}, 1) == StatusCode::at_capacity);
  CHECK(code({0, mine, mine}, 2) == StatusCode::at_capacity);
  CHECK(code({0, 0, 0}, 1) == StatusCode::at_capacity);
  CHECK(code({mine, mine | page_protected, mine}, 2) == StatusCode::at_capacity);
  CHECK(plan_compaction({}, {}, 1, holes).code() == StatusCode::at_capacity);
  for (const std::int32_t victims : {0, -1, 3}) {
    const auto refused = plan_compaction(std::vector<std::uint8_t>(3, mine), kept, victims, holes);
    CHECK(refused.code() == StatusCode::invalid_argument);
    REQUIRE(refused.status().detail() != nullptr);
    CHECK(refused.status().detail()->value == std::to_string(victims));
  }
  const auto sizes = plan_compaction(std::vector<std::uint8_t>(2, mine), kept, 1, holes);
  CHECK(sizes.code() == StatusCode::invalid_argument);
}

// -- Moving
// -----------------------------------------------------------------------------------------

struct Case {
  CacheShape shape;
  RandomCache::Options cache;
  std::vector<std::uint8_t> marks;
  CompactionStrategy strategy = CompactionStrategy::fill_holes;
  std::int32_t victims = 1;
};

/// Physical K and V rows [layer][head][pool page · b + token] of the whole pool, moved or not.
std::vector<std::vector<Rows>> snapshot(const RandomCache& cache, bool with_v) {
  std::vector<std::vector<Rows>> all;
  for (std::int32_t l = 0; l < cache.shape.layers; ++l) {
    all.emplace_back();
    for (std::int32_t h = 0; h < cache.shape.kv_heads; ++h) {
      Rows rows;
      for (std::int32_t p = 0; p < cache.pool; ++p) {
        for (std::int32_t t = 0; t < cache.shape.page_size; ++t) {
          Row row = cache.k.row(l, PageId{p}, h, t);
          if (with_v) {
            const Row v = cache.v.row(l, PageId{p}, h, t);
            row.insert(row.end(), v.begin(), v.end());
          }
          rows.push_back(row);
        }
      }
      all.back().push_back(rows);
    }
  }
  return all;
}

/// Bit-for-bit equality that also holds between NaNs.
bool same(const Row& a, const Row& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

struct Outcome {
  std::int64_t misplaced = 0;  ///< rows that are not what they should be
  std::int64_t wrong_scores = 0;
  std::int64_t most_moved = 0;                            ///< rows moved per head
  std::vector<std::vector<std::multiset<Row>>> retained;  ///< [layer][head] (K, V) in the new table
  std::vector<PageId> table;                              ///< new block table
};

Outcome compact(CpuBackend& backend, RandomCache& cache, const Case& c, const OwnedKeepSet& keep,
                const KvView& kv, bool v_moves) {
  const CacheShape& shape = cache.shape;
  const std::int32_t b = shape.page_size;
  const CompactionPlan made = plan(c.marks, keep.page_kept(), c.victims, c.strategy);
  const auto before = snapshot(cache, true);
  const std::int64_t stride = cache.slots + 1;
  std::vector<float> scores;
  for (std::int32_t i = 0; i < shape.layers * shape.kv_heads * stride; ++i) {
    scores.push_back(1.0F + static_cast<float>(i));
  }
  const std::vector<float> old_scores = scores;
  CompactionMove move;
  move.shape = shape;
  move.kv = kv;
  move.pages = cache.table.data();
  move.marks = c.marks.data();
  move.plan = made;
  move.keep = keep.view;
  move.scores = scores.data();
  move.score_stride = stride;
  backend.compact(move);
  const auto after = snapshot(cache, true);

  Outcome out;
  const std::vector<std::int32_t> order = reference::page_order(cache.pages, made);
  for (const std::int32_t p : order) out.table.push_back(cache.table[std::size_t(p)]);
  const auto physical = [&](std::int32_t logical) {
    return static_cast<std::size_t>(cache.page(logical).value * b + logical % b);
  };
  for (std::int32_t l = 0; l < shape.layers; ++l) {
    out.retained.emplace_back();
    for (std::int32_t h = 0; h < shape.kv_heads; ++h) {
      const Rows& was = before[std::size_t(l)][std::size_t(h)];
      const Rows& is = after[std::size_t(l)][std::size_t(h)];
      Rows want = was;
      std::vector<double> want_scores;
      const float* old = old_scores.data() + (l * shape.kv_heads + h) * stride;
      std::vector<double> moved_scores(old, old + cache.slots);
      const std::vector<Move> moves = reference::moves(keep.row(l, h), c.marks, b, made);
      for (const Move& m : moves) {
        // V stays where it is when it is a view of K (it then moved with it, in K's memory).
        Row& target = want[physical(m.to)];
        const Row& source = was[physical(m.from)];
        const auto count =
            v_moves ? static_cast<std::ptrdiff_t>(source.size()) : std::ptrdiff_t{shape.head_dim};
        std::copy_n(source.begin(), count, target.begin());
        moved_scores[std::size_t(m.to)] = old[m.from];
      }
      out.most_moved = std::max(out.most_moved, static_cast<std::int64_t>(moves.size()));
      // Victims' pages are free: their content is nobody's business.
      std::vector<bool> free(was.size(), false);
      for (std::int32_t v = 0; v < c.victims; ++v) {
        for (std::int32_t t = 0; t < b; ++t) free[physical(made.victim[v] * b + t)] = true;
      }
      for (std::size_t i = 0; i < is.size(); ++i) {
        out.misplaced += free[i] || same(is[i], want[i]) ? 0 : 1;
      }
      std::multiset<Row> rows;
      const std::int32_t left = cache.slots - c.victims * b;
      for (std::int32_t s = 0; s < left; ++s) {
        const auto at = static_cast<std::size_t>(out.table[std::size_t(s / b)].value * b + s % b);
        rows.insert(is[at]);
      }
      out.retained.back().push_back(rows);
      for (std::int32_t s = 0; s < left; ++s) {
        const std::int32_t from = order[std::size_t(s / b)] * b + s % b;
        const double value = moved_scores[std::size_t(from)];
        const float got = scores[std::size_t((l * shape.kv_heads + h) * stride + s)];
        out.wrong_scores += double{got} == value ? 0 : 1;
      }
    }
  }
  return out;
}

/// The (K, V) rows a keep set retains, per layer and head.
std::vector<std::vector<std::multiset<Row>>> retained(const RandomCache& cache,
                                                      const OwnedKeepSet& keep) {
  std::vector<std::vector<std::multiset<Row>>> all;
  for (std::int32_t l = 0; l < cache.shape.layers; ++l) {
    all.emplace_back();
    for (std::int32_t h = 0; h < cache.shape.kv_heads; ++h) {
      std::multiset<Row> rows;
      for (std::int32_t s = 0; s < cache.slots; ++s) {
        if (!keep.view.kept(l, h, s)) continue;
        Row row = cache.key(l, h, s);
        const Row v = cache.value(l, h, s);
        row.insert(row.end(), v.begin(), v.end());
        rows.insert(row);
      }
      all.back().push_back(rows);
    }
  }
  return all;
}

TEST_CASE("compact: both strategies put every row where it belongs") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const Arrangement arrangement =
      GENERATE(Arrangement::nhd, Arrangement::hnd, Arrangement::padded, Arrangement::per_layer);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::int32_t victims = GENERATE(1, 2);
  const std::int32_t head_dim = GENERATE(8, 7);
  CAPTURE(static_cast<int>(isa), static_cast<int>(arrangement), dtype_name(dtype), victims,
          head_dim);
  CpuBackend backend({}, isa);
  Random random(61);
  const std::vector<std::vector<std::uint8_t>> all_marks{
      {mine, mine, mine, mine, mine},
      {0, 0, mine, mine, mine},
      {mine, 0, mine, mine, 0, mine},
      {mine | page_protected, mine, mine, mine},
  };
  for (const std::vector<std::uint8_t>& marks : all_marks) {
    Case c;
    c.shape = {.layers = 2,
               .query_heads = 2,
               .kv_heads = 2,
               .head_dim = head_dim,
               .value_dim = 5,
               .page_size = 16};
    c.cache.slots = static_cast<std::int32_t>(marks.size()) * 16;
    c.cache.dtype = dtype;
    c.cache.arrangement = arrangement;
    c.cache.seed = random.bits();
    c.marks = marks;
    c.victims = victims;
    RandomCache holes_cache(c.shape, c.cache);
    RandomCache order_cache(c.shape, c.cache);
    OwnedKeepSet keep(c.shape, c.cache.slots);
    random_keep(random, c.shape, marks, (test::private_pages(marks) - victims) * 16, keep);
    const auto want = retained(holes_cache, keep);

    const Outcome holes = compact(backend, holes_cache, c, keep, holes_cache.view(), true);
    c.strategy = CompactionStrategy::in_order;
    const Outcome order = compact(backend, order_cache, c, keep, order_cache.view(), true);
    CHECK(holes.misplaced == 0);
    CHECK(holes.wrong_scores == 0);
    CHECK(order.misplaced == 0);
    CHECK(order.wrong_scores == 0);
    CHECK(holes.most_moved <= 16 * victims);
    CHECK(holes.most_moved > 0);
    // The same rows survive, and they are those that were to survive.
    CHECK(holes.retained == want);
    CHECK(order.retained == want);

    // Attention over what is left does not care about the order.
    const Rows query{random.normal_row(head_dim), random.normal_row(head_dim)};
    const std::int32_t left = c.cache.slots - 16 * victims;
    for (std::int32_t l = 0; l < 2; ++l) {
      const Rows a = paged_attention(backend, holes_cache, holes.table, l, left, query);
      const Rows b = paged_attention(backend, order_cache, order.table, l, left, query);
      for (std::size_t h = 0; h < 2; ++h) {
        CHECK(reference::distance(a[h], b[h], 1e-5, 1e-5) <= 1);
      }
    }
  }
}

TEST_CASE("compact: nothing to move, everything to move") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const CompactionStrategy strategy =
      GENERATE(CompactionStrategy::fill_holes, CompactionStrategy::in_order);
  CpuBackend backend({}, isa);
  Case c;
  c.shape = {.layers = 1, .query_heads = 1, .kv_heads = 1, .head_dim = 4, .page_size = 16};
  c.cache.slots = 64;
  c.marks.assign(4, mine);
  c.strategy = strategy;
  for (const std::int32_t evicted : {0, 1, 2, 3}) {
    CAPTURE(static_cast<int>(isa), static_cast<int>(strategy), evicted);
    // One page loses all its rows, the others none.
    std::vector<bool> kept(64, true);
    std::fill_n(kept.begin() + evicted * 16, 16, false);
    RandomCache cache(c.shape, c.cache);
    OwnedKeepSet keep(c.shape, 64);
    keep.set(0, 0, kept);
    keep.count(16);
    const auto want = retained(cache, keep);
    const Outcome out = compact(backend, cache, c, keep, cache.view(), true);
    CHECK(out.misplaced == 0);
    CHECK(out.wrong_scores == 0);
    CHECK(out.retained == want);
  }
}

TEST_CASE("compact: V as a view of K's rows moves once, with K") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const CompactionStrategy strategy =
      GENERATE(CompactionStrategy::fill_holes, CompactionStrategy::in_order);
  const bool null_v = GENERATE(true, false);
  CAPTURE(static_cast<int>(isa), static_cast<int>(strategy), null_v);
  CpuBackend backend({}, isa);
  Case c;
  c.shape = {.layers = 2,
             .query_heads = 4,
             .kv_heads = 1,
             .head_dim = 12,
             .value_dim = 8,
             .page_size = 16};
  c.cache.slots = 80;
  c.cache.seed = 62;
  c.marks.assign(5, mine);
  c.strategy = strategy;
  RandomCache cache(c.shape, c.cache);
  OwnedKeepSet keep(c.shape, 80);
  Random random(63);
  random_keep(random, c.shape, c.marks, 64, keep);
  KvView kv = cache.view();
  kv.v = null_v ? KvTensor{} : kv.k;
  REQUIRE(kv.v_in_k());
  const Outcome out =
      compact(backend, cache, c, keep, kv, false);  // the separate V stays as it was
  CHECK(out.misplaced == 0);
  CHECK(out.wrong_scores == 0);
}

TEST_CASE("compact: without scores, and on two workers") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend one({}, isa);
  CpuBackend two(test::two_threads(), isa);
  const CacheShape shape{
      .layers = 3, .query_heads = 4, .kv_heads = 2, .head_dim = 16, .page_size = 32};
  const RandomCache::Options options{.slots = 160, .dtype = DType::bf16, .seed = 64};
  RandomCache a(shape, options), b(shape, options);
  const std::vector<std::uint8_t> marks(5, mine);
  OwnedKeepSet keep(shape, 160);
  Random random(65);
  random_keep(random, shape, marks, 128, keep);
  CompactionMove move;
  move.shape = shape;
  move.marks = marks.data();
  move.plan = plan(marks, keep.page_kept(), 1, CompactionStrategy::fill_holes);
  move.keep = keep.view;
  move.kv = a.view();
  move.pages = a.table.data();
  one.compact(move);
  move.kv = b.view();
  move.pages = b.table.data();
  two.compact(move);
  const auto rows_a = snapshot(a, true);
  const auto rows_b = snapshot(b, true);
  std::int64_t different = 0;
  for (std::size_t l = 0; l < 3; ++l) {
    for (std::size_t h = 0; h < 2; ++h) {
      for (std::size_t i = 0; i < rows_a[l][h].size(); ++i) {
        different += same(rows_a[l][h][i], rows_b[l][h][i]) ? 0 : 1;
      }
    }
  }
  CHECK(different == 0);
}

TEST_CASE("compact: boundary after boundary, every token is where the formulas put it") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const CompactionStrategy strategy =
      GENERATE(CompactionStrategy::fill_holes, CompactionStrategy::in_order);
  CAPTURE(static_cast<int>(isa), static_cast<int>(strategy));
  CpuBackend backend({}, isa);
  Case c;
  c.shape = {.layers = 1, .query_heads = 2, .kv_heads = 2, .head_dim = 4, .page_size = 16};
  c.cache.slots = 96;
  c.cache.seed = 66;
  c.marks.assign(6, mine);
  c.strategy = strategy;
  RandomCache cache(c.shape, c.cache);
  Random random(67);
  for (int round = 0; round < 6; ++round) {
    CAPTURE(round);
    Rows newest;  // what the append page holds at this boundary
    for (std::int32_t s = 80; s < 96; ++s) newest.push_back(cache.key(0, 0, s));
    OwnedKeepSet keep(c.shape, 96);
    random_keep(random, c.shape, c.marks, 80, keep);
    const auto want = retained(cache, keep);
    const Outcome out = compact(backend, cache, c, keep, cache.view(), true);
    CHECK(out.misplaced == 0);
    CHECK(out.retained == want);
    // fill_holes never empties the newest page: the append page is another one.
    if (strategy == CompactionStrategy::fill_holes) CHECK(out.table.back() != cache.table.back());
    cache.table = out.table;
    // The next 16 tokens fill the append page; at the next boundary it is the newest.
    for (std::int32_t s = 80; s < 96; ++s) {
      for (std::int32_t h = 0; h < 2; ++h) {
        cache.set_key(0, h, s, random.normal_row(4));
        cache.set_value(0, h, s, random.normal_row(4));
      }
    }
  }
}

}  // namespace
}  // namespace growpage
