// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "growpage/core/cache_shape.hpp"
#include "growpage/core/kv_layout.hpp"
#include "growpage/core/status.hpp"
#include "growpage/core/stream.hpp"
#include "growpage/demand/demand.hpp"
#include "growpage/demand/query_summary.hpp"
#include "growpage/demand/rope.hpp"
#include "growpage/retention/compaction_plan.hpp"
#include "growpage/retention/keep_set.hpp"
#include "growpage/retention/retention.hpp"

/// The backend contract: every kernel the library runs, with its shapes and preconditions. A
/// backend is any type that models `KvBackend` below. Arguments are plain views; nothing here owns
/// memory.
///
/// Common to all kernels
///  - Pointers are in the backend's memory ("device"), spans and the structs themselves on the
///  host.
///  - Preconditions are checked by the callers (`PagedKVCache`); kernels trust them.
///  - A kernel allocates nothing: temporary memory comes in as a workspace, which may serve one
///  call
///    at a time, or several on one stream.
///  - A kernel enqueues on `stream` and does not synchronise, unless it says "synchronises". The
///  CPU
///    backend has done its work when a call returns.
///  - "Host memory" arguments are read before a call returns; the caller may reuse them at once.
///  Not
///    so the host side of a copy (copy_to_host, copy_from_host, pages_to_host, pages_from_host):
///    that stays as it is until the stream has passed the call.
///  - A call that the device refuses does nothing; `take_status` tells of it.
///  - With bf16 keys boundary_pass rounds every calibrated (or window) query, after RoPE, to bf16
///    (nearest even) and applies softmax_scale to the products, as a bf16 model's own attention
///    does and matrix units want. All backends do, so that they agree.
///  - Non-finite inputs: a NaN logit counts as −inf (weight 0), +inf as the largest float; a row
///  whose
///    logits are all −inf gets the uniform distribution. No slot at or past `slots` is ever read.
namespace growpage {

/// One request of a summary update.
struct SummaryEntry {
  std::int32_t slot = 0;  ///< row of the summary state
  std::int32_t first =
      0;  ///< nonzero: first decode step of this slot; the old contents are ignored
};

/// Both EMAs of `entries.size()` requests for layers [first_layer, first_layer + layers), called
/// with the queries after q-norm and before RoPE: for all layers at once, or per layer inside the
/// model.
struct SummaryUpdate {
  SummaryView state;
  SummaryOptions options;                 ///< as used: `beta_long` is the weight itself, not 0
  const SummaryEntry* entries = nullptr;  ///< [request], host memory
  std::int32_t requests = 0;
  std::int32_t first_layer = 0;
  std::int32_t layers = 1;
  const void* q = nullptr;  ///< [layer, request, q_head, head_dim] with the strides below
  DType q_dtype = DType::f32;
  std::int64_t q_layer_stride = 0;    ///< in elements
  std::int64_t q_request_stride = 0;  ///< in elements
  std::int64_t q_head_stride = 0;     ///< in elements; the head dimension is contiguous
};

/// One request at (or just before) a capacity boundary.
struct BoundaryInput {
  const PageId* pages = nullptr;  ///< [ceil(slots / b)] block table, host memory
  std::int32_t slots = 0;         ///< n ≥ 1 used slots
  std::int32_t candidates = 0;    ///< |C| = slots of all pages but the newest; 0 = no demand
  std::int32_t summary_slot = 0;  ///< row of the summary state
  std::int64_t position = 0;      ///< of the latest query, for RoPE: the true length − 1
};

/// The one pass over K: every historical page is read once for both summaries and all query heads
/// of its group, and serves demand (over candidates) and scores (over all used slots).
struct BoundaryPass {
  CacheShape shape;
  KvView kv;
  SummaryView summaries;
  RopeParams rope;
  DemandOptions demand;
  RetentionOptions retention;
  float softmax_scale = 0.0F;  ///< 0 = 1/√head_dim
  BoundaryInput input;
  /// Out, `[layer, kv_head, score_stride]`, retention score per slot; null = demand only.
  float* scores = nullptr;
  std::int64_t score_stride = 0;  ///< ≥ slots
  /// In: scores of the previous compaction at the slots they now have, for slots [0, old_slots)
  /// (later ones had none), same shape and stride; null = none. May alias `scores`.
  const float* old_scores = nullptr;
  std::int32_t old_slots = 0;
  /// Out: added to (not overwritten), one entry; null = scores only.
  Demand* result = nullptr;
};

/// Chooses the rows to keep in each (layer, KV head): recent, sinks and protected slots, the local
/// quota of every page, then the globally best, exactly `keep` of the eligible slots (algorithm,
/// section 4). Slots of pages not marked page_private are kept and not counted in `keep`.
struct Selection {
  CacheShape shape;
  RetentionOptions retention;
  const float* scores = nullptr;  ///< [layer, kv_head, score_stride]
  std::int64_t score_stride = 0;
  const std::uint8_t* marks = nullptr;  ///< [page] PageMark bits, host memory
  std::int32_t protected_slots = 0;     ///< slots [0, protected_slots) are kept (sinks, prompt)
  std::int32_t keep = 0;                ///< rows to keep among the private pages' slots
  KeepSet out;  ///< all but the contents filled in by the caller; `page_kept` is host memory
};

/// Moves the retained rows of one request so that the plan's victim pages hold none, in place, K
/// and V (V not when it is a view of K), layers and heads independently. fill_holes: a victim's
/// retained rows, ascending, go to the evicted slots of the other private pages, ascending; nothing
/// else moves. in_order: the private pages' retained rows, ascending, go to the private pages'
/// first slots. `scores`, when given, follow their rows and end up in the NEW logical order
/// (victims taken out of the table and put at its end); what they hold behind the last retained
/// slot is unspecified; [layer, kv_head, score_stride].
struct CompactionMove {
  CacheShape shape;
  KvView kv;
  const PageId* pages = nullptr;        ///< [page] block table before the compaction, host memory
  const std::uint8_t* marks = nullptr;  ///< [page] PageMark bits, host memory
  CompactionPlan plan;
  KeepSet keep;
  float* scores = nullptr;
  std::int64_t score_stride = 0;
};

/// One page of all layers, K and V, to another page of the same cache.
struct PageCopy {
  PageId source;
  PageId target;
};

/// One page of all layers, K and V, between the cache and host memory. Host pages are packed: host
/// page h is `page_bytes(shape, kv)` bytes at `host + h · page_bytes`, K `[layer, kv_head, token,
/// dim]` first, then V the same way (absent when it is a view of K).
struct PageTransfer {
  PageId device;
  PageId host;
};

[[nodiscard]] inline std::int64_t page_bytes(const CacheShape& shape, const KvView& kv) noexcept {
  const std::int64_t rows = std::int64_t{shape.layers} * shape.kv_heads * shape.page_size;
  const auto k = static_cast<std::int64_t>(dtype_bytes(kv.k.dtype)) * shape.head_dim;
  const auto v = static_cast<std::int64_t>(dtype_bytes(kv.v.dtype)) * shape.v_dim();
  return rows * (kv.v_in_k() ? k : k + v);
}

/// K and V rows of new tokens into their slots. Rows with a negative slot are skipped (padding).
struct AppendKv {
  CacheShape shape;
  KvView kv;
  std::int32_t layer = 0;
  const std::int64_t* slot_mapping = nullptr;  ///< [token] page·b + offset, or < 0
  std::int64_t tokens = 0;
  const void* k = nullptr;  ///< [token, kv_head, head_dim], RoPE applied, contiguous, dtype of kv.k
  const void* v = nullptr;  ///< [token, kv_head, value_dim]; null when V is a view of K
};

/// Reference attention of one query token per request over its paged KV, for tests and small
/// engines.
struct PagedAttention {
  CacheShape shape;
  KvView kv;
  std::int32_t layer = 0;
  std::int32_t requests = 0;
  const std::int32_t* block_table = nullptr;  ///< [request, block_table_stride]
  std::int64_t block_table_stride = 0;
  const std::int32_t* kv_lengths = nullptr;  ///< [request] used slots; 0 gives a zero output
  std::int32_t max_slots = 0;  ///< no length is above it; 0 = as many as a row of the table holds
  const float* q = nullptr;    ///< [request, q_head, head_dim], RoPE applied
  float* out = nullptr;        ///< [request, q_head, value_dim]
  float softmax_scale = 0.0F;  ///< 0 = 1/√head_dim
};

/// What a backend must offer. Each call's shapes and rules are on its argument type; `StreamView`
/// is where it is enqueued. `workspace_bytes` is what every call that takes a workspace needs, for
/// a request of up to `max_slots` slots.
template <class B>
concept KvBackend = requires(B& b, const B& cb, StreamView stream, void* memory, const void* source,
                             std::int64_t bytes, const CacheShape& shape) {
  { b.allocate(bytes) } -> std::same_as<void*>;  ///< zero-filled, 64-byte aligned; null = no memory
  { b.deallocate(memory, bytes) } noexcept;
  /// Host memory that pages are swapped to: zero-filled, as fast to copy to as the machine has it.
  { b.allocate_host(bytes) } -> std::same_as<void*>;
  { b.deallocate_host(memory, bytes) } noexcept;
  /// Whether host code may read `allocate`d memory: then host code checks its contents, too.
  { cb.host_accessible() } noexcept -> std::same_as<bool>;
  /// The first failure of a call since the last take_status, which this forgets; ok = none.
  { b.take_status() } noexcept -> std::same_as<Status>;
  { cb.workspace_bytes(shape, std::int32_t{}) } -> std::same_as<std::int64_t>;
  { b.summary_update(std::declval<const SummaryUpdate&>(), stream) };
  /// Synchronises when `result` is asked for: the engine's decision needs it.
  { b.boundary_pass(std::declval<const BoundaryPass&>(), memory, stream) };
  /// Synchronises: `page_kept` is read by the planner.
  { b.select(std::declval<const Selection&>(), memory, stream) };
  { b.compact(std::declval<const CompactionMove&>(), memory, stream) };
  { b.copy_pages(shape, std::declval<const KvView&>(), std::span<const PageCopy>{}, stream) };
  {
    b.pages_to_host(shape, std::declval<const KvView&>(), std::span<const PageTransfer>{}, memory,
                    stream)
  };
  {
    b.pages_from_host(shape, std::declval<const KvView&>(), std::span<const PageTransfer>{}, source,
                      stream)
  };
  { b.copy_to_host(memory, source, bytes, stream) };
  { b.copy_from_host(memory, source, bytes, stream) };
  { b.append_kv(std::declval<const AppendKv&>(), stream) };
  { b.paged_attention(std::declval<const PagedAttention&>(), memory, stream) };
  { b.synchronize(stream) };
  { cb.name() } -> std::convertible_to<const char*>;
};

}  // namespace growpage
