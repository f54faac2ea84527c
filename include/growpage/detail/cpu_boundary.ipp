// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "growpage/backend/cpu.hpp"
#include "growpage/detail/cpu_distribution.hpp"
#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/cpu_query.hpp"
#include "growpage/detail/cpu_workspace.hpp"

namespace growpage::detail {

/// The boundary pass of one (layer, KV head): the work of one task.
class BoundaryTask {
 public:
  BoundaryTask(const BoundaryPass& pass, const CpuKernels& kernels, const CpuWorkspace& workspace,
               std::int32_t layer, std::int32_t head, std::int32_t worker) noexcept
      : pass_(pass),
        kernels_(kernels),
        rope_(workspace.rope()),
        stride_(workspace.row_stride()),
        dim_stride_(workspace.dim_stride()),
        rows_(workspace.rows()),
        w_(workspace.worker(worker)),
        layer_(layer),
        head_(head),
        group_(pass.shape.group()),
        scale_(softmax_scale(pass.softmax_scale, pass.shape.head_dim)) {}

  /// `terms` [2]: r of the short and of the long summary; null = no demand. `scores` [slots] or
  /// null.
  void run(double* terms, float* scores, const float* old_scores) noexcept {
    const std::int64_t slots = pass_.input.slots;
    const std::int64_t candidates = terms != nullptr ? pass_.input.candidates : 0;
    const bool windowed = pass_.retention.score == ScoreKind::window;
    float* fresh = w_.extra[0];
    const bool by_summaries = scores != nullptr && !windowed;
    if (by_summaries) score_summaries(candidates, slots, terms, fresh);
    // Demand alone needs no more than the candidates.
    if (terms != nullptr && !by_summaries) score_summaries(candidates, candidates, terms, nullptr);
    if (scores == nullptr) return;
    if (windowed) score_window(slots, fresh);
    refine(slots, old_scores, fresh);
    std::copy(fresh, fresh + slots, scores);
  }

 private:
  static constexpr float minus_inf = -std::numeric_limits<float>::infinity();

  [[nodiscard]] float* row(std::int64_t index) const noexcept { return w_.rows + index * stride_; }
  [[nodiscard]] float* query(std::int64_t index) const noexcept {
    return w_.queries + index * dim_stride_;
  }
  [[nodiscard]] KRows page_rows(std::int64_t page, std::int64_t slots) const noexcept {
    const KvTensor& k = pass_.kv.k;
    const std::int64_t b = pass_.shape.page_size;
    const auto at = [&](std::int64_t p) { return k.row(layer_, pass_.input.pages[p], head_, 0); };
    return {at(page), k.layout.token_stride,
            static_cast<std::int32_t>(std::min(b, slots - page * b)), pass_.shape.head_dim,
            (page + 1) * b < slots ? at(page + 1) : nullptr};
  }

  /// Rotates the query in the accumulators and makes it query `index`.
  void finish_query(std::int64_t index, std::int64_t lag) const noexcept {
    rotate(pass_.rope, rope_ + lag * dim_stride_, w_.accumulators);
    store_query(w_.accumulators, pass_.shape.head_dim, pass_.kv.k.dtype, query(index));
  }

  /// Products of the first `queries` queries with the keys of slots [0, slots): the one read of K.
  /// `kernel` as in CpuKernels::dot.
  void read_keys(std::int32_t kernel, std::int32_t queries, std::int64_t slots,
                 float* out) const noexcept {
    const std::int64_t b = pass_.shape.page_size;
    kernels_.pack[kernel](w_.queries, dim_stride_, queries, pass_.shape.head_dim, w_.packed);
    for (std::int64_t page = 0; page * b < slots; ++page) {
      kernels_.dot[kernel](page_rows(page, slots), w_.packed, queries, out + page * b, stride_,
                           w_.tile);
    }
  }
  [[nodiscard]] std::int32_t attention_kernel() const noexcept {
    return pass_.kv.k.dtype == DType::bf16 ? bf16_queries
                                           : static_cast<std::int32_t>(pass_.kv.k.dtype);
  }

