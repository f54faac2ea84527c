// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "support/random_cache.hpp"
#include "support/reference_boundary.hpp"
#include "support/reference_state.hpp"

namespace growpage::test {

using reference::Rows;

/// One request with a random cache and a history of random queries, for a backend and for the
/// reference alike.
class Scene {
 public:
  struct Options {
    CacheShape shape{.layers = 2, .query_heads = 8, .kv_heads = 2, .head_dim = 32, .page_size = 16};
    RandomCache::Options cache = {};
    SummaryOptions summary{.beta_long = 0.999F, .slots = 4};
    DType q_dtype = DType::f32;
    std::int32_t steps = 40;  ///< decode steps of the history
    double drift = 0.3;       ///< how far a query moves from one step to the next
    double q_scale = 1.0;
    std::int64_t position = -1;  ///< of the latest query; −1 = slots − 1
    std::int32_t rotary_dim = 0;
    RopePairing pairing = RopePairing::half_split;
    float attention_scale = 1.0F;
    /// Replaces the random queries.
    std::function<Row(std::int32_t step, std::int32_t layer, std::int32_t q_head)> query = {};
  };
  static constexpr std::int32_t summary_slot = 2;

  /// One boundary pass.
  struct Call {
    std::int32_t slots = 0;
    std::int32_t candidates = 0;
    DemandOptions demand = {};
    RetentionOptions retention = {};
    std::vector<Rows> old_scores = {};  ///< [layer][kv_head][old slot], or empty
    bool old_in_place = false;          ///< `old_scores` and `scores` are one array
    float softmax_scale = 0;
    bool want_scores = true;
    bool want_demand = true;
    Demand before = {};  ///< what `result` holds on entry
  };

  Scene(CpuBackend& backend, const Options& scene_options)
      : options(scene_options),
        cache(options.shape, options.cache),
        state(options.shape, options.summary) {
    for (std::int32_t i = 0; i < options.rotary_dim / 2; ++i) {
      inv_freq_.push_back(static_cast<float>(std::pow(10000.0, -2.0 * i / options.rotary_dim)));
    }
    rope.rotary_dim = options.rotary_dim;
    rope.pairing = options.pairing;
    rope.inv_freq = inv_freq_.data();
    rope.attention_scale = options.attention_scale;

    Random random(options.cache.seed + 1000);
    std::vector<Rows> query;
    for (std::int32_t t = 0; t < options.steps; ++t) {
      query = next_query(random, query, t);
      history.push_back(query);
      update(backend, query, t == 0);
      remember(query, t == 0);
    }
  }

  [[nodiscard]] std::int64_t position() const {
    return options.position >= 0 ? options.position : options.cache.slots - 1;
  }

  /// What the reference needs to know.
  [[nodiscard]] reference::Boundary boundary(const Call& call) const {
    reference::Boundary in;
    in.shape = options.shape;
    in.slots = call.slots;
    in.candidates = call.candidates;
    in.position = position();
    in.rope = rope;
    in.demand = call.demand;
    in.retention = call.retention;
    in.softmax_scale = double{call.softmax_scale};
    in.old_scores = call.old_scores;
    in.bf16_keys = options.cache.dtype == DType::bf16;
    in.key = [this](std::int32_t l, std::int32_t h, std::int32_t s) { return cache.key(l, h, s); };
    in.short_summary = short_;
    in.long_summary = long_;
    if (options.summary.storage != SummaryOptions::Storage::f32) {
      // Stochastic rounding has a test of its own: here what is stored counts.
      for (std::int32_t l = 0; l < options.shape.layers; ++l) {
        for (std::int32_t h = 0; h < options.shape.query_heads; ++h) {
          const auto layer = static_cast<std::size_t>(l);
          const auto head = static_cast<std::size_t>(h);
          in.short_summary[layer][head] = state.summary(l, summary_slot, 0, h);
          in.long_summary[layer][head] = state.summary(l, summary_slot, 1, h);
        }
      }
    }
    in.query = history.back();
    const auto known = static_cast<std::int32_t>(history.size());
    const std::int32_t window =
        std::min({known, options.summary.window, call.retention.window, call.slots});
    for (std::int32_t age = 0; age < window; ++age) {
      in.window.push_back(history[static_cast<std::size_t>(known - 1 - age)]);
    }
    return in;
  }

