// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "growpage/backend/cpu.hpp"
#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/cpu_slots.hpp"
#include "growpage/detail/cpu_workspace.hpp"

namespace growpage::detail {

/// The k largest of some keys, ties → lower index: all that are above `threshold` and the first
/// `ties` that equal it.
struct TopKeys {
  std::uint32_t threshold = 0;
  std::int64_t ties = 0;
  std::int64_t count = 0;
};

/// The `k` largest of the nonzero keys, all of them when they are fewer. All nonzero keys lie in
/// [range.low, range.high].
[[nodiscard]] inline TopKeys find_top(const CpuKernels& kernels, const std::uint32_t* keys,
                                      std::int64_t n, std::int64_t k, KeyRange range) noexcept {
  if (k <= 0) return {std::numeric_limits<std::uint32_t>::max(), 0, 0};
  const std::int64_t eligible = kernels.count_at_least(keys, n, 1);
  if (k >= eligible) return {0, 0, eligible};
  std::uint32_t low = range.low;        // at least k keys are ≥ low
  std::uint32_t high = range.high + 1;  // fewer than k are ≥ high
  std::int64_t above = 0;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    const std::int64_t count = kernels.count_at_least(keys, n, middle);
    if (count == k) return {middle - 1, 0, k};
    if (count > k) {
      low = middle;
    } else {
      high = middle;
      above = count;
    }
  }
  return {low, k - above, k};
}

/// Takes them: sets their bits and clears the keys. Returns how many were taken.
inline std::int64_t take_top(const CpuKernels& kernels, std::uint32_t* keys, std::int64_t n,
                             const TopKeys& top, std::uint64_t* bits, std::int64_t first) noexcept {
  if (top.count > 0) kernels.take(keys, n, top.threshold, top.ties, bits, first);
  return top.count;
}

/// The selection of one (layer, KV head). Budget: always-kept slots first (the newest, then from
/// the front), then q = min(k_loc, what is left / private pages) of every private page, then the
/// globally best. Only slots of private pages use the budget.
class SelectTask {
 public:
  SelectTask(const Selection& selection, const CpuKernels& kernels, std::uint32_t* keys,
             std::int32_t layer, std::int32_t head) noexcept
      : selection_(selection),
        kernels_(kernels),
        keys_(keys),
        bits_(selection.out.row(layer, head)),
        scores_(selection.scores +
                (std::int64_t{layer} * selection.shape.kv_heads + head) * selection.score_stride),
        slots_(selection.out.slots),
        page_size_(selection.shape.page_size) {}

  void run() noexcept {
    std::fill(bits_, bits_ + selection_.out.words, std::uint64_t{0});
    const KeyRange range = kernels_.order_keys(scores_, slots_, keys_);
    std::int64_t private_pages = 0;
    for (std::int64_t p = 0; p < pages(); ++p) {
      if (is_private(p)) {
        ++private_pages;
        continue;
      }
      for (std::int64_t s = p * page_size_; s < page_end(p); ++s) keep(s);
    }
    std::int64_t left = selection_.keep;
    const RetentionOptions& options = selection_.retention;
    const std::int64_t recent = std::min<std::int64_t>(options.recent, slots_);
    for (std::int64_t i = 1; i <= recent; ++i) left -= keep_private(slots_ - i, left);
    const std::int64_t front =
        std::min<std::int64_t>(std::max(options.sinks, selection_.protected_slots), slots_);
    for (std::int64_t s = 0; s < front; ++s) left -= keep_private(s, left);

    const std::int64_t quota =
        private_pages > 0 ? std::min<std::int64_t>(options.local_quota(selection_.shape.page_size),
                                                   left / private_pages)
                          : 0;
    // When the globally best have every page's share among them, they are the answer.
    const TopKeys best = find_top(kernels_, keys_, slots_, left, range);
    if (quota <= 0 || every_page_has(quota, best.threshold)) {
      take_top(kernels_, keys_, slots_, best, bits_, 0);
      return;
    }
    std::int64_t taken = 0;
    for (std::int64_t p = 0; p < pages(); ++p) {
      if (!is_private(p)) continue;
      const std::int64_t first = p * page_size_;
      std::uint32_t* keys = keys_ + first;
      const std::int64_t n = page_end(p) - first;
      taken += take_top(kernels_, keys, n, find_top(kernels_, keys, n, quota, range), bits_, first);
    }
    take_top(kernels_, keys_, slots_, find_top(kernels_, keys_, slots_, left - taken, range), bits_,
             0);
  }

 private:
  [[nodiscard]] std::int64_t pages() const noexcept { return selection_.out.pages; }
  [[nodiscard]] bool is_private(std::int64_t page) const noexcept {
    return (selection_.marks[page] & page_private) != 0;
  }
  [[nodiscard]] std::int64_t page_end(std::int64_t page) const noexcept {
    return std::min<std::int64_t>((page + 1) * page_size_, slots_);
  }
  /// Whether `quota` keys of every private page are above the threshold.
  [[nodiscard]] bool every_page_has(std::int64_t quota, std::uint32_t threshold) const noexcept {
    if (threshold == std::numeric_limits<std::uint32_t>::max()) return false;
    for (std::int64_t p = 0; p < pages(); ++p) {
      if (!is_private(p)) continue;
      const std::int64_t first = p * page_size_;
      const std::int64_t n = page_end(p) - first;
      if (kernels_.count_at_least(keys_ + first, n, threshold + 1) < quota) return false;
    }
    return true;
  }
  void keep(std::int64_t slot) noexcept {
    bits_[slot >> 6] |= std::uint64_t{1} << (slot & 63);
    keys_[slot] = 0;
  }
  /// 1 when the slot used up budget, else 0.
  std::int64_t keep_private(std::int64_t slot, std::int64_t left) noexcept {
    if (left <= 0 || keys_[slot] == 0) return 0;  // key 0: kept already
    keep(slot);
    return 1;
  }

  const Selection& selection_;
  const CpuKernels& kernels_;
  std::uint32_t* keys_;
  std::uint64_t* bits_;
  const float* scores_;
  std::int64_t slots_;
  std::int64_t page_size_;
};

}  // namespace growpage::detail

namespace growpage {

GROWPAGE_INLINE void CpuBackend::select(const Selection& selection, void* workspace,
                                        StreamView /*stream*/) noexcept {
  const KeepSet& out = selection.out;
  const detail::CpuWorkspace ws(selection.shape, out.slots, workspace);
  executor_.for_each(std::int64_t{out.layers} * out.kv_heads, [&](std::int64_t task,
                                                                  std::int32_t worker) {
    auto* keys = reinterpret_cast<std::uint32_t*>(ws.worker(worker).rows);
    detail::SelectTask(selection, *kernels_, keys, static_cast<std::int32_t>(task / out.kv_heads),
                       static_cast<std::int32_t>(task % out.kv_heads))
        .run();
  });
  std::fill(out.page_kept, out.page_kept + out.pages, 0);
  const std::int32_t b = selection.shape.page_size;
  for (std::int32_t layer = 0; layer < out.layers; ++layer) {
    for (std::int32_t head = 0; head < out.kv_heads; ++head) {
      const std::uint64_t* bits = out.row(layer, head);
      for (std::int32_t p = 0; p < out.pages; ++p) {
        const std::int64_t first = std::int64_t{p} * b;
        out.page_kept[p] += static_cast<std::int32_t>(
            detail::count_bits(bits, first, std::min<std::int64_t>(first + b, out.slots)));
      }
    }
  }
}

}  // namespace growpage