  /// Rows [0, G) short and [G, 2G) long: demand over [0, candidates), score over [0, slots), each
  /// with its own softmax but one exponential a logit: slots before `candidates` are relative to
  /// the candidates' maximum, the others to the maximum of all.
  void score_summaries(std::int64_t candidates, std::int64_t slots, double* terms,
                       float* score) noexcept {
    const std::int32_t queries = 2 * group_;
    for (std::int32_t j = 0; j < queries; ++j) {
      load_summary(pass_.summaries, layer_, pass_.input.summary_slot, j / group_,
                   head_ * group_ + j % group_, w_.accumulators);
      finish_query(j, 0);
    }
    read_keys(attention_kernel(), queries, slots, w_.rows);

    float* demand_factor = w_.coefficient;
    float* head_factor = w_.coefficient + rows_;
    float* tail_factor = w_.coefficient + std::int64_t{2} * rows_;
    const std::int64_t tail = slots - candidates;
    for (std::int32_t j = 0; j < queries; ++j) {
      const float head_max = kernels_.sanitize_max(row(j), candidates, scale_);
      const float tail_max = kernels_.sanitize_max(row(j) + candidates, tail, scale_);
      const float max = std::max(head_max, tail_max);
      const double head_sum =
          candidates > 0 ? to_weights(kernels_, row(j), candidates, head_max) : 0.0;
      const double tail_sum = tail > 0 ? to_weights(kernels_, row(j) + candidates, tail, max) : 0.0;
      const double shift = head_max == max         ? 1.0
                           : head_max == minus_inf ? 0.0
                                                   : std::exp(double{head_max} - double{max});
      const double sum = head_sum * shift + tail_sum;
      demand_factor[j] = static_cast<float>(1.0 / (head_sum * group_));
      head_factor[j] = static_cast<float>(shift / sum);
      tail_factor[j] = static_cast<float>(1.0 / sum);
    }
    if (terms != nullptr) {
      for (std::int32_t which = 0; which < 2; ++which) {
        terms[which] =
            group_spread(which, candidates, demand_factor + std::int64_t{which} * group_);
      }
    }
    if (score != nullptr) {
      kernels_.max_scaled(w_.rows, stride_, head_factor, queries, candidates, score);
      kernels_.max_scaled(w_.rows + candidates, stride_, tail_factor, queries, tail,
                          score + candidates);
    }
  }

  [[nodiscard]] double group_spread(std::int32_t which, std::int64_t candidates,
                                    const float* factor) const noexcept {
    if (pass_.demand.group == GroupReduction::mean_distribution) {
      float* mean = w_.extra[1];
      kernels_.mix(row(std::int64_t{which} * group_), stride_, factor, group_, candidates, mean);
      return spread(kernels_, pass_.demand, mean, candidates, w_.extra[2]);
    }
    double sum = 0;
    for (std::int32_t g = 0; g < group_; ++g) {
      sum += spread(kernels_, pass_.demand, row(std::int64_t{which} * group_ + g), candidates,
                    w_.extra[2]);
    }
    return sum / group_;
  }

  /// Zipage's score: mean over the last queries of the max over the group. The query `lag` steps
  /// back sees the slots before the newest `lag`; slots it does not see weigh 0.
  void score_window(std::int64_t slots, float* score) noexcept {
    const SummaryView& state = pass_.summaries;
    const std::int64_t steps =
        state.window != nullptr ? state.steps[state.row(layer_, pass_.input.summary_slot)] : 0;
    const std::int64_t count =
        std::min({steps, slots, std::int64_t{pass_.retention.window},
                  std::int64_t{state.window_size}, pass_.input.position + 1});
    std::fill(score, score + slots, 0.0F);
    const std::int64_t at_once = rows_ / group_;
    for (std::int64_t first = 0; first < count; first += at_once) {
      const std::int64_t lags = std::min(at_once, count - first);
      for (std::int64_t j = 0; j < lags * group_; ++j) {
        const std::int64_t lag = first + j / group_;
        load_window_query(state, layer_, pass_.input.summary_slot, lag,
                          head_ * group_ + static_cast<std::int32_t>(j % group_), w_.accumulators);
        finish_query(j, lag);
      }
      read_keys(attention_kernel(), static_cast<std::int32_t>(lags * group_), slots, w_.rows);
      for (std::int64_t i = 0; i < lags; ++i) {
        add_window_query(i * group_, slots - (first + i), count, score);
      }
    }
  }

  void add_window_query(std::int64_t first_row, std::int64_t visible, std::int64_t count,
                        float* score) noexcept {
    for (std::int32_t g = 0; g < group_; ++g) {
      float* x = row(first_row + g);
      const float max = kernels_.sanitize_max(x, visible, scale_);
      const double sum = to_weights(kernels_, x, visible, max);
      w_.coefficient[g] = static_cast<float>(1.0 / (sum * static_cast<double>(count)));
    }
    float* group_max = w_.extra[1];
    kernels_.max_scaled(row(first_row), stride_, w_.coefficient, group_, visible, group_max);
    for (std::int64_t s = 0; s < visible; ++s) score[s] += group_max[s];
  }

  /// Zipage's refinements, in this order: max-pool along slots, global score, redundancy.
  void refine(std::int64_t slots, const float* old_scores, float* score) noexcept {
    const RetentionOptions& options = pass_.retention;
    const std::int64_t reach = options.max_pool / 2;
    if (reach > 0) {
      float* plain = w_.extra[1];
      std::copy(score, score + slots, plain);
      for (std::int64_t shift = 1; shift <= std::min(reach, slots - 1); ++shift) {
        for (std::int64_t s = 0; s + shift < slots; ++s) {
          score[s] = std::max(score[s], plain[s + shift]);
          score[s + shift] = std::max(score[s + shift], plain[s]);
        }
      }
    }
    if (options.global_decay > 0.0F && old_scores != nullptr) {
      const std::int64_t old_slots = std::min<std::int64_t>(slots, pass_.old_slots);
      for (std::int64_t s = 0; s < old_slots; ++s) {
        score[s] = std::max(score[s], options.global_decay * old_scores[s]);
      }
    }
    if (options.redundancy_weight > 0.0F) subtract_redundancy(slots, score);
  }

