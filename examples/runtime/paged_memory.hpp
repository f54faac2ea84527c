// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention.hpp"
#include "growpage/backend/cpu.hpp"
#include "growpage/cache/paged_kv_cache.hpp"
#include "growpage/schedule/step_plan.hpp"
#include "kv_memory.hpp"

namespace growpage::runtime {

using Cache = PagedKVCache<CpuBackend>;

/// The KV memory of a step plan: growpage's pages.
class PagedMemory final : public KvMemory {
 public:
  /// `cache` is borrowed. With `library_attention` decodes go through PagedKVCache::attention, the
  /// library's reference, which sums in double: a text that is preempted and prefilled again then
  /// differs from one that is not in the last bits. Otherwise both go through attend().
  PagedMemory(Cache& cache, Executor executor, bool library_attention);

  /// Lays the batch of a plan out: its prefill chunks, then its decodes. The plan outlives the
  /// pass.
  Status begin(const StepPlan& plan);
  /// [token] of the batch: for RoPE.
  [[nodiscard]] std::span<const std::int64_t> positions() const noexcept { return positions_; }

  Status observe(std::int32_t layer, const float* q, std::int64_t token_stride) override;
  Status append(std::int32_t layer, const float* k, const float* v) override;
  Status attend(std::int32_t layer, const float* q, float* out) override;

 private:
  /// Consecutive tokens of one sequence for one thread; each KV head of it is a task.
  struct Piece {
    std::int64_t table = 0;  // row of the block tables
    std::int64_t token = 0;  // of the batch
    std::int32_t tokens = 0;
    std::int32_t first_length = 0;
  };
  void add_pieces(std::int32_t tokens, std::int32_t first_length);
  const void* to_cache_dtype(const float* rows, std::int64_t size, std::vector<std::uint16_t>& out);
  void attend_piece(const Piece& piece, std::int32_t layer, std::int32_t head, const float* q,
                    float* out, AttentionScratch& scratch) const;

  Cache& cache_;
  Executor executor_;
  bool library_attention_;

  std::vector<SequenceId> sequences_;  // of the batch, in its order
  std::vector<std::int32_t> counts_;   // [sequence] tokens in the batch
  std::vector<std::int64_t> slots_;    // [token] where K and V go
  std::vector<std::int64_t> positions_;
  std::vector<std::int32_t> tables_;  // [sequence, stride_]
  std::int64_t stride_ = 0;
  std::vector<Piece> pieces_;
  std::vector<std::int32_t> decode_lengths_;  // [decode], for the library's attention
  std::int64_t decode_token_ = 0;             // the first decode of the batch
  std::int64_t decode_sequence_ = 0;

  std::vector<SummaryEntry> summaries_;
  std::vector<std::int64_t> summary_tokens_;  // [summary] whose query it takes
  std::vector<float> summary_queries_;        // [summary, q_head, head_dim]
  std::vector<std::uint16_t> k_narrow_, v_narrow_;
  std::vector<AttentionScratch> scratch_;  // [worker]
};

}  // namespace growpage::runtime
