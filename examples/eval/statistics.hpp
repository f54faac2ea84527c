// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace growpage::eval {

/// A statistic and its 95 % bootstrap interval.
struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

struct BootstrapOptions {
  std::int32_t resamples = 1000;
  std::uint64_t seed = 1;
};

/// NaN when empty.
[[nodiscard]] double mean(std::span<const double> values);

/// Spearman's ρ: the correlation of the ranks, ties at their mean rank. NaN for fewer than two
/// points, or when one side is all ties.
[[nodiscard]] double spearman(std::span<const double> x, std::span<const double> y);

/// A statistic of chosen clusters (texts, problems), given by index, some more than once.
using Statistic = std::function<double(std::span<const std::size_t>)>;

/// Percentile bootstrap over clusters: what is drawn again is a whole text or problem, since what
/// was measured within one is not independent. Resamples whose statistic is NaN are left out.
[[nodiscard]] Interval bootstrap(std::size_t clusters, const Statistic& statistic,
                                 const BootstrapOptions& options);
/// Of a statistic of all that is in the chosen clusters.
template <class T, class F>
Interval bootstrap_gathered(const std::vector<std::vector<T>>& clusters, F&& statistic,
                            const BootstrapOptions& options) {
  std::vector<T> gathered;
  const auto of = [&](std::span<const std::size_t> chosen) {
    gathered.clear();
    for (const std::size_t i : chosen) {
      gathered.insert(gathered.end(), clusters[i].begin(), clusters[i].end());
    }
    return statistic(gathered);
  };
  return bootstrap(clusters.size(), of, options);
}
/// Of the mean of one value a cluster.
[[nodiscard]] Interval bootstrap_mean(std::span<const double> values,
                                      const BootstrapOptions& options);

/// [value] its bin of `bins` of equal size (± 1) by rank, equal values in order of place.
[[nodiscard]] std::vector<std::size_t> quantile_bins(std::span<const double> values,
                                                     std::size_t bins);

/// Where `x` lies among ascending `points`: x = (1 − weight)·points[below] + weight·points[above].
/// Outside the points: the nearest one, and `inside` is false.
struct Bracket {
  std::size_t below = 0;
  std::size_t above = 0;
  double weight = 0;
  bool inside = false;
};
[[nodiscard]] Bracket bracket(std::span<const double> points, double x);

}  // namespace growpage::eval
