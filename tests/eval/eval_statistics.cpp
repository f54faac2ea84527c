// SPDX-License-Identifier: Apache-2.0
// Ranks, intervals, interpolation and bins against values worked out by hand.
#include <cmath>
#include <random>

#include "statistics.hpp"
#include "support/catch.hpp"

using namespace growpage::eval;  // NOLINT(google-build-using-namespace)

namespace {

using Values = std::vector<double>;

}  // namespace

TEST_CASE("Spearman's rho is the correlation of ranks, ties at their mean") {
  CHECK(spearman(Values{1, 2, 3, 4}, Values{10, 100, 1000, 10000}) == Approx(1));
  CHECK(spearman(Values{1, 2, 3, 4}, Values{4, 3, 2, 1}) == Approx(-1));
  // Ranks 0 1 2 3 4 and 1 0 3 2 4: 1 − 6·Σd²/(n(n² − 1)) = 1 − 6·4/120.
  CHECK(spearman(Values{1, 2, 3, 4, 5}, Values{2, 1, 4, 3, 5}) == Approx(0.8));
  // Ranks 0 1.5 1.5 3 and 0 1 2 3: 4.5/√(4.5·5).
  CHECK(spearman(Values{1, 2, 2, 3}, Values{1, 2, 3, 4}) == Approx(4.5 / std::sqrt(22.5)));
  CHECK(std::isnan(spearman(Values{1, 1, 1}, Values{1, 2, 3})));
  CHECK(std::isnan(spearman(Values{1}, Values{1})));
  CHECK(std::isnan(spearman(Values{1, 2}, Values{1, 2, 3})));
}

TEST_CASE("a bootstrap interval is that of the mean's standard error") {
  std::mt19937 random(1);
  std::normal_distribution<double> normal(3, 2);
  Values values(400);
  for (double& v : values) v = normal(random);
  const Interval interval = bootstrap_mean(values, {2000, 7});
  CHECK(interval.value == Approx(mean(values)));
  const double half = 1.96 * 2 / std::sqrt(400.0);
  CHECK(interval.high - interval.value == Approx(half).epsilon(0.15));
  CHECK(interval.value - interval.low == Approx(half).epsilon(0.15));
}

TEST_CASE("the bootstrap draws whole clusters and repeats with its seed") {
  // Two clusters of opposite values: a resample is one, the other or both.
  const auto statistic = [](std::span<const std::size_t> chosen) {
    REQUIRE(chosen.size() == 2);
    return static_cast<double>(chosen[0] + chosen[1]);
  };
  const Interval interval = bootstrap(2, statistic, {500, 3});
  CHECK(interval.value == 1);
  CHECK(interval.low == 0);
  CHECK(interval.high == 2);
  const Values values{1, 5, 2, 8, 3};
  const Interval a = bootstrap_mean(values, {100, 1});
  const Interval b = bootstrap_mean(values, {100, 1});
  const Interval c = bootstrap_mean(values, {100, 2});
  CHECK(a.low == b.low);
  CHECK(a.high == b.high);
  CHECK((a.low != c.low || a.high != c.high));
  CHECK(std::isnan(bootstrap_mean(Values{}, {}).value));
}

TEST_CASE("resamples without a value are left out") {
  const auto only_both = [](std::span<const std::size_t> chosen) {
    return chosen[0] == chosen[1] ? std::nan("") : 4.0;
  };
  const Interval interval = bootstrap(2, only_both, {100, 1});
  CHECK(interval.low == 4);
  CHECK(interval.high == 4);
}

TEST_CASE("a value is bracketed by the points beside it") {
  const Values points{10, 20, 40};
  const Bracket between = bracket(points, 25);
  CHECK(between.below == 1);
  CHECK(between.above == 2);
  CHECK(between.weight == Approx(0.25));
  CHECK(between.inside);
  const Bracket below = bracket(points, 5);
  CHECK((below.below == 0 && below.above == 0 && !below.inside));
  const Bracket above = bracket(points, 50);
  CHECK((above.below == 2 && above.above == 2 && !above.inside));
  const Bracket on = bracket(points, 20);
  CHECK(on.inside);
  CHECK((1 - on.weight) * points[on.below] + on.weight * points[on.above] == Approx(20));
}

TEST_CASE("quantile bins hold the same number of values, in order") {
  const Values values{5, 1, 4, 2, 3, 0};
  CHECK(quantile_bins(values, 3) == std::vector<std::size_t>{2, 0, 2, 1, 1, 0});
  CHECK(quantile_bins(Values{1, 1, 1, 1}, 2) == std::vector<std::size_t>{0, 0, 1, 1});
  CHECK(quantile_bins(Values{}, 2).empty());
}
