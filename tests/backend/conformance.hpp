// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every backend must do, on inputs whose right outputs are computed here in a few plain lines.
// Instantiate it for a backend with
//   TEMPLATE_TEST_CASE("…", "[conformance]", MyBackend) { conformance::everything<TestType>(); }
// The type needs a default constructor. Finer tests against an independent double-precision
// reference are in tests/numeric.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "backend/scene.hpp"
#include "support/catch.hpp"

namespace growpage::test::conformance {

using Row = std::vector<float>;

[[nodiscard]] inline std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// ------------------------------------------------------------------------------ demand and scores

/// Probabilities of query head `h`'s calibrated summary `which` over slots [0, n); no RoPE.
template <KvBackend B>
std::vector<double> attention(const Scene<B>& scene, std::int32_t layer, std::int32_t which,
                              std::int32_t h, std::int32_t n) {
  const CacheShape& s = scene.spec.shape;
  const std::int64_t row = std::int64_t{layer} * 2 + 1;  // summary slot 1 of 2
  const std::int64_t first = ((row * 2 + which) * s.query_heads + h) * s.head_dim;
  double squares = 0;
  for (std::int32_t i = 0; i < s.head_dim; ++i) {
    const double x = double{scene.summary_host[at(first + i)]};
    squares += x * x;
  }
  const double factor = double{scene.rms_host[at(row * s.query_heads + h)]} /
                        (std::sqrt(squares / s.head_dim) + 1e-6) /
                        std::sqrt(static_cast<double>(s.head_dim));
  std::vector<double> p;
  for (std::int32_t slot = 0; slot < n; ++slot) {
    const Row key = scene.k_row(layer, h / s.group(), slot);
    double logit = 0;
    for (std::int32_t i = 0; i < s.head_dim; ++i) {
      logit += factor * double{scene.summary_host[at(first + i)]} * double{key[at(i)]};
    }
    p.push_back(logit);
  }
  const double max = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - max);
  for (double& x : p) x /= sum;
  return p;
}

template <KvBackend B>
void demand_and_scores(B& backend) {
  SceneSpec spec;
  spec.slots = 61;
  Scene<B> scene(backend, spec);
  const CacheShape& s = spec.shape;
  const std::int32_t candidates = 48;
  DemandOptions options;
  options.p = 0.9F;
  const BoundaryOutcome outcome = scene.boundary(options, {}, candidates);

  Demand want;
  for (std::int32_t l = 0; l < s.layers; ++l) {
    for (std::int32_t kv = 0; kv < s.kv_heads; ++kv) {
      std::vector<double> score(at(spec.slots), 0.0);
      for (std::int32_t which = 0; which < 2; ++which) {
        std::vector<double> mean(at(candidates), 0.0);
        for (std::int32_t h = kv * s.group(); h < (kv + 1) * s.group(); ++h) {
          const auto all = attention(scene, l, which, h, spec.slots);
          const auto past = attention(scene, l, which, h, candidates);
          for (std::int32_t i = 0; i < spec.slots; ++i)
            score[at(i)] = std::max(score[at(i)], all[at(i)]);
          for (std::int32_t i = 0; i < candidates; ++i) mean[at(i)] += past[at(i)] / s.group();
        }
        std::sort(mean.rbegin(), mean.rend());
        double sum = 0;
        std::size_t count = 0;
        while (sum < double{options.p}) sum += mean[count++];
        (which == 0 ? want.short_sum : want.long_sum) += static_cast<double>(count) / candidates;
      }
      ++want.count;
      for (std::int32_t i = 0; i < spec.slots; ++i) {
        const float got = outcome.scores[at((l * s.kv_heads + kv) * spec.slots + i)];
        REQUIRE(double{got} == Approx(score[at(i)]).epsilon(1e-3));
      }
    }
  }
  CHECK(outcome.demand.count == want.count);
  // A weight at the edge of the working set may fall on either side of it.
  const double edge = 1.01 / candidates;
  CHECK(std::abs(outcome.demand.short_sum - want.short_sum) <= edge);
  CHECK(std::abs(outcome.demand.long_sum - want.long_sum) <= edge);

  const BoundaryOutcome none = scene.boundary(options, {}, 0);
  CHECK(none.demand.count == 0);
  CHECK(none.demand.short_sum == 0.0);
  CHECK(none.scores[5] == Approx(double{outcome.scores[5]}).epsilon(1e-4));
}