  struct Answer {
    std::vector<Rows> scores;  ///< [layer][kv_head][slot]
    Demand demand;
    bool workspace_intact = false;
  };
  /// What the backend answers.
  [[nodiscard]] Answer run(CpuBackend& backend, const Call& call) {
    const CacheShape& shape = options.shape;
    const std::int64_t stride = call.slots + 3;
    const auto size = static_cast<std::size_t>(shape.layers * shape.kv_heads * stride);
    std::vector<float> scores(size, std::numeric_limits<float>::quiet_NaN());
    std::vector<float> old = scores;  // NaN behind the last slot that has an old score
    for (std::size_t l = 0; l < call.old_scores.size(); ++l) {
      for (std::size_t h = 0; h < call.old_scores[l].size(); ++h) {
        const std::size_t row = l * static_cast<std::size_t>(shape.kv_heads) + h;
        for (std::size_t s = 0; s < call.old_scores[l][h].size(); ++s) {
          old[row * static_cast<std::size_t>(stride) + s] =
              static_cast<float>(call.old_scores[l][h][s]);
        }
      }
    }
    if (call.old_in_place) scores = old;
    Answer answer;
    answer.demand = call.before;
    Workspace workspace(backend.workspace_bytes(shape, call.slots));
    BoundaryPass pass;
    pass.shape = shape;
    pass.kv = cache.view();
    pass.summaries = state.view;
    pass.rope = rope;
    pass.demand = call.demand;
    pass.retention = call.retention;
    pass.softmax_scale = call.softmax_scale;
    pass.input = {cache.table.data(), call.slots, call.candidates, summary_slot, position()};
    pass.scores = call.want_scores ? scores.data() : nullptr;
    pass.score_stride = stride;
    if (!call.old_scores.empty()) {
      pass.old_scores = call.old_in_place ? scores.data() : old.data();
      pass.old_slots = static_cast<std::int32_t>(call.old_scores[0][0].size());
    }
    pass.result = call.want_demand ? &answer.demand : nullptr;
    backend.boundary_pass(pass, workspace.data());
    answer.workspace_intact = workspace.intact();
    for (std::int32_t l = 0; l < shape.layers; ++l) {
      answer.scores.emplace_back();
      for (std::int32_t h = 0; h < shape.kv_heads; ++h) {
        const auto row = scores.begin() + (l * shape.kv_heads + h) * stride;
        answer.scores.back().emplace_back(row, row + call.slots);
      }
    }
    return answer;
  }

  Options options;
  RandomCache cache;
  SummaryState state;
  RopeParams rope;
  std::vector<std::vector<Rows>> history;  ///< [step][layer][q_head], as the backend saw it

 private:
  [[nodiscard]] std::vector<Rows> next_query(Random& random, const std::vector<Rows>& last,
                                             std::int32_t step) const {
    const CacheShape& shape = options.shape;
    std::vector<Rows> query(static_cast<std::size_t>(shape.layers));
    for (std::size_t l = 0; l < query.size(); ++l) {
      for (std::int32_t h = 0; h < shape.query_heads; ++h) {
        Row row = random.normal_row(shape.head_dim, options.q_scale);
        if (!last.empty()) {
          const Row& old = last[l][static_cast<std::size_t>(h)];
          for (std::size_t i = 0; i < row.size(); ++i) {
            row[i] = std::sqrt(1 - options.drift * options.drift) * old[i] + options.drift * row[i];
          }
        }
        if (options.query) row = options.query(step, static_cast<std::int32_t>(l), h);
        for (double& x : row) {  // what the storage type can hold
          float stored = 0;
          store_element(&stored, options.q_dtype, 0, static_cast<float>(x));
          x = load_element(&stored, options.q_dtype, 0);
        }
        query[l].push_back(row);
      }
    }
    return query;
  }

  void update(CpuBackend& backend, const std::vector<Rows>& query, bool first) {
    const CacheShape& shape = options.shape;
    std::vector<float> memory(
        static_cast<std::size_t>(shape.layers * shape.query_heads * shape.head_dim));
    std::int64_t i = 0;
    for (const Rows& layer : query) {
      for (const Row& row : layer) {
        for (const double x : row) {
          store_element(memory.data(), options.q_dtype, i++, static_cast<float>(x));
        }
      }
    }
    const SummaryEntry entry{summary_slot, first ? 1 : 0};
    SummaryUpdate u;
    u.state = state.view;
    u.options = options.summary;
    u.entries = &entry;
    u.requests = 1;
    u.layers = shape.layers;
    u.q = memory.data();
    u.q_dtype = options.q_dtype;
    u.q_layer_stride = std::int64_t{shape.query_heads} * shape.head_dim;
    u.q_request_stride = u.q_layer_stride;
    u.q_head_stride = shape.head_dim;
    backend.summary_update(u);
  }

  void remember(const std::vector<Rows>& query, bool first) {
    if (first) {
      short_ = query;
      long_ = query;
      return;
    }
    for (std::size_t l = 0; l < query.size(); ++l) {
      for (std::size_t h = 0; h < query[l].size(); ++h) {
        short_[l][h] =
            reference::ema(short_[l][h], query[l][h], double{options.summary.beta_short});
        long_[l][h] = reference::ema(long_[l][h], query[l][h], double{options.summary.beta_long});
      }
    }
  }

  std::vector<float> inv_freq_;
  std::vector<Rows> short_, long_;
};

/// The largest distance of a backend's scores from wanted ones; at most 1 = agreement.
inline double score_distance(const std::vector<Rows>& got, const std::vector<Rows>& want,
                             double relative, double absolute) {
  double worst = 0;
  for (std::size_t l = 0; l < want.size(); ++l) {
    for (std::size_t h = 0; h < want[l].size(); ++h) {
      worst = std::max(worst, reference::distance(got[l][h], want[l][h], relative, absolute));
    }
  }
  return worst;
}

/// The same against the reference's answer, with the rounding it allows.
inline double score_distance(const std::vector<Rows>& got, const reference::BoundaryAnswer& want) {
  return score_distance(got, want.scores, 1e-4 + std::expm1(2 * want.logit_error), 1e-7);
}

/// Whether a measured ratio lies in the reference's range (up to the rounding of the sum).
inline bool inside(double ratio, const reference::Range& range, double tolerance = 1e-9) {
  return ratio >= range.low - tolerance && ratio <= range.high + tolerance;
}

}  // namespace growpage::test