  /// Redundancy of slot i: softmax over the used slots of sim_i / temperature, sim_i the mean
  /// cosine similarity of its key to the other used slots' keys (Zipage and R-KV rank by key
  /// cosine; that it is a plain mean over all other slots is ours). Since
  /// Σ_j k̂_i·k̂_j = k̂_i·(Σ_j k̂_j) it takes two linear passes, not n² products. A key of length 0
  /// or not finite is similar to nothing.
  void subtract_redundancy(std::int64_t slots, float* score) noexcept {
    const auto dtype = static_cast<std::int32_t>(pass_.kv.k.dtype);
    const std::int64_t b = pass_.shape.page_size;
    const std::int32_t dim = pass_.shape.head_dim;
    double* total = w_.accumulators;
    float* inverse_norm = w_.extra[2];
    std::fill(total, total + dim, 0.0);
    for (std::int64_t s = 0; s < slots; ++s) {
      const void* key =
          pass_.kv.k.row(layer_, pass_.input.pages[s / b], head_, static_cast<std::int32_t>(s % b));
      kernels_.widen[dtype](key, dim, w_.tile);
      const double norm = std::sqrt(kernels_.sum_squares(w_.tile, dim));
      const bool usable = norm > 0 && norm < double{std::numeric_limits<float>::max()};
      inverse_norm[s] = usable ? static_cast<float>(1.0 / norm) : 0.0F;
      if (!usable) continue;
      for (std::int32_t i = 0; i < dim; ++i) total[i] += double{w_.tile[i]} / norm;
    }
    for (std::int32_t i = 0; i < dim; ++i) query(0)[i] = static_cast<float>(total[i]);
    float* similarity = w_.extra[1];
    read_keys(dtype, 1, slots, similarity);
    const double others = static_cast<double>(std::max<std::int64_t>(slots - 1, 1));
    for (std::int64_t s = 0; s < slots; ++s) {
      const double mean = inverse_norm[s] == 0.0F
                              ? 0.0
                              : (double{similarity[s]} * double{inverse_norm[s]} - 1.0) / others;
      similarity[s] = static_cast<float>(mean / double{pass_.retention.redundancy_temperature});
    }
    const float max = kernels_.sanitize_max(similarity, slots, 1.0F);
    const double sum = to_weights(kernels_, similarity, slots, max);
    const double weight = double{pass_.retention.redundancy_weight};
    for (std::int64_t s = 0; s < slots; ++s) {
      score[s] = static_cast<float>((1.0 - weight) * double{score[s]} -
                                    weight * double{similarity[s]} / sum);
    }
  }

  const BoundaryPass& pass_;
  const CpuKernels& kernels_;
  const double* rope_;
  std::int64_t stride_;
  std::int64_t dim_stride_;
  std::int32_t rows_;
  CpuWorkspace::Worker w_;
  std::int32_t layer_;
  std::int32_t head_;
  std::int32_t group_;
  float scale_;
};

}  // namespace growpage::detail

namespace growpage {

GROWPAGE_INLINE void CpuBackend::boundary_pass(const BoundaryPass& pass, void* workspace,
                                               StreamView /*stream*/) noexcept {
  const CacheShape& shape = pass.shape;
  const detail::CpuWorkspace ws(shape, pass.input.slots, workspace);
  const std::int64_t rope_rows =
      pass.retention.score == ScoreKind::window && pass.scores != nullptr
          ? std::max(1, std::min(pass.retention.window, pass.summaries.window_size))
          : 1;
  for (std::int64_t lag = 0; lag < rope_rows && lag <= pass.input.position; ++lag) {
    detail::rope_row(pass.rope, pass.input.position - lag, ws.rope() + lag * ws.dim_stride());
  }
  const bool demand = pass.result != nullptr && pass.input.candidates > 0;
  const auto counts = [&](std::int32_t layer) {
    return demand && (pass.demand.layer_mask == nullptr || pass.demand.layer_mask[layer] != 0);
  };
  const std::int64_t tasks = std::int64_t{shape.layers} * shape.kv_heads;
  executor_.for_each(tasks, [&](std::int64_t task, std::int32_t worker) {
    const auto layer = static_cast<std::int32_t>(task / shape.kv_heads);
    const auto head = static_cast<std::int32_t>(task % shape.kv_heads);
    const std::int64_t first = task * pass.score_stride;
    detail::BoundaryTask(pass, *kernels_, ws, layer, head, worker)
        .run(counts(layer) ? ws.terms() + 2 * task : nullptr,
             pass.scores != nullptr ? pass.scores + first : nullptr,
             pass.old_scores != nullptr ? pass.old_scores + first : nullptr);
  });
  for (std::int64_t task = 0; demand && task < tasks; ++task) {
    if (!counts(static_cast<std::int32_t>(task / shape.kv_heads))) continue;
    pass.result->short_sum += ws.terms()[2 * task];
    pass.result->long_sum += ws.terms()[2 * task + 1];
    ++pass.result->count;
  }
}

}  // namespace growpage
