// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "block.cuh"
#include "growpage/backend/cuda/selection.hpp"
#include "growpage/retention/compaction_plan.hpp"
#include "keys.cuh"
#include "radix.cuh"
#include "simt.cuh"
#include "warp.cuh"

namespace growpage::cuda {

inline constexpr int select_threads = block_threads;
inline constexpr int select_warps = select_threads / warp_lanes;

/// The selection of one (request, layer, KV head) by one CTA. Keep bits are handled as 32-bit
/// words, one ballot each; in every pass a word belongs to one warp, so that no atomics are needed.
/// The order of the budget is the CPU backend's: always-kept slots (the newest first, then from the
/// front), the quota of every private page, the globally best.
template <class Keys, int page_keys>
class RowSelection {
 public:
  __device__ RowSelection(const SelectionBatch& batch, std::int64_t request, const Keys& keys,
                          std::uint32_t* kept, BlockScratch<std::int32_t>& scratch,
                          RadixScratch* radix)
      : keys_(keys),
        kept_(kept),
        scratch_(scratch),
        radix_(radix),
        marks_(batch.marks + request * batch.mark_stride),
        slots_(batch.inputs[request].slots) {
    shift_ = 31 - __clz(batch.shape.page_size);
  }

  /// Keys of the private pages' slots, keep bits of all others; `words` in 32 bits.
  __device__ void start(const float* scores, std::int64_t words) const {
    for (std::int64_t word = warp_id(); word < words; word += select_warps) {
      const std::int64_t slot = word * warp_lanes + lane_id();
      const bool used = slot < slots_;
      const bool mine = used && is_private(static_cast<std::int32_t>(slot >> shift_));
      if (used) keys_.set(static_cast<std::int32_t>(slot), mine ? order_key(scores[slot]) : 0);
      const unsigned whole = __ballot_sync(full_warp, used && !mine);
      if (lane_id() == 0) kept_[word] = whole;
    }
    __syncthreads();
  }

  /// Ends with a barrier: all keep bits are written.
  __device__ void run(std::int32_t keep, std::int32_t recent, std::int32_t front,
                      std::int32_t quota) const {
    const auto any = [](std::uint32_t key) { return key != 0; };
    const auto none = [](std::uint32_t) { return false; };
    recent = min(recent, slots_);
    front = min(front, slots_);
    std::int32_t left = max(keep, 0);
    left -= take(slots_ - recent, slots_, left, true, none, any);
    left -= take(0, front, left, false, none, any);
    left -= take_quotas(left, quota);
    if (left <= 0) return;
    const RadixThreshold best = radix_select(keys_, slots_, left, radix_);
    take(
        0, slots_, best.ties, false, [&](std::uint32_t key) { return key >= best.certain; },
        [&](std::uint32_t key) { return key != 0 && key == best.tied; });
  }

  /// Adds what this row keeps to the counts of the pages.
  __device__ void count(std::int32_t* page_kept) const {
    const std::int32_t page_words = max(1, (1 << shift_) / warp_lanes);
    for (std::int32_t page = warp_id(); page << shift_ < slots_; page += select_warps) {
      int kept = 0;
      for (std::int32_t j = lane_id(); j < page_words; j += warp_lanes) {
        const std::int32_t first = (page << shift_) + j * warp_lanes;
        const std::uint32_t word = first < slots_ ? kept_[first >> 5] >> (first & 31) : 0;
        kept += __popc(shift_ == 4 ? word & 0xffffU : word);
      }
      kept = __reduce_add_sync(full_warp, kept);
      if (lane_id() == 0) atomicAdd(&page_kept[page], kept);
    }
  }

 private:
  [[nodiscard]] __device__ bool is_private(std::int32_t page) const {
    return (marks_[page] & page_private) != 0;
  }

  /// Takes the slots whose bit is set, slot first + l in bit l; all in one word. Called by a warp.
  __device__ void keep_slots(std::int32_t first, unsigned chosen) const {
    if (chosen == 0) return;
    if (((chosen >> lane_id()) & 1U) != 0) keys_.set(first + lane_id(), 0);
    __syncwarp();  // ScoreKeys: every lane has read the word
    if (lane_id() == 0) kept_[first / warp_lanes] |= chosen << (first % warp_lanes);
    __syncwarp();
  }

  /// Of slots [first, end) takes all whose key is `certain`, and of those whose key is `contested`
  /// at most `budget`: the first, or the last when `newest`. Every warp has its own stretch of
  /// words: it counts, learns how many lie before, and ranks as it goes. Returns the contested ones
  /// taken, in every thread.
  template <class Certain, class Contested>
  __device__ std::int32_t take(std::int32_t first, std::int32_t end, std::int32_t budget,
                               bool newest, Certain certain, Contested contested) const {
    const std::int32_t first_word = first / warp_lanes;
    const std::int32_t words = (end + warp_lanes - 1) / warp_lanes - first_word;
    const std::int32_t stretch = (words + select_warps - 1) / select_warps;
    const std::int32_t from = first_word + warp_id() * stretch;
    const std::int32_t to = min(from + stretch, first_word + words);
    const auto key_at = [&](std::int32_t word) -> std::uint32_t {
      const std::int32_t slot = word * warp_lanes + lane_id();
      return slot >= first && slot < end ? keys_.get(slot) : 0;
    };
    std::int32_t rank = 0;  // contested slots before this lane's
    for (std::int32_t word = from; word < to; ++word) {
      rank += __popc(__ballot_sync(full_warp, contested(key_at(word))));
    }
    const BlockScan<std::int32_t> all = block_scan(lane_id() == 0 ? rank : 0, scratch_);
    const std::int32_t taken = min(all.total, budget);
    const std::int32_t skipped = newest ? all.total - taken : 0;
    rank = __shfl_sync(full_warp, all.before, 0) - skipped;
    for (std::int32_t word = from; word < to; ++word) {
      const std::uint32_t key = key_at(word);
      const unsigned rivals = __ballot_sync(full_warp, contested(key));
      const std::int32_t mine = rank + __popc(rivals & ((1U << lane_id()) - 1));
      const bool chosen = certain(key) || (contested(key) && mine >= 0 && mine < taken);
      keep_slots(word * warp_lanes, __ballot_sync(full_warp, chosen));
      rank += __popc(rivals);
    }
    __syncthreads();
    return taken;
  }