// ----------------------------------------------------------------------------------------
// selection

/// Slots that survive, by sorting: see Selection.
template <KvBackend B>
std::set<std::int32_t> survivors(const Scene<B>& scene, const float* scores,
                                 const RetentionOptions& options,
                                 const std::vector<std::uint8_t>& marks, std::int32_t keep,
                                 std::int32_t protected_slots) {
  const std::int32_t b = scene.spec.shape.page_size;
  const std::int32_t n = scene.spec.slots;
  const auto is_private = [&](std::int32_t slot) {
    return (marks[at(slot / b)] & page_private) != 0;
  };
  std::set<std::int32_t> result;
  std::int32_t left = keep;
  for (std::int32_t s = 0; s < n; ++s) {
    if (!is_private(s)) result.insert(s);
    const bool always = s >= n - options.recent || s < std::max(protected_slots, options.sinks);
    if (is_private(s) && always) {
      result.insert(s);
      --left;
    }
  }
  std::vector<std::int32_t> order;
  for (std::int32_t s = 0; s < n; ++s) {
    if (!result.contains(s)) order.push_back(s);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t x, std::int32_t y) { return scores[x] > scores[y]; });
  std::int32_t private_pages = 0;
  for (const std::uint8_t mark : marks) private_pages += (mark & page_private) != 0 ? 1 : 0;
  const std::int32_t quota = std::min(options.local_quota(b), left / private_pages);
  std::map<std::int32_t, std::int32_t> taken;
  for (const std::int32_t s : order) {
    if (taken[s / b] >= quota) continue;
    ++taken[s / b];
    result.insert(s);
    --left;
  }
  for (const std::int32_t s : order) {
    if (left > 0 && result.insert(s).second) --left;
  }
  return result;
}

template <KvBackend B>
void check_selection(Scene<B>& scene, const std::vector<float>& scores,
                     const RetentionOptions& options, const std::vector<std::uint8_t>& marks,
                     std::int32_t keep, std::int32_t protected_slots = 0) {
  const SceneSpec& spec = scene.spec;
  const SelectOutcome got = scene.select(scores, options, marks, keep, protected_slots);
  std::vector<std::int32_t> page_kept(at(scene.page_count()), 0);
  for (std::int32_t r = 0; r < scene.rows(); ++r) {
    const auto want =
        survivors(scene, scores.data() + r * spec.slots, options, marks, keep, protected_slots);
    std::set<std::int32_t> have;
    for (std::int64_t w = 0; w < scene.words(); ++w) {
      for (std::int32_t bit = 0; bit < 64; ++bit) {
        const std::uint64_t word = got.bits[at(r * scene.words() + w)];
        if (((word >> bit) & 1u) != 0) have.insert(static_cast<std::int32_t>(w * 64 + bit));
      }
    }
    REQUIRE(have == want);
    for (const std::int32_t s : want) ++page_kept[at(s / spec.shape.page_size)];
  }
  CHECK(got.page_kept == page_kept);
}

template <KvBackend B>
void selection(B& backend) {
  SceneSpec spec;
  spec.slots = 160;
  Scene<B> scene(backend, spec);
  std::vector<std::uint8_t> marks(10, page_private);
  Random random(5);
  std::vector<float> scores(at(scene.rows() * spec.slots));
  RetentionOptions options;
  options.recent = 8;
  SECTION("distinct scores, sinks") {
    for (float& x : scores) x = static_cast<float>(random.normal());
    options.sinks = 4;
    check_selection(scene, scores, options, marks, 144);
  }
  SECTION("ties go to the lower slot; shared pages keep everything") {
    for (float& x : scores) x = static_cast<float>(random.below(3));
    marks[0] = marks[1] = 0;
    check_selection(scene, scores, options, marks, 112, 40);
  }
  SECTION("all equal, a quota that exceeds the budget") {
    options.local_per_256 = 256;
    check_selection(scene, scores, options, marks, 144);
  }
}

