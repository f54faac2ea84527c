// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "growpage/backend/cpu.hpp"
#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/cpu_slots.hpp"

namespace growpage::detail {

/// The compaction of one (layer, KV head): the work of one task.
class CompactTask {
 public:
  CompactTask(const CompactionMove& move, const CpuKernels& kernels, std::int32_t layer,
              std::int32_t head) noexcept
      : move_(move),
        kernels_(kernels),
        bits_(move.keep.row(layer, head)),
        scores_(move.scores == nullptr
                    ? nullptr
                    : move.scores +
                          (std::int64_t{layer} * move.shape.kv_heads + head) * move.score_stride),
        page_size_(move.shape.page_size),
        slots_(move.keep.slots),
        k_(move, move.kv.k, move.shape.head_dim, layer, head),
        v_(move, move.kv.v, move.shape.v_dim(), layer, head) {}

  void run() noexcept {
    // A victim's row never returns to a victim, and in order a row moves to the left of where the
    // next one comes from: a row is read before its slot is written, without a buffer.
    if (move_.plan.strategy == CompactionStrategy::fill_holes) {
      pair_up(SlotWalk(bits_, page_size_, slots_, true, [this](auto p) { return is_victim(p); }),
              SlotWalk(bits_, page_size_, slots_, false,
                       [this](auto p) { return is_private(p) && !is_victim(p); }));
    } else {
      const auto wanted = [this](std::int64_t p) { return is_private(p); };
      pair_up(SlotWalk(bits_, page_size_, slots_, true, wanted),
              SlotWalk(nullptr, page_size_, slots_, true, wanted));
    }
    if (scores_ != nullptr) reorder_scores();
  }

 private:
  /// One of K and V: addresses and row size.
  struct Rows {
    Rows(const CompactionMove& move, const KvTensor& tensor, std::int32_t dim, std::int32_t layer,
         std::int32_t head) noexcept
        : bytes(dtype_bytes(tensor.dtype) * static_cast<std::size_t>(dim)) {
      if (tensor.null()) return;
      const auto element = static_cast<std::int64_t>(dtype_bytes(tensor.dtype));
      base = tensor.layer(layer) + head * tensor.layout.head_stride * element;
      page_stride = tensor.layout.page_stride * element;
      token_stride = tensor.layout.token_stride * element;
      pages = move.pages;
      shift = std::countr_zero(static_cast<std::uint32_t>(move.shape.page_size));
      mask = move.shape.page_size - 1;
    }
    [[nodiscard]] char* row(std::int64_t slot) const noexcept {
      // Page sizes are powers of two; a division would cost more than the address arithmetic.
      return base + pages[slot >> shift].offset() * page_stride + (slot & mask) * token_stride;
    }
    char* base = nullptr;
    std::int64_t page_stride = 0;
    std::int64_t token_stride = 0;
    const PageId* pages = nullptr;
    std::int32_t shift = 0;
    std::int64_t mask = 0;
    std::size_t bytes;
  };
  struct Pair {
    std::int64_t from;
    std::int64_t to;
  };
  static constexpr std::int32_t batch = 256;

  [[nodiscard]] bool is_private(std::int64_t page) const noexcept {
    return (move_.marks[page] & page_private) != 0;
  }
  [[nodiscard]] bool is_victim(std::int64_t page) const noexcept {
    for (std::int32_t v = 0; v < move_.plan.victims; ++v) {
      if (move_.plan.victim[v] == page) return true;
    }
    return false;
  }

  template <class Sources, class Targets>
  void pair_up(Sources sources, Targets targets) noexcept {
    Pair pairs[batch];
    bool more = true;
    while (more) {
      std::int32_t count = 0;
      while (count < batch) {
        const std::int64_t from = sources.next();
        const std::int64_t to = from >= 0 ? targets.next() : -1;
        more = to >= 0;
        if (!more) break;
        if (from != to) pairs[count++] = {from, to};
      }
      copy_kv(pairs, count);
      for (std::int32_t i = 0; scores_ != nullptr && i < count; ++i) {
        scores_[pairs[i].to] = scores_[pairs[i].from];
      }
    }
  }

  void copy_kv(const Pair* pairs, std::int32_t count) const noexcept {
    RowCopy copies[2 * batch];
    std::int32_t listed = list(k_, pairs, count, copies);
    if (!move_.kv.v_in_k()) {
      if (v_.bytes != k_.bytes) {
        kernels_.copy_rows(copies, listed, k_.bytes);
        listed = 0;
      }
      listed += list(v_, pairs, count, copies + listed);
      kernels_.copy_rows(copies, listed, v_.bytes);
    } else {
      kernels_.copy_rows(copies, listed, k_.bytes);
    }
  }

  static std::int32_t list(const Rows& rows, const Pair* pairs, std::int32_t count,
                           RowCopy* out) noexcept {
    for (std::int32_t i = 0; i < count; ++i) {
      out[i] = {rows.row(pairs[i].from), rows.row(pairs[i].to)};
    }
    return count;
  }

  /// The victims' pages leave the table and the others close up.
  void reorder_scores() noexcept {
    std::int64_t target = 0;
    for (std::int64_t p = 0; p * page_size_ < slots_; ++p) {
      if (is_victim(p)) continue;
      const std::int64_t first = p * page_size_;
      const std::int64_t count = std::min(page_size_, slots_ - first);
      if (target != first) std::copy(scores_ + first, scores_ + first + count, scores_ + target);
      target += page_size_;
    }
  }

  const CompactionMove& move_;
  const CpuKernels& kernels_;
  const std::uint64_t* bits_;
  float* scores_;
  std::int64_t page_size_;
  std::int64_t slots_;
  Rows k_;
  Rows v_;
};

}  // namespace growpage::detail

namespace growpage {

GROWPAGE_INLINE void CpuBackend::compact(const CompactionMove& move, void* /*workspace*/,
                                         StreamView /*stream*/) noexcept {
  const KeepSet& keep = move.keep;
  executor_.for_each(
      std::int64_t{keep.layers} * keep.kv_heads, [&](std::int64_t task, std::int32_t /*worker*/) {
        detail::CompactTask(move, *kernels_, static_cast<std::int32_t>(task / keep.kv_heads),
                            static_cast<std::int32_t>(task % keep.kv_heads))
            .run();
      });
}

}  // namespace growpage
