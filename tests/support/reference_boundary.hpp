// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "growpage/core/cache_shape.hpp"
#include "growpage/core/dtype.hpp"
#include "growpage/demand/demand.hpp"
#include "growpage/demand/rope.hpp"
#include "growpage/retention/retention.hpp"
#include "support/reference.hpp"

/// Demand and retention scores of a request at a boundary, from the formulas.
namespace growpage::reference {

/// An interval of right answers: a count like D_p jumps where a sum touches p, and a float kernel
/// may fall on either side of a jump closer than its rounding.
struct Range {
  double low = 0;
  double high = 0;
};

/// A request at a boundary, in logical order.
struct Boundary {
  CacheShape shape;
  std::int32_t slots = 0;
  std::int32_t candidates = 0;
  std::int64_t position = 0;
  RopeParams rope;
  DemandOptions demand;
  RetentionOptions retention;
  double softmax_scale = 0;  ///< 0 = 1/√d
  std::function<Row(std::int32_t layer, std::int32_t kv_head, std::int32_t slot)> key;
  std::vector<Rows> short_summary;  ///< [layer][q_head] before calibration
  std::vector<Rows> long_summary;   ///< [layer][q_head]
  std::vector<Rows> query;          ///< [layer][q_head] latest query before RoPE
  std::vector<std::vector<Rows>>
      window;                    ///< [age][layer][q_head], age 0 = latest; ScoreKind::window
  std::vector<Rows> old_scores;  ///< [layer][kv_head][slot], the first slots only; or empty
  bool bf16_keys = false;        ///< queries are then rounded to bf16 after RoPE (contract.hpp)
};

struct BoundaryAnswer {
  std::vector<Rows> scores;  ///< [layer][kv_head][slot]
  Range short_ratio;         ///< mean r over counted (layer, KV head)
  Range long_ratio;
  /// Float rounding before the rounding to bf16 may turn one of its elements to the neighbour: what
  /// a logit can then be off by, at most. Weights may be off by a factor of e^±2·logit_error.
  double logit_error = 0;
};

namespace detail {

inline std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

inline double scale(const Boundary& in) {
  return in.softmax_scale > 0 ? in.softmax_scale : 1.0 / std::sqrt(double(in.shape.head_dim));
}

/// The query as it meets the keys: rotated, and in bf16 where they are.
inline Row turned(const Boundary& in, const Row& query, std::int64_t position) {
  Row q = rotated(query, in.rope, position);
  if (!in.bf16_keys) return q;
  for (double& x : q) x = BFloat16::from_float(static_cast<float>(x)).to_float();
  return q;
}

inline Row logits(const Boundary& in, const Row& query, const Rows& keys, std::int32_t visible) {
  Row out;
  for (std::int32_t s = 0; s < visible; ++s) out.push_back(dot(query, keys[at(s)]) * scale(in));
  return out;
}

/// What one bf16 step of one query element does to a logit, at its largest over the slots.
inline double logit_error(const Boundary& in, const Row& query, const Rows& keys) {
  if (!in.bf16_keys) return 0;
  double largest = 0;
  for (const Row& k : keys) {
    for (std::size_t i = 0; i < k.size(); ++i) {
      largest = std::max(largest, std::abs(query[i] * k[i]));
    }
  }
  return 0x1p-7 * largest * scale(in);
}

/// r, as a range: `slack` is what p may be off by, `error` what each logit may be off by (the mass
/// left out then changes by a factor of at most e^±2·error).
inline Range spread(const Row& weights, const DemandOptions& options, double slack, double error) {
  if (options.metric == DemandMetric::entropy) {
    const double h = entropy_ratio(weights);
    return {h - error, h + error};
  }
  const auto c = static_cast<double>(weights.size());
  const double left_out = 1.0 - double{options.p};
  const double factor = std::exp(2 * error);
  return {double(working_set(weights, std::max(0.0, 1.0 - left_out * factor - slack))) / c,
          double(working_set(weights, std::min(1.0, 1.0 - left_out / factor + slack))) / c};
}

/// best = max(best, weights), on the slots that both have.
inline void raise(Row& best, const Row& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) best[i] = std::max(best[i], weights[i]);
}

/// Zipage's scores: mean over the window of the max over the group; the query of age a sits at
/// position − a and sees all slots but the last a.
inline Row window_scores(const Boundary& in, std::int32_t layer, std::int32_t head,
                         const Rows& keys) {
  const std::int32_t group = in.shape.query_heads / in.shape.kv_heads;
  Row sum(at(in.slots), 0.0);
  for (std::size_t age = 0; age < in.window.size(); ++age) {
    Row best(at(in.slots), 0.0);
    for (std::int32_t g = 0; g < group; ++g) {
      const Row q = turned(in, in.window[age][at(layer)][at(head * group + g)],
                           in.position - static_cast<std::int64_t>(age));
      raise(best, softmax(logits(in, q, keys, in.slots - static_cast<std::int32_t>(age))));
    }
    for (std::size_t i = 0; i < best.size(); ++i) sum[i] += best[i];
  }
  for (double& x : sum) x /= static_cast<double>(in.window.size());
  return sum;
}

}  // namespace detail

