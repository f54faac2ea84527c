// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "block.cuh"
#include "growpage/backend/cuda/compaction.hpp"
#include "rows.cuh"
#include "simt.cuh"
#include "warp.cuh"

namespace growpage::cuda {

inline constexpr int compact_threads = block_threads;
inline constexpr int compact_warps = compact_threads / warp_lanes;
/// Rows that are paired up at a time: two victims of 512 slots in one round.
inline constexpr int compact_pairs = 1024;
/// Accesses a thread has in flight.
inline constexpr int compact_depth = 4;

/// Where the rows of a round come from and go to: logical slots, in shared memory.
struct RowPairs {
  std::int32_t from[compact_pairs];
  std::int32_t to[compact_pairs];
};

/// The compaction of one (request, layer, KV head) by one CTA.
///
/// The k-th retained row, in slot order, of the pages that give rows up goes to the k-th slot that
/// takes one. Why that is safe in place:
///  - fill_holes: rows leave victims and go to other pages, so nothing that is read is written.
///  - in_order: let s_k be the k-th retained slot of the private pages and t_k their k-th slot.
///  Both
///    ascend and t_k ≤ s_k, since at most all of the slots below s_k are retained. Rows with
///    t_k = s_k are skipped. A tile of rows [a, z) is loaded, then a barrier, then stored. Its
///    stores go to t_k < s_k ≤ s_j for every k < z ≤ j: no later tile's source is touched, so that
///    the next tile may be loaded without another barrier. Inside the tile t_j may be s_i with
///    i < j, hence the one barrier. A tile's edge inside a row changes nothing: parts of row k do
///    not touch those of s_k, as t_k ≠ s_k.
class RowCompaction {
 public:
  __device__ RowCompaction(const CompactionBatch& batch, std::int64_t request,
                           const RequestPlan& plan, const std::uint64_t* bits, RowPairs* pairs,
                           BlockScratch<std::int32_t>& scratch)
      : plan_(plan),
        // The two halves of a little-endian 64-bit word are 32-bit words in the order of their
        // slots.
        kept_(reinterpret_cast<const std::uint32_t*>(bits)),
        marks_(batch.marks + request * batch.mark_stride),
        table_(batch.block_table + request * batch.block_table_stride),
        pairs_(pairs),
        scratch_(scratch),
        slots_(batch.inputs[request].slots),
        in_order_(batch.strategy == CompactionStrategy::in_order) {
    shift_ = 31 - __clz(batch.shape.page_size);
  }

  /// `scores` is null when there are none.
  __device__ void run(const HeadRows& k, const HeadRows& v, float* scores) const {
    const auto source = [this](std::int32_t word) {
      const auto gives = [this](std::int32_t p) {
        return in_order_ ? is_private(p) : is_victim(p);
      };
      return page_slots(word, gives) & kept_[word];
    };
    const auto target = [this](std::int32_t word) {
      const auto takes = [this](std::int32_t p) {
        return is_private(p) && (in_order_ || !is_victim(p));
      };
      return page_slots(word, takes) & (in_order_ ? ~0U : ~kept_[word]);
    };
    for (std::int32_t first = 0;; first += compact_pairs) {
      const std::int32_t sources = list_slots(source, first, pairs_->from);
      const std::int32_t targets = list_slots(target, first, pairs_->to);
      const std::int32_t count = min(min(sources, targets) - first, compact_pairs);
      if (count <= 0) break;
      __syncthreads();
      move_rows(k, count);
      if (v.bytes > 0) move_rows(v, count);
      if (scores != nullptr) {
        move<float>(count, 1, [&](std::int32_t slot) { return scores + slot; });
      }
      if (count < compact_pairs) break;
    }
    if (scores == nullptr) return;
    __syncthreads();
    close_up(scores);
  }

 private:
  [[nodiscard]] __device__ bool is_private(std::int32_t page) const {
    return (marks_[page] & page_private) != 0;
  }
  [[nodiscard]] __device__ bool is_victim(std::int32_t page) const {
    return page == plan_.victim[0] || page == plan_.victim[1];
  }

  /// Slots of a victim; the last page need not be full.
  [[nodiscard]] __device__ std::int32_t used(std::int32_t victim) const {
    return victim < 0 ? 0 : min(1 << shift_, slots_ - (victim << shift_));
  }

  /// The used slots of a word that lie in pages that are `wanted`.
  template <class Wanted>
  [[nodiscard]] __device__ std::uint32_t page_slots(std::int32_t word, Wanted wanted) const {
    const std::int32_t first = word * warp_lanes;
    std::uint32_t mask = 0;
    if (shift_ >= 5) {
      mask = wanted(first >> shift_) ? ~0U : 0;
    } else {  // two pages of 16 slots
      mask = wanted(first >> shift_) ? 0xffffU : 0;
      if (first + 16 < slots_ && wanted((first >> shift_) + 1)) mask |= 0xffff0000U;
    }
    const std::int32_t left = slots_ - first;
    return left >= warp_lanes ? mask : mask & ((1U << left) - 1);
  }

