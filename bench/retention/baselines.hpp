// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

/// The stages of a boundary event as one writes them first, with the standard library.
namespace growpage::bench::baseline {

/// Weights from logits; their sum.
inline double softmax_weights(float* x, std::int64_t n, float scale) {
  float max = x[0] * scale;
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] *= scale;
    max = std::max(max, x[i]);
  }
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] = std::exp(x[i] - max);
    sum += double{x[i]};
  }
  return sum;
}

/// How many of the largest weights make up p of the sum.
inline std::int64_t top_p(const float* w, std::int64_t n, float p, std::vector<float>& scratch) {
  scratch.assign(w, w + n);
  std::sort(scratch.begin(), scratch.end(), std::greater<float>());
  const double target = double{p} * std::accumulate(scratch.begin(), scratch.end(), 0.0);
  double sum = 0;
  std::int64_t count = 0;
  while (count < n && sum < target) sum += double{scratch[static_cast<std::size_t>(count++)]};
  return count;
}

/// Which slots of a head to keep: the newest, the best of every page, the best of what is left.
class Select {
 public:
  Select(std::int64_t slots, std::int64_t page_size, std::int64_t recent, std::int64_t quota)
      : slots_(slots),
        page_size_(page_size),
        recent_(recent),
        quota_(quota),
        kept_(static_cast<std::size_t>(slots)) {}

  const std::vector<bool>& run(const float* scores, std::int64_t keep) {
    std::fill(kept_.begin(), kept_.end(), false);
    for (std::int64_t i = 0; i < recent_; ++i)
      kept_[static_cast<std::size_t>(slots_ - 1 - i)] = true;
    std::int64_t left = keep - recent_;
    for (std::int64_t p = 0; p < slots_ && quota_ > 0; p += page_size_) {
      left -= take(scores, p, p + page_size_, quota_);
    }
    take(scores, 0, slots_, left);
    return kept_;
  }

 private:
  std::int64_t take(const float* scores, std::int64_t first, std::int64_t end, std::int64_t count) {
    indices_.clear();
    for (std::int64_t s = first; s < end; ++s) {
      if (!kept_[static_cast<std::size_t>(s)]) indices_.push_back(static_cast<std::int32_t>(s));
    }
    count = std::min<std::int64_t>(count, std::ssize(indices_));
    std::nth_element(indices_.begin(), indices_.begin() + count, indices_.end(),
                     [&](std::int32_t a, std::int32_t b) {
                       return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
                     });
    for (std::int64_t i = 0; i < count; ++i) {
      kept_[static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)])] = true;
    }
    return count;
  }

  std::int64_t slots_, page_size_, recent_, quota_;
  std::vector<bool> kept_;
  std::vector<std::int32_t> indices_;
};

}  // namespace growpage::bench::baseline
