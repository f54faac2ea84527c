// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "growpage/demand/rope.hpp"

/// What the library must compute, written from the formulas in double precision with sorts and
/// vectors. Slow on purpose; shares no code with any backend.
namespace growpage::reference {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

inline double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline double norm(const Row& x) { return std::sqrt(dot(x, x)); }

inline double rms(const Row& x) { return std::sqrt(dot(x, x) / static_cast<double>(x.size())); }

/// β weights the OLD value.
inline Row ema(const Row& old, const Row& query, double beta) {
  Row next(old.size());
  for (std::size_t i = 0; i < old.size(); ++i) next[i] = beta * old[i] + (1.0 - beta) * query[i];
  return next;
}

/// q̃ = q̄ · RMS(q_t) / (RMS(q̄) + 1e-6).
inline Row calibrated(const Row& summary, double query_rms) {
  const double factor = query_rms / (rms(summary) + 1e-6);
  Row out;
  for (const double x : summary) out.push_back(x * factor);
  return out;
}

/// Rotary embedding at `position`; the angle is computed in double, so it is right at any length.
inline Row rotated(const Row& x, const RopeParams& rope, std::int64_t position) {
  Row out = x;
  const std::int32_t half = rope.rotary_dim / 2;
  for (std::int32_t i = 0; i < half; ++i) {
    double c = 0;
    double s = 0;
    if (rope.cos_table != nullptr) {
      c = rope.cos_table[position * half + i];
      s = rope.sin_table[position * half + i];
    } else {
      const double angle = static_cast<double>(position) * static_cast<double>(rope.inv_freq[i]);
      c = std::cos(angle);
      s = std::sin(angle);
    }
    c *= rope.attention_scale;
    s *= rope.attention_scale;
    const bool interleaved = rope.pairing == RopePairing::interleaved;
    const auto a = static_cast<std::size_t>(interleaved ? 2 * i : i);
    const auto b = static_cast<std::size_t>(interleaved ? 2 * i + 1 : i + half);
    out[a] = x[a] * c - x[b] * s;
    out[b] = x[a] * s + x[b] * c;
  }
  return out;
}

/// Softmax under the contract's rules: NaN = −inf, +inf = the largest float, all −inf = uniform.
inline Row softmax(Row logits) {
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  double largest = lowest;
  for (double& x : logits) {
    if (std::isnan(x)) x = lowest;
    x = std::min(x, static_cast<double>(FLT_MAX));
    largest = std::max(largest, x);
  }
  if (largest == lowest) return Row(logits.size(), 1.0 / static_cast<double>(logits.size()));
  double sum = 0;
  for (double& x : logits) sum += x = std::exp(x - largest);
  for (double& x : logits) x /= sum;
  return logits;
}

/// D_p: the fewest largest weights whose sum reaches p. Counted from below: as many of the smallest
/// weights as possible are left out while their sum stays ≤ 1 − p. The same number, and exact for
/// p = 1, where only zero weights may be left out.
inline std::int64_t working_set(Row weights, double p) {
  std::sort(weights.begin(), weights.end());
  double left_out = 0;
  std::int64_t dropped = 0;
  for (const double w : weights) {
    left_out += w;
    if (left_out > 1.0 - p) break;
    ++dropped;
  }
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(weights.size()) - dropped);
}

/// H / log C; 1 for a single candidate (its distribution is uniform).
inline double entropy_ratio(const Row& weights) {
  if (weights.size() == 1) return 1.0;
  double h = 0;
  for (const double w : weights) h -= w > 0 ? w * std::log(w) : 0.0;
  return h / std::log(static_cast<double>(weights.size()));
}

/// Max-pool of odd width along slots, clipped at both ends.
inline Row pooled(const Row& x, std::int32_t width) {
  const auto n = static_cast<std::int32_t>(x.size());
  Row out(x.size());
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t first = std::max(0, i - width / 2);
    const std::int32_t last = std::min(n - 1, i + width / 2);
    out[static_cast<std::size_t>(i)] = *std::max_element(x.begin() + first, x.begin() + last + 1);
  }
  return out;
}

/// Attention of one query over (keys, values) rows, all of them visible. No rows = zeros.
inline Row attention(const Row& query, const Rows& keys, const Rows& values, std::int32_t v_dim,
                     double scale) {
  Row out(static_cast<std::size_t>(v_dim), 0.0);
  if (keys.empty()) return out;
  Row logits;
  for (const Row& k : keys) logits.push_back(dot(query, k) * scale);
  const Row weights = softmax(logits);
  for (std::size_t s = 0; s < keys.size(); ++s) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += weights[s] * values[s][i];
  }
  return out;
}

/// The largest |got − want| in units of `absolute + relative·|want|`: at most 1 = agreement. A NaN
/// or a different length is infinitely far off.
template <class Got>
double distance(const Got& got, const Row& want, double relative, double absolute) {
  constexpr double far = std::numeric_limits<double>::infinity();
  if (static_cast<std::size_t>(got.size()) != want.size()) return far;
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - want[i]);
    if (!(error >= 0)) return far;
    worst = std::max(worst, error / (absolute + relative * std::abs(want[i])));
  }
  return worst;
}

}  // namespace growpage::reference