  /// Writes to `out` the slots that `chosen(word)` marks, ascending, from the `first`-th on, as
  /// many as there is room for; returns how many there are in all. Every warp has a stretch of
  /// words, a lane a word: it counts, learns how many lie before, and writes. What readers need is
  /// a barrier.
  template <class Chosen>
  [[nodiscard]] __device__ std::int32_t list_slots(Chosen chosen, std::int32_t first,
                                                   std::int32_t* out) const {
    const std::int32_t words = (slots_ + warp_lanes - 1) / warp_lanes;
    const std::int32_t stretch = (words + compact_warps - 1) / compact_warps;
    const std::int32_t begin = warp_id() * stretch;
    const std::int32_t end = min(begin + stretch, words);
    std::int32_t count = 0;
    for (std::int32_t w = begin + lane_id(); w < end; w += warp_lanes) count += __popc(chosen(w));
    const BlockScan<std::int32_t> all = block_scan(count, scratch_);
    std::int32_t before = __shfl_sync(full_warp, all.before, 0) - first;
    for (std::int32_t w = begin; w < end; w += warp_lanes) {
      std::uint32_t word = w + lane_id() < end ? chosen(w + lane_id()) : 0;
      const std::int32_t through = warp_inclusive_scan(__popc(word));
      std::int32_t rank = before + through - __popc(word);
      for (; word != 0 && rank < compact_pairs; word &= word - 1, ++rank) {
        if (rank >= 0) out[rank] = (w + lane_id()) * warp_lanes + __ffs(static_cast<int>(word)) - 1;
      }
      before += __shfl_sync(full_warp, through, warp_lanes - 1);
    }
    return all.total;
  }

  __device__ void move_rows(const HeadRows& rows, std::int32_t count) const {
    with_row_unit(rows, 0, [&](auto unit) {
      using Unit = decltype(unit);
      move<Unit>(count, rows.bytes / static_cast<std::int32_t>(sizeof(Unit)),
                 [&](std::int32_t slot) {
                   const std::int32_t token = slot & ((1 << shift_) - 1);
                   return reinterpret_cast<Unit*>(rows.row(table_[slot >> shift_], token));
                 });
    });
  }

  /// Moves the rows of this round, `units` Units each, whose first is at `address(slot)`.
  template <class Unit, class Address>
  __device__ void move(std::int32_t count, std::int32_t units, Address address) const {
    const std::int32_t total = count * units;
    for (std::int32_t first = 0; first < total; first += compact_threads * compact_depth) {
      Unit held[compact_depth];
      const auto each = [&](auto access) {
#pragma unroll
        for (int i = 0; i < compact_depth; ++i) {
          const std::int32_t at =
              first + i * compact_threads + static_cast<std::int32_t>(threadIdx.x);
          if (at < total) {
            const std::int32_t pair = at / units;
            const std::int32_t from = pairs_->from[pair];
            const std::int32_t to = pairs_->to[pair];
            if (from != to) access(held[i], from, to, at - pair * units);
          }
        }
      };
      each([&](Unit& unit, std::int32_t from, std::int32_t /*to*/, std::int32_t at) {
        unit = address(from)[at];
      });
      if (in_order_) __syncthreads();
      each([&](const Unit& unit, std::int32_t /*from*/, std::int32_t to, std::int32_t at) {
        address(to)[at] = unit;
      });
    }
  }

  /// Scores into the new logical order: the victims' pages leave and the others close up. A score
  /// comes from at least a page to the right of where it goes; the same tiles as above.
  __device__ void close_up(float* scores) const {
    const std::int32_t page_size = 1 << shift_;
    const std::int32_t begin = plan_.victim[0] * page_size;
    const std::int32_t end = slots_ - used(plan_.victim[0]) - used(plan_.victim[1]);
    for (std::int32_t first = begin; first < end; first += compact_threads * compact_depth) {
      float held[compact_depth];
      const auto each = [&](auto access) {
#pragma unroll
        for (int i = 0; i < compact_depth; ++i) {
          const std::int32_t to =
              first + i * compact_threads + static_cast<std::int32_t>(threadIdx.x);
          if (to < end) access(held[i], to);
        }
      };
      each([&](float& score, std::int32_t to) {
        std::int32_t page = (to >> shift_) + 1;
        if (plan_.victims == 2 && page >= plan_.victim[1]) ++page;
        score = scores[(page << shift_) + (to & (page_size - 1))];
      });
      __syncthreads();
      each([&](const float& score, std::int32_t to) { scores[to] = score; });
    }
  }

  RequestPlan plan_;
  const std::uint32_t* kept_;
  const std::uint8_t* marks_;
  const std::int32_t* table_;
  RowPairs* pairs_;
  BlockScratch<std::int32_t>& scratch_;
  std::int32_t slots_;
  std::int32_t shift_;
  bool in_order_;
};

/// One CTA per (request, layer, KV head). Reads and writes the rows that move, once each. The
/// batch's shape and K/V are as `resolve` makes them.
__global__ void __launch_bounds__(compact_threads, 3) compact_kernel(CompactionBatch batch) {
  GROWPAGE_SHARED(RowPairs, pairs);
  GROWPAGE_SHARED(BlockScratch<std::int32_t>, scratch, );
  const auto request = static_cast<std::int64_t>(blockIdx.x);
  const RequestPlan plan = batch.plans[request];
  if (plan.victims <= 0) return;
  const auto layer = static_cast<std::int32_t>(blockIdx.y);
  const auto head = static_cast<std::int32_t>(blockIdx.z);
  const std::int64_t row = std::int64_t{layer} * batch.shape.kv_heads + head;
  const std::int64_t rows = std::int64_t{batch.shape.layers} * batch.shape.kv_heads;
  const RowCompaction compaction(
      batch, request, plan, batch.bits + (request * rows + row) * batch.words, &pairs, scratch);
  const HeadRows k = head_rows(batch.kv.k, batch.shape.head_dim, layer, head);
  const HeadRows v = v_rows(batch.shape, batch.kv, layer, head);
  float* const scores =
      batch.scores == nullptr
          ? nullptr
          : batch.scores + request * batch.score_request_stride + row * batch.score_stride;
  compaction.run(k, v, scores);
}

}  // namespace growpage::cuda
