// SPDX-License-Identifier: Apache-2.0
#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace growpage::eval {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double tail = 0.025;  // on each side of a 95 % interval

std::vector<std::size_t> order_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  return order;
}

std::vector<double> ranks(std::span<const double> values) {
  const std::vector<std::size_t> order = order_of(values);
  std::vector<double> rank(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    const double shared = static_cast<double>(first + last - 1) / 2;
    for (; first < last; ++first) rank[order[first]] = shared;
  }
  return rank;
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return nan;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double spearman(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size() || x.size() < 2) return nan;
  const std::vector<double> a = ranks(x);
  const std::vector<double> b = ranks(y);
  const double middle = static_cast<double>(x.size() - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - middle) * (b[i] - middle);
    aa += (a[i] - middle) * (a[i] - middle);
    bb += (b[i] - middle) * (b[i] - middle);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : nan;
}

Interval bootstrap(std::size_t clusters, const Statistic& statistic,
                   const BootstrapOptions& options) {
  std::vector<std::size_t> chosen(clusters);
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  Interval interval{statistic(chosen), nan, nan};
  if (clusters == 0) return interval;
  // The engine's numbers are the same everywhere, std's distributions are not.
  std::mt19937_64 random(options.seed);
  std::vector<double> drawn;
  for (std::int32_t r = 0; r < options.resamples; ++r) {
    for (std::size_t& c : chosen) c = random() % clusters;
    if (const double s = statistic(chosen); !std::isnan(s)) drawn.push_back(s);
  }
  if (drawn.empty()) return interval;
  std::ranges::sort(drawn);
  interval.low = quantile(drawn, tail);
  interval.high = quantile(drawn, 1 - tail);
  return interval;
}

Interval bootstrap_mean(std::span<const double> values, const BootstrapOptions& options) {
  const auto of = [&](std::span<const std::size_t> chosen) {
    double sum = 0;
    for (const std::size_t c : chosen) sum += values[c];
    return chosen.empty() ? nan : sum / static_cast<double>(chosen.size());
  };
  return bootstrap(values.size(), of, options);
}

std::vector<std::size_t> quantile_bins(std::span<const double> values, std::size_t bins) {
  const std::vector<std::size_t> order = order_of(values);
  std::vector<std::size_t> bin(values.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    bin[order[rank]] = rank * bins / order.size();
  }
  return bin;
}

Bracket bracket(std::span<const double> points, double x) {
  if (points.empty()) return {};
  if (x <= points.front()) return {0, 0, 0, x == points.front()};
  const std::size_t last = points.size() - 1;
  if (x >= points.back()) return {last, last, 0, x == points.back()};
  const auto above = static_cast<std::size_t>(std::ranges::upper_bound(points, x) - points.begin());
  return {above - 1, above, (x - points[above - 1]) / (points[above] - points[above - 1]), true};
}

}  // namespace growpage::eval