// ---------------------------------------------------------------------------------------
// compaction

/// The retained (K, V) rows of every (layer, head) in the table after the plan, and the number of
/// rows that moved.
template <KvBackend B>
void compaction(B& backend, CompactionStrategy strategy, std::int32_t victims,
                Arrangement arrangement) {
  SceneSpec spec;
  spec.slots = 96;
  spec.arrangement = arrangement;
  spec.shape.value_dim = 40;
  Scene<B> scene(backend, spec);
  const std::int32_t b = spec.shape.page_size;
  std::vector<std::uint8_t> marks(6, page_private);
  marks[1] = 0;
  Random random(9);
  std::vector<float> scores(at(scene.rows() * spec.slots));
  for (float& x : scores) x = static_cast<float>(random.uniform());
  RetentionOptions options;
  options.recent = 4;
  options.local_per_256 = 16;
  const std::int32_t new_slots = spec.slots - victims * b;
  const SelectOutcome selected = scene.select(scores, options, marks, new_slots - b);
  const auto plan = plan_compaction(marks, selected.page_kept, victims, strategy);
  REQUIRE(plan.ok());

  const Scene<B> before(backend, spec);
  const std::vector<float> moved_scores = scene.compact(selected, *plan, marks, scores);
  scene.download();

  std::vector<std::int32_t> table;  // logical pages after the compaction
  for (std::int32_t p = 0; p < 6; ++p) {
    if (p != plan->victim[0] && p != plan->victim[1]) table.push_back(p);
  }
  KeepSet keep = scene.keep_set(const_cast<std::uint64_t*>(selected.bits.data()), nullptr);
  for (std::int32_t l = 0; l < spec.shape.layers; ++l) {
    for (std::int32_t h = 0; h < spec.shape.kv_heads; ++h) {
      const float* old_scores = scores.data() + (l * spec.shape.kv_heads + h) * spec.slots;
      const float* new_scores = moved_scores.data() + (l * spec.shape.kv_heads + h) * spec.slots;
      std::multiset<std::pair<Row, Row>> want, have;
      std::map<Row, float> score_of;
      std::vector<Row> order;
      for (std::int32_t s = 0; s < spec.slots; ++s) {
        if (!keep.kept(l, h, s)) continue;
        want.emplace(before.k_row(l, h, s), before.v_row(l, h, s));
        order.push_back(before.k_row(l, h, s));
        score_of[order.back()] = old_scores[s];
      }
      REQUIRE(static_cast<std::int32_t>(want.size()) == new_slots);
      std::int32_t moved = 0;
      for (std::int32_t s = 0; s < new_slots; ++s) {
        const std::int32_t old_slot = table[at(s / b)] * b + s % b;
        const Row key = scene.k_row(l, h, old_slot);
        have.emplace(key, scene.v_row(l, h, old_slot));
        REQUIRE(new_scores[s] == score_of.at(key));
        moved += key != before.k_row(l, h, old_slot) ? 1 : 0;
        const bool shared = table[at(s / b)] == 1;
        if (shared) REQUIRE(key == before.k_row(l, h, old_slot));
      }
      REQUIRE(have == want);
      if (strategy == CompactionStrategy::fill_holes) {
        CHECK(moved <= b * victims);
        CHECK(plan->victim[victims - 1] != 5);
      } else {
        // The rows of the private pages keep their order.
        std::vector<Row> left, right;
        for (std::int32_t s = 0; s < spec.slots; ++s) {
          if (keep.kept(l, h, s) && s / b != 1) left.push_back(before.k_row(l, h, s));
        }
        for (std::int32_t s = 0; s < new_slots; ++s) {
          const std::int32_t p = table[at(s / b)];
          if (p != 1) right.push_back(scene.k_row(l, h, p * b + s % b));
        }
        CHECK(left == right);
      }
    }
  }
}

}  // namespace growpage::test::conformance
