// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "growpage/backend/contract.hpp"
#include "growpage/cache/page_manager.hpp"
#include "growpage/cache/paged_kv_cache_options.hpp"
#include "growpage/core/stream.hpp"
#include "growpage/detail/backend_memory.hpp"

namespace growpage {

/// Queries of a step after q-norm and before RoPE, non-owning: `[layer, request, q_head,
/// head_dim]`, strides in elements, the head dimension contiguous. Zero strides mean densely
/// packed.
struct QueryView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t layer_stride = 0;
  std::int64_t request_stride = 0;
  std::int64_t head_stride = 0;
};

/// A paged KV cache with its memory: a PageManager (who owns which page) plus KV memory, query
/// summaries and the kernels of a backend. Owns the backend, the summaries, its workspaces and,
/// unless the engine brought its own, the KV memory. Move-only.
///
/// Calls that launch kernels take a stream and enqueue only, except where they say "synchronises".
/// measure_demand, compact and attention share a workspace: put them on one stream, or order their
/// streams by events. The others may run beside them.
/// On any status but ok nothing has changed; device_error says that a device refused a call, and
/// only then what the call was to write is undefined.
template <KvBackend Backend>
class PagedKVCache : public PageManager {
 public:
  /// invalid_argument when an option is out of range; out_of_memory when the backend has no memory
  /// left.
  [[nodiscard]] static Result<PagedKVCache> create(const PagedKVCacheOptions& options,
                                                   Backend backend = Backend());

  /// Updates the summaries of `entries` `[request]` for layers [first_layer, first_layer + layers)
  /// with this step's queries. Call it once for all layers, or once per layer inside the model.
  Status update_summaries(std::span<const SummaryEntry> entries, const QueryView& queries,
                          std::int32_t first_layer, std::int32_t layers, StreamView stream = {});

  /// Δ of a request (paper, eq. 5), added into `demand` (clear it first; ranks may add theirs). Its
  /// retention scores are kept for a compaction that follows at once. Synchronises. A request
  /// without candidates (one page) leaves count at 0. invalid_argument for a bad slot or position.
  Status measure_demand(SequenceId id, SummarySlot slot, std::int64_t position, Demand& demand,
                        StreamView stream = {});

  /// Runs a compaction begun by `begin_compaction`: scores (kept or computed now), selection, plan,
  /// row moves, block table. Synchronises once, for the plan. Complete the ticket's fence when the
  /// stream has passed this point. at_capacity when what must be kept (recent, sinks, prompt) does
  /// not fit; the compaction is then cancelled. protocol_error when the ticket is of no begun one.
  Status compact(const CompactionTicket& ticket, SummarySlot slot, std::int64_t position,
                 std::int32_t protected_slots = 0, StreamView stream = {});

  /// Copies of whole pages (copy-on-write), in order.
  Status run_copies(std::span<const PageCopy> copies, StreamView stream = {});
  /// Pages to host memory and the summary row of `slot` with them (when valid).
  Status run_swap_out(SequenceId id, SummarySlot slot, std::span<const PageTransfer> transfers,
                      StreamView stream = {});
  /// The way back; `slot` may be another row than before. Exact: bytes are not converted.
  Status run_swap_in(SequenceId id, SummarySlot slot, std::span<const PageTransfer> transfers,
                     StreamView stream = {});

  /// Writes K and V of new tokens of one layer into their slots; see AppendKv for shapes.
  Status append_kv(std::int32_t layer, std::span<const std::int64_t> slot_mapping, const void* k,
                   const void* v, StreamView stream = {});
  /// Reference attention for tests and small engines; see PagedAttention for shapes.
  Status attention(std::int32_t layer, std::span<const std::int32_t> block_table,
                   std::int64_t block_table_stride, std::span<const std::int32_t> kv_lengths,
                   const float* q, float* out, StreamView stream = {});

  [[nodiscard]] const CacheShape& shape() const noexcept { return options_.shape; }
  [[nodiscard]] const PagedKVCacheOptions& cache_options() const noexcept { return options_; }
  [[nodiscard]] const KvView& kv() const noexcept { return options_.kv; }
  [[nodiscard]] const SummaryView& summaries() const noexcept { return summaries_; }
  [[nodiscard]] Backend& backend() noexcept { return *backend_; }
  /// K rows read by the demand and score passes so far, in bytes: each boundary should read K once.
  [[nodiscard]] std::int64_t k_bytes_read() const noexcept { return k_bytes_read_; }

 private:
  // Scores of a request, kept between its demand pass and its compaction.
  struct ScoreBuffer {
    SequenceId owner;
    std::int32_t slots = 0;
    std::int64_t used = 0;  // age, for replacement
  };
  // Zipage's global score beside the cache: one row per summary slot.
  struct ScoreHistory {
    SequenceId owner;
    std::int32_t compactions = 0;  // the sequence's count when the scores were left
    std::int32_t slots = 0;        // how many slots they are for
  };

  PagedKVCache(PageManager&& manager, const PagedKVCacheOptions& options, Backend backend);
  Status allocate_memory();
  Status check_boundary(SequenceId id, SummarySlot slot, std::int64_t position,
                        SequenceView& view) const;
  [[nodiscard]] float* scores(std::size_t buffer) noexcept;
  [[nodiscard]] float* history(SummarySlot slot) noexcept;
  std::size_t take_score_buffer(SequenceId id, std::int32_t slots);
  float* find_scores(SequenceId id, std::int32_t slots);
  BoundaryPass boundary_pass(const SequenceView& view, SequenceId id, SummarySlot slot,
                             std::int64_t position);
  template <class F>
  void for_each_summary_row(SequenceId id, SummarySlot slot, F&& f);

  PagedKVCacheOptions options_;
  std::unique_ptr<Backend> backend_;  // on the heap: memory below keeps a pointer to it
  detail::BackendMemory<Backend> k_memory_, v_memory_, summary_memory_, score_memory_,
      history_memory_, workspace_, keep_bits_;
  detail::BackendMemory<Backend, detail::MemorySpace::host> host_pages_;  // [host page, page_bytes]
  detail::BackendMemory<Backend, detail::MemorySpace::host>
      host_summaries_;  // [sequence, summary_row_bytes_]
  SummaryView summaries_;
  std::vector<ScoreBuffer> score_buffers_;
  std::vector<ScoreHistory> history_;          // [summary slot]
  std::vector<ScoreHistory> swapped_history_;  // [sequence]
  std::vector<std::uint8_t> marks_;
  std::vector<std::int32_t> page_kept_;
  std::int64_t score_stride_ = 0;
  std::int64_t score_clock_ = 0;
  std::int64_t summary_row_bytes_ = 0;
  std::int64_t k_bytes_read_ = 0;
};

}  // namespace growpage

#include "growpage/detail/paged_kv_cache.hpp"
