// SPDX-License-Identifier: Apache-2.0
// The reference against values worked out by hand: what the other tests rest on.
#include <cmath>
#include <limits>
#include <numbers>

#include "support/catch.hpp"
#include "support/reference.hpp"
#include "support/reference_retention.hpp"

namespace growpage::reference {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("reference: softmax by hand") {
  CHECK(distance(softmax({0.0, std::log(3.0)}), {0.25, 0.75}, 1e-14, 0) < 1);
  CHECK(softmax({1e300, 0.0}) == Row{1.0, 0.0});
  CHECK(softmax({nan, 0.0, 0.0}) == Row{0.0, 0.5, 0.5});
  CHECK(softmax({inf, 5.0, inf}) == Row{0.5, 0.0, 0.5});
  CHECK(softmax({-inf, nan, -inf, -inf}) == Row(4, 0.25));
}

TEST_CASE("reference: working set by hand") {
  CHECK(working_set({0.5, 0.25, 0.125, 0.125}, 0.5) == 1);
  CHECK(working_set({0.125, 0.5, 0.125, 0.25}, 0.51) == 2);
  CHECK(working_set({0.125, 0.5, 0.125, 0.25}, 0.75) == 2);
  CHECK(working_set({0.125, 0.5, 0.125, 0.25}, 0.76) == 3);
  CHECK(working_set({0.25, 0.25, 0.25, 0.25}, 0.5) == 2);
  CHECK(working_set({0.5, 0.5, 0.0, 0.0}, 1.0) == 2);
  CHECK(working_set(Row(100, 0.01), 0.985) == 99);
  CHECK(working_set({1.0}, 0.01) == 1);
}

TEST_CASE("reference: entropy, pooling, EMA, calibration by hand") {
  CHECK(entropy_ratio({0.25, 0.25, 0.25, 0.25}) == 1.0);
  CHECK(entropy_ratio({1.0, 0.0, 0.0, 0.0}) == 0.0);
  CHECK(entropy_ratio({0.5, 0.5, 0.0, 0.0}) == 0.5);
  CHECK(pooled({1, 5, 2, 0, 3, 0}, 3) == Row{5, 5, 5, 3, 3, 3});
  CHECK(ema({1.0}, {2.0}, 0.75) == Row{1.25});  // β weights the old value
  CHECK(distance(calibrated({3.0, 4.0}, 10.0), {6.0 * std::sqrt(2.0), 8.0 * std::sqrt(2.0)}, 1e-6,
                 0) < 1);
  CHECK(calibrated({0.0, 0.0}, 10.0) == Row{0.0, 0.0});
}

TEST_CASE("reference: a quarter turn in both pairings") {
  const float frequency[] = {static_cast<float>(std::numbers::pi / 2), 0.0F};
  RopeParams rope;
  rope.rotary_dim = 4;
  rope.inv_freq = frequency;
  CHECK(distance(rotated({1, 2, 3, 4, 5}, rope, 1), {-3, 2, 1, 4, 5}, 0, 1e-6) < 1);
  rope.pairing = RopePairing::interleaved;
  CHECK(distance(rotated({1, 2, 3, 4, 5}, rope, 1), {-2, 1, 3, 4, 5}, 0, 1e-6) < 1);
  rope.attention_scale = 2.0F;
  CHECK(distance(rotated({1, 2, 3, 4, 5}, rope, 1), {-4, 2, 6, 8, 5}, 0, 1e-6) < 1);
}

TEST_CASE("reference: selection by hand") {
  SelectionCase in;
  in.page_size = 4;
  in.marks = {page_private, page_private};
  in.scores = {9, 8, 7, 6, 1, 2, 3, 0};
  in.recent = 1;
  in.keep = 4;
  CHECK(selected(in) == std::vector<bool>{1, 1, 1, 0, 0, 0, 0, 1});
  in.quota = 1;  // one of each page, the newest page's beside the recent slot
  CHECK(selected(in) == std::vector<bool>{1, 1, 0, 0, 0, 0, 1, 1});
  in.quota = 4;  // clamped to (4 − 1) / 2 = 1
  CHECK(selected(in) == std::vector<bool>{1, 1, 0, 0, 0, 0, 1, 1});
  in.marks[0] = 0;  // shared: all of it stays, none of it counts
  in.quota = 0;
  in.keep = 2;
  CHECK(selected(in) == std::vector<bool>{1, 1, 1, 1, 0, 0, 1, 1});
}

TEST_CASE("reference: moves by hand") {
  const std::vector<bool> kept{1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1};
  const std::vector<std::uint8_t> marks(3, page_private);
  CompactionPlan plan;
  plan.victims = 1;
  plan.victim[0] = 1;
  const std::vector<Move> holes = moves(kept, marks, 4, plan);
  REQUIRE(holes.size() == 2);
  CHECK((holes[0].from == 5 && holes[0].to == 1));
  CHECK((holes[1].from == 6 && holes[1].to == 2));
  CHECK(page_order(3, plan) == std::vector<std::int32_t>{0, 2, 1});
  plan.strategy = CompactionStrategy::in_order;
  plan.victim[0] = 2;
  const std::vector<Move> shifted = moves(kept, marks, 4, plan);
  REQUIRE(shifted.size() == 7);
  CHECK((shifted[0].from == 3 && shifted[0].to == 1));
  CHECK((shifted[6].from == 11 && shifted[6].to == 7));
}

}  // namespace
}  // namespace growpage::reference