/// Demand and retention scores of one boundary (algorithm, sections 2, 4 and 6). `slack` widens the
/// ranges of D_p by that much probability on either side.
inline BoundaryAnswer boundary(const Boundary& in, double slack) {
  using detail::at;
  const std::int32_t group = in.shape.query_heads / in.shape.kv_heads;
  BoundaryAnswer out;
  double terms = 0;
  for (std::int32_t l = 0; l < in.shape.layers; ++l) {
    out.scores.emplace_back();
    const bool counted = in.demand.layer_mask == nullptr || in.demand.layer_mask[l] != 0;
    for (std::int32_t h = 0; h < in.shape.kv_heads; ++h) {
      Rows keys;
      for (std::int32_t s = 0; s < in.slots; ++s) keys.push_back(in.key(l, h, s));
      Row best(at(in.slots), 0.0);
      for (const bool is_long : {false, true}) {
        Row mean(at(in.candidates), 0.0);
        Range heads_mean;
        double error = 0;
        for (std::int32_t g = 0; g < group; ++g) {
          const std::int32_t q_head = h * group + g;
          const Row& summary = (is_long ? in.long_summary : in.short_summary)[at(l)][at(q_head)];
          const Row q = detail::turned(in, calibrated(summary, rms(in.query[at(l)][at(q_head)])),
                                       in.position);
          const Row all = detail::logits(in, q, keys, in.slots);
          error = std::max(error, detail::logit_error(in, q, keys));
          out.logit_error = std::max(out.logit_error, error);
          detail::raise(best, softmax(all));
          if (in.candidates == 0) continue;
          const Row history = softmax(Row(all.begin(), all.begin() + in.candidates));
          for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += history[i] / group;
          const Range r = detail::spread(history, in.demand, slack, error);
          heads_mean.low += r.low / group;
          heads_mean.high += r.high / group;
        }
        if (!counted || in.candidates == 0) continue;
        const Range r = in.demand.group == GroupReduction::per_query_head
                            ? heads_mean
                            : detail::spread(mean, in.demand, slack, error);
        Range& total = is_long ? out.long_ratio : out.short_ratio;
        total.low += r.low;
        total.high += r.high;
        terms += is_long ? 1 : 0;
      }
      Row scores = best;
      if (in.retention.score == ScoreKind::window) {
        scores = detail::window_scores(in, l, h, keys);
      }
      if (in.retention.max_pool > 1) scores = pooled(scores, in.retention.max_pool);
      if (in.retention.global_decay > 0 && !in.old_scores.empty()) {
        Row old = in.old_scores[at(l)][at(h)];
        for (double& x : old) x *= double{in.retention.global_decay};
        detail::raise(scores, old);
      }
      out.scores.back().push_back(scores);
    }
  }
  for (Range* r : {&out.short_ratio, &out.long_ratio}) {
    if (terms > 0) {
      r->low /= terms;
      r->high /= terms;
    }
  }
  return out;
}

}  // namespace growpage::reference