  /// The local quotas: a warp per page. Two pages of 16 slots share a word and thus a warp.
  [[nodiscard]] __device__ std::int32_t take_quotas(std::int32_t left, std::int32_t quota) const {
    const std::int32_t page_size = 1 << shift_;
    const std::int32_t pages = (slots_ + page_size - 1) >> shift_;
    std::int32_t mine = 0;
    for (std::int32_t p = static_cast<std::int32_t>(threadIdx.x); p < pages; p += select_threads) {
      mine += is_private(p) ? 1 : 0;
    }
    const std::int32_t private_pages = block_sum(mine, scratch_);
    if (private_pages == 0) return 0;
    quota = min(quota, left / private_pages);
    if (quota <= 0) return 0;
    const std::int32_t together = max(1, warp_lanes / page_size);
    std::int32_t taken = 0;
    for (std::int32_t p = warp_id() * together; p < pages; p += select_warps * together) {
      for (std::int32_t i = p; i < min(p + together, pages); ++i) {
        if (is_private(i)) taken += take_best(i << shift_, quota);
      }
    }
    return block_sum(lane_id() == 0 ? taken : 0, scratch_);
  }

  /// The `budget` best of a page, ties → lower slots, by bisection on the bits of the keys. Called
  /// by a whole warp.
  [[nodiscard]] __device__ std::int32_t take_best(std::int32_t first, std::int32_t budget) const {
    const std::int32_t end = min(first + (1 << shift_), slots_);
    const PageKeys<Keys, page_keys> page(keys_, first, end);
    budget = min(budget, page.count_at_least(1));
    if (budget == 0) return 0;
    std::uint32_t threshold = 0;  // at least `budget` keys are not below it
    for (std::uint32_t bit = 0x80000000U; bit != 0; bit >>= 1) {
      const std::int32_t count = page.count_at_least(threshold | bit);
      if (count >= budget) threshold |= bit;
      if (count == budget) break;
    }
    threshold = max(threshold, 1U);
    const std::int32_t ties = budget - page.count_at_least(threshold + 1);
    std::int32_t rank = 0;
#pragma unroll
    for (int j = 0; j < page.words(); ++j) {
      const std::uint32_t key = page.at(j);
      const unsigned rivals = __ballot_sync(full_warp, key == threshold);
      const std::int32_t mine = rank + __popc(rivals & ((1U << lane_id()) - 1));
      const unsigned chosen =
          __ballot_sync(full_warp, key > threshold || (key == threshold && mine < ties));
      rank += __popc(rivals);
      keep_slots(first + j * warp_lanes, chosen);
    }
    return budget;
  }

  const Keys& keys_;
  std::uint32_t* kept_;
  BlockScratch<std::int32_t>& scratch_;
  RadixScratch* radix_;
  const std::uint8_t* marks_;
  std::int32_t slots_;
  std::int32_t shift_;
};

/// One CTA per (request, layer, KV head). Scores are read once (longer rows: about 8 times, from
/// L2 mostly); out go the keep bits, 1/32 of that.
template <class Keys, int page_keys>
__global__ void __launch_bounds__(select_threads, 4)
    select_kernel(SelectionBatch batch, std::int32_t quota) {
  GROWPAGE_DYNAMIC_SHARED(memory);
  GROWPAGE_SHARED(BlockScratch<std::int32_t>, scratch, );
  GROWPAGE_SHARED(RadixScratch, radix);
  const auto request = static_cast<std::int64_t>(blockIdx.x);
  const RetentionRequest input = batch.inputs[request];
  if (input.slots <= 0) return;
  const std::int64_t row = std::int64_t{blockIdx.y} * batch.shape.kv_heads + blockIdx.z;
  const std::int64_t rows = std::int64_t{batch.shape.layers} * batch.shape.kv_heads;
  const float* const scores =
      batch.scores + request * batch.score_request_stride + row * batch.score_stride;
  // The two halves of a little-endian 64-bit word are 32-bit words in the order of their slots.
  auto* const kept =
      reinterpret_cast<std::uint32_t*>(batch.bits + (request * rows + row) * batch.words);
  const Keys keys(memory, scores, kept);
  const RowSelection<Keys, page_keys> selection(batch, request, keys, kept, scratch, &radix);
  selection.start(scores, 2 * batch.words);
  selection.run(input.keep, batch.retention.recent,
                max(batch.retention.sinks, input.protected_slots), quota);
  selection.count(batch.page_kept + request * batch.page_kept_stride);
}

}  // namespace growpage::cuda
