// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "growpage/retention/compaction_plan.hpp"
#include "retention/baselines.hpp"
#include "support/scene.hpp"

namespace growpage::bench {

/// A boundary event of the first request as one writes it first: a loop over K for every query, two
/// softmaxes with std::exp, sorting, nth_element, memcpy of rows. bf16 keys. The queries are the
/// summaries as they are: to calibrate and rotate them costs nothing beside K.
class PlainEvent {
 public:
  explicit PlainEvent(const Scene& scene)
      : scene_(scene),
        shape_(scene.options().shape),
        slots_(scene.slots()),
        candidates_(slots_ - shape_.page_size),
        queries_(2 * shape_.group()),
        logits_(static_cast<std::size_t>(slots_)),
        demand_weights_(static_cast<std::size_t>(slots_)),
        select_(slots_, shape_.page_size, RetentionOptions{}.recent,
                RetentionOptions{}.local_quota(shape_.page_size)) {}

  void run() {
    page_kept_.assign(static_cast<std::size_t>(scene_.options().pages), 0);
    kept_.clear();
    ratio_sum_ = 0;
    for (std::int32_t layer = 0; layer < shape_.layers; ++layer) {
      for (std::int32_t head = 0; head < shape_.kv_heads; ++head) score(layer, head);
    }
    const std::vector<std::uint8_t> marks(page_kept_.size(), page_private);
    victim_ = plan_compaction(marks, page_kept_, 1, CompactionStrategy::fill_holes)->victim[0];
    for (std::int32_t layer = 0; layer < shape_.layers; ++layer) {
      for (std::int32_t head = 0; head < shape_.kv_heads; ++head) compact(layer, head);
    }
  }

  /// Mean share of the candidates in the working sets.
  [[nodiscard]] double demand() const {
    return ratio_sum_ / static_cast<double>(2 * scene_.heads());
  }

 private:
  [[nodiscard]] char* row(const KvTensor& tensor, std::int32_t layer, std::int32_t head,
                          std::int64_t slot) const {
    const auto page = static_cast<std::int32_t>(slot / shape_.page_size);
    return static_cast<char*>(tensor.row(layer, scene_.table(0)[page], head,
                                         static_cast<std::int32_t>(slot % shape_.page_size)));
  }
  void score(std::int32_t layer, std::int32_t head) {
    const std::int32_t group = shape_.group();
    const float scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_dim));
    scores_.assign(static_cast<std::size_t>(slots_), 0.0F);
    for (std::int32_t j = 0; j < queries_; ++j) {
      if (j % group == 0) mean_.assign(static_cast<std::size_t>(candidates_), 0.0F);
      const auto* q = static_cast<const float*>(scene_.summaries().summaries) +
                      scene_.summaries().index(layer, 0, j / group, head * group + j % group);
      for (std::int64_t s = 0; s < slots_; ++s) {
        const auto* k = reinterpret_cast<const BFloat16*>(row(scene_.kv().k, layer, head, s));
        float sum = 0;
        for (std::int32_t i = 0; i < shape_.head_dim; ++i) sum += q[i] * k[i].to_float();
        logits_[static_cast<std::size_t>(s)] = sum;
      }
      demand_weights_ = logits_;
      const double demand_sum =
          baseline::softmax_weights(demand_weights_.data(), candidates_, scale);
      for (std::size_t s = 0; s < mean_.size(); ++s) {
        mean_[s] += demand_weights_[s] / static_cast<float>(demand_sum);
      }
      const double sum = baseline::softmax_weights(logits_.data(), slots_, scale);
      for (std::size_t s = 0; s < logits_.size(); ++s) {
        scores_[s] = std::max(scores_[s], logits_[s] / static_cast<float>(sum));
      }
      if (j % group == group - 1) {
        ratio_sum_ +=
            static_cast<double>(baseline::top_p(mean_.data(), candidates_, 0.99F, sorted_)) /
            static_cast<double>(candidates_);
      }
    }
    kept_.push_back(select_.run(scores_.data(), candidates_));
    for (std::int64_t s = 0; s < slots_; ++s) {
      if (kept_.back()[static_cast<std::size_t>(s)]) {
        ++page_kept_[static_cast<std::size_t>(s / shape_.page_size)];
      }
    }
  }
  void compact(std::int32_t layer, std::int32_t head) const {
    const auto& kept = kept_[static_cast<std::size_t>(layer * shape_.kv_heads + head)];
    const std::int64_t first = std::int64_t{victim_} * shape_.page_size;
    std::int64_t hole = 0;
    for (std::int64_t s = first; s < first + shape_.page_size; ++s) {
      if (!kept[static_cast<std::size_t>(s)]) continue;
      while (kept[static_cast<std::size_t>(hole)] || hole / shape_.page_size == victim_) ++hole;
      for (const KvTensor* tensor : {&scene_.kv().k, &scene_.kv().v}) {
        std::memcpy(row(*tensor, layer, head, hole), row(*tensor, layer, head, s),
                    static_cast<std::size_t>(scene_.row_bytes()));
      }
      ++hole;
    }
  }

  const Scene& scene_;
  CacheShape shape_;
  std::int64_t slots_, candidates_;
  std::int32_t queries_;
  std::vector<float> logits_, demand_weights_, mean_, scores_, sorted_;
  baseline::Select select_;
  std::vector<std::vector<bool>> kept_;  // [layer · kv_heads + head]
  std::vector<std::int32_t> page_kept_;
  std::int32_t victim_ = 0;
  double ratio_sum_ = 0;
};

}  // namespace growpage::bench
