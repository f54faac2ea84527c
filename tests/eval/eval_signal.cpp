// SPDX-License-Identifier: Apache-2.0
// Part `signal` on a random model, and the working sets it compares Δ with.
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

#include "trial.hpp"
#include "working_sets.hpp"

using namespace growpage;        // NOLINT(google-build-using-namespace)
using namespace growpage::test;  // NOLINT(google-build-using-namespace)

namespace {

constexpr float none = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("working sets are smoothed as queries are: the first as it is, then old and new") {
  const WorkingSets sets{none, 0.5F, 0.1F, 0.3F};
  CHECK(std::isnan(smoothed(sets, 0, 0.9)));
  CHECK(std::isnan(smoothed(sets, 1, 0.9)));
  CHECK(smoothed(sets, 2, 0.9) == Approx(0.5));
  CHECK(smoothed(sets, 3, 0.9) == Approx(0.9 * 0.5 + 0.1 * 0.1));
  CHECK(smoothed(sets, 4, 0.9) == Approx(0.9 * (0.9 * 0.5 + 0.1 * 0.1) + 0.1 * 0.3));
  CHECK(smoothed(sets, 4, 0) == Approx(0.3));
}

TEST_CASE("the mean of a page needs every step of it") {
  const WorkingSets sets{none, 0.5F, 0.1F, 0.3F, 0.2F};
  CHECK(page_mean(sets, 1, 2) == Approx(0.3));
  CHECK(page_mean(sets, 3, 2) == Approx(0.25));
  CHECK(std::isnan(page_mean(sets, 0, 2)));
  CHECK(std::isnan(page_mean(sets, 4, 2)));
  CHECK(std::isnan(page_mean(sets, -1, 2)));
}

TEST_CASE("a working set that has to hold everything holds everything, from the second page on") {
  EvalOptions options = small_options();
  options.demand.p = 1;
  const Trial trial(texts_of({60}, false), options);
  const Result<std::vector<WorkingSets>> sets =
      true_working_sets(trial.experiment, forced_texts(trial.problems));
  REQUIRE(sets.ok());
  REQUIRE(sets->front().size() == 65);
  for (std::size_t i = 0; i < 16; ++i) CHECK(std::isnan(sets->front()[i]));
  // The last token of the solution is never an input.
  for (std::size_t i = 16; i < 64; ++i) CHECK(double{sets->front()[i]} == Approx(1));
  CHECK(std::isnan(sets->front()[64]));
}

TEST_CASE("the signal has a point for every boundary with a whole page on both sides") {
  EvalOptions options = small_options();
  options.initial_pages = 4;
  const Trial trial(texts_of({60, 107, 108}, false), options);
  const Json signal = measured(measure_signal(trial.experiment));
  // Tokens with K and V: 4 + length. Boundaries from 32 slots on, at every 16, with 16 tokens more:
  // 64 tokens: 32, 48; 111: 32 to 80; 112: 32 to 96.
  CHECK(signal["boundaries"] == 2 + 4 + 5);
  CHECK(signal["decisions"]["boundaries"] == 0 + 2 + 3);  // of those, from 64 slots on
  for (const Json& point : signal["points"]) CHECK(std::abs(point[0].get<double>()) < 1);
  CHECK(signal["variants"].size() == 13);
}

TEST_CASE("the changes of the signal are those of the true working sets") {
  EvalOptions options = small_options();
  options.variant_texts = 0;
  options.threads = 1;
  std::vector<Problem> problems = texts_of({108}, false);
  problems.front().lasting = {0, 27, 42, 43, 107};  // positions 5 later: 32 and 47 on one page
  const Trial trial(problems, options);
  const Json signal = measured(measure_signal(trial.experiment));
  CHECK(signal["variants"].size() == 1);
  const Result<std::vector<WorkingSets>> all =
      true_working_sets(trial.experiment, forced_texts(trial.problems));
  REQUIRE(all.ok());
  const WorkingSets& sets = all->front();
  REQUIRE(signal["points"].size() == 5);
  for (std::int64_t i = 0; i < 5; ++i) {
    const Json& point = signal["points"][static_cast<std::size_t>(i)];
    const std::int64_t boundary = 32 + 16 * i;
    double before = 0;
    double after = 0;
    for (std::int64_t k = 0; k < 16; ++k) {
      before += double{sets[static_cast<std::size_t>(boundary - 16 + k)]} / 16;
      after += double{sets[static_cast<std::size_t>(boundary + k)]} / 16;
    }
    const double level =
        smoothed(sets, boundary, double{options.summary.for_page_size(16).beta_long});
    CHECK(point[1].get<double>() == Approx(after - before).margin(1e-7));
    CHECK(point[2].get<double>() == Approx(after * static_cast<double>(boundary) -
                                           before * static_cast<double>(boundary - 16))
                                        .margin(1e-5));
    CHECK(point[3].get<double>() == Approx(after - level).margin(1e-7));
    const std::map<std::int64_t, double> lasting{{32, 2.0 / 16}, {48, 1.0 / 16}};
    CHECK(point[5] == (lasting.contains(boundary) ? lasting.at(boundary) : 0));
    CHECK(point[4].get<double>() == Approx(smoothed(sets, boundary, 0.9) - level).margin(1e-7));
  }
}
