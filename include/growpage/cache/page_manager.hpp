// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "growpage/backend/contract.hpp"
#include "growpage/core/ids.hpp"
#include "growpage/core/status.hpp"
#include "growpage/memory/block_table.hpp"
#include "growpage/memory/page_pool.hpp"
#include "growpage/observe/counters.hpp"
#include "growpage/observe/kv_events.hpp"
#include "growpage/prefix/prefix_index.hpp"

namespace growpage {

struct PageManagerOptions {
  std::int64_t pages = 0;                      ///< physical pages, 1 … 2^31 − 1
  std::int32_t page_size = 256;                ///< b, a power of two ≥ 16
  std::int32_t max_sequences = 1024;           ///< alive at once, swapped ones included
  std::int32_t max_pages_per_sequence = 1024;  ///< columns of the block table
  bool prefix_caching = true;
  std::int64_t host_pages = 0;      ///< swap space; 0 = no swap
  std::int32_t max_fences = 256;    ///< compactions and swaps in flight
  std::int64_t event_capacity = 0;  ///< KV events kept for the engine; 0 = none recorded

  [[nodiscard]] Status validate() const;
};

/// A read-only look at one sequence.
struct SequenceView {
  std::span<const PageId>
      pages;                  ///< block table; host pages while swapped. Valid until the next call
  std::int64_t length = 0;    ///< true length: tokens appended; the position of the next token
  std::int32_t slots = 0;     ///< used slots n; equals length until the first compaction
  std::int32_t computed = 0;  ///< slots whose K/V the engine has produced
  std::int32_t compactions = 0;
  bool busy = false;     ///< under a fence: do not read, write or decode it
  bool swapped = false;  ///< its pages are in host memory
};

/// A compaction between `begin_compaction` and its fence.
struct CompactionTicket {
  SequenceId sequence;
  FenceId fence;
  std::int32_t victims = 0;
  CompactionStrategy strategy = CompactionStrategy::fill_holes;
};

/// The host side of the cache: which page belongs to whom. Owns the page pool, the prefix index and
/// the block tables; never touches KV memory and launches nothing. `PagedKVCache` adds memory and
/// kernels; an engine that keeps its own kernels can use this class alone.
///
/// All calls: O(pages concerned), nothing allocated after construction, no lock (one owner thread).
/// On any status but ok the state is what it was before the call. stale_id for a sequence that is
/// gone, busy for one under a fence, throughout.
class PageManager {
 public:
  [[nodiscard]] static Result<PageManager> create(const PageManagerOptions& options);

  // -- Sequences
  // -------------------------------------------------------------------------------------

  struct Admission {
    SequenceId sequence;
    std::int64_t matched = 0;  ///< prompt tokens found in the prefix cache, a multiple of b
  };
  /// A new sequence that begins with the longest cached prefix of `tokens`, at most size − 1 tokens
  /// (one must be left to compute). Takes references on the matched pages, no new page. The matched
  /// tokens count as appended and computed. Empty `tokens` = an empty sequence. out_of_sequences.
  [[nodiscard]] Result<Admission> admit(std::span<const TokenId> tokens, const ExtraKey& key = {});
  /// Tokens `admit` would match now, without taking anything.
  [[nodiscard]] std::int64_t match_length(std::span<const TokenId> tokens,
                                          const ExtraKey& key = {}) const;

  /// One more page at the end of the table: growth. out_of_pages; invalid_argument at
  /// max_pages_per_sequence.
  [[nodiscard]] Status grow(SequenceId id);
  /// Pages for `slots` more slots, all or none.
  [[nodiscard]] Status reserve(SequenceId id, std::int64_t slots);
  /// Takes the next `count` slots for `tokens` `[count]` (null: unknown; pages from here on are not
  /// published). Their K/V is written by the engine; see slot_mapping. A partly filled last page
  /// that others read (another sequence, or a fence over rows that were rolled back) is replaced by
  /// a copy first (copy-on-write): the copy to run is pushed to `copies`, to be run before anything
  /// else touches either page; out_of_pages when that page is not to be had. at_capacity when
  /// slots + count > pages · b.
  [[nodiscard]] Status append(SequenceId id, std::int64_t count, const TokenId* tokens,
                              std::vector<PageCopy>& copies);
  /// The K/V of the first `slots` slots exists now: full pages are published for matching, unless
  /// the sequence was compacted. invalid_argument beyond the used slots.
  Status mark_computed(SequenceId id, std::int32_t slots);
  /// A second sequence with the same content; every page is shared, the partial tail until one of
  /// the two writes to it.
  [[nodiscard]] Result<SequenceId> fork(SequenceId id);
  /// Forgets the tokens from `length` on (speculative rollback). Pages left without tokens are
  /// released, but never below the pages held at the last compaction. behind_compaction when
  /// `length` is less than the length at the last compaction: those rows are gone.
  [[nodiscard]] Status truncate(SequenceId id, std::int64_t length);
  /// The sequence is gone; its pages return to the pool, to the prefix cache, or wait for a fence.
  /// Allowed while busy and while swapped.
  Status release(SequenceId id);

  // -- Compaction
  // ------------------------------------------------------------------------------------

  /// Starts freeing `victims` pages (1 = Compress & Hold, 2 = Shrink) of a sequence whose pages are
  /// full (slots = pages · b, all computed). Opens a fence over its pages and makes it busy. With
  /// SharedPages::copy, pages others read are replaced by fresh ones (the copies to run are
  /// pushed); out_of_pages when they are not to be had. A page under another fence (`guard`) counts
  /// as shared here. at_capacity when fewer than victims + 1 private pages are there (with `keep`):
  /// it cannot be compacted. out_of_fences.
  [[nodiscard]] Result<CompactionTicket> begin_compaction(SequenceId id, std::int32_t victims,
                                                          CompactionStrategy strategy,
                                                          SharedPages shared,
                                                          std::vector<PageCopy>& copies);
  /// Marks `[pages]` for planning and selection: page_private for pages that may be rewritten, and
  /// page_protected for pages with slots below `protected_slots`. invalid_argument when `marks` is
  /// shorter than the table. Allowed while busy.
  Status page_marks(SequenceId id, std::int32_t protected_slots,
                    std::span<std::uint8_t> marks) const;
  /// Carries the plan out in the block table: the victims leave their places; the first becomes the
  /// empty append page at the end, a second one returns to the pool (in flight until the fence).
  /// Slots shrink by victims · b; the length stays. Pages whose content changes are withdrawn from
  /// the prefix index: the private ones that lose a row (`page_kept[p] < rows_per_page`), with
  /// in_order those behind them too, every private one when `page_kept` is empty. The sequence
  /// stays busy until `complete_fence`. protocol_error when the ticket is not of a begun
  /// compaction; invalid_argument when the plan does not fit it.
  Status apply_compaction(const CompactionTicket& ticket, const CompactionPlan& plan,
                          std::span<const std::int32_t> page_kept, std::int32_t rows_per_page);
  /// Whether the ticket is of a compaction that is begun and neither applied nor cancelled.
  [[nodiscard]] bool is_compacting(const CompactionTicket& ticket) const noexcept;
  /// Gives a compaction up before `apply_compaction`; completes its fence.
  Status cancel_compaction(const CompactionTicket& ticket);

  // -- Swap
  // ------------------------------------------------------------------------------------------

  /// Gives the sequence's device pages up for host pages; the copies to run are pushed to
  /// `transfers`. The device pages are in flight until the fence; the sequence is busy until then,
  /// then swapped (`view` says so at once). Pages without a used slot are not copied.
  /// out_of_host_pages, out_of_fences.
  [[nodiscard]] Result<FenceId> swap_out(SequenceId id, std::vector<PageTransfer>& transfers);
  /// The way back: as many device pages, all or none (out_of_pages). Busy until the fence.
  [[nodiscard]] Result<FenceId> swap_in(SequenceId id, std::vector<PageTransfer>& transfers);

  // -- Fences
  // ----------------------------------------------------------------------------------------

  /// The device work behind the fence is done: its pages may be reused, its sequence is no longer
  /// busy. stale_id when it is not open.
  Status complete_fence(FenceId fence);
  /// A fence of the engine's own over the pages of a sequence (a transfer to another node, say).
  /// Does not make it busy: it may append, and the guarded rows are neither overwritten nor moved.
  [[nodiscard]] Result<FenceId> guard(SequenceId id);

  // -- Looking
  // ---------------------------------------------------------------------------------------

  [[nodiscard]] Result<SequenceView> view(SequenceId id) const;
  [[nodiscard]] bool alive(SequenceId id) const noexcept;
  /// Physical slot page · b + offset of logical slot `s`. Precondition: alive, s < pages · b.
  [[nodiscard]] std::int64_t physical_slot(SequenceId id, std::int32_t s) const noexcept;
  /// Pages of the sequence that no other table holds.
  [[nodiscard]] std::int32_t private_pages(SequenceId id) const noexcept;
  [[nodiscard]] PageCounts counts() const noexcept;
  [[nodiscard]] PageCounts host_counts() const noexcept;
  /// Pages that can be handed out now: free + cached.
  [[nodiscard]] std::int64_t allocatable() const noexcept;
  [[nodiscard]] const PageManagerOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::int64_t live_sequences() const noexcept { return live_; }
  [[nodiscard]] std::int64_t evicted_pages() const noexcept { return evicted_pages_; }
  [[nodiscard]] std::int64_t copied_pages() const noexcept { return copied_pages_; }
  [[nodiscard]] KvEventRing& events() noexcept { return *events_; }
  /// Withdraws every unreferenced cached page and forgets published ones ("cleared").
  void clear_prefix_cache();
  /// Every rule of section 8, in O(pages + sequences); protocol_error naming the first one broken.
  /// For tests and debugging.
  [[nodiscard]] Status check_invariants() const;

 private:
  // What of a sequence's extra key enters the hashes of its pages.
  struct Chain {
    PrefixLink root;
    Hash128 modality;
    std::int64_t modality_page = -1;  // the first page the modality touches; −1 = none
  };
  // One sequence. While it may publish, slots and positions are the same numbers. What every step
  // reads fills the first cache line.
  struct alignas(64) Sequence {
    std::uint32_t generation = 1;
    bool alive = false;
    bool rewriting = false;  // a compaction has begun and is neither applied nor cancelled
    bool swapped = false;
    bool publishes = false;
    FenceId fence;  // of the compaction or swap that makes it busy
    std::int32_t pages = 0;
    std::int32_t slots = 0;
    std::int32_t written = 0;  // slots ever taken on these pages, rolled-back ones included
    std::int32_t known = 0;    // leading slots whose tokens are known
    std::int32_t computed = 0;
    std::int32_t published = 0;  // leading pages that are in the prefix index
    std::int64_t length = 0;
    std::int64_t floor_length = 0;  // at the last compaction: rollback ends here
    std::int32_t floor_pages = 0;   // at the last compaction
    std::int32_t compactions = 0;
    Chain chain;
    std::uint32_t next_free = 0;  // index + 1, in the list of free records

    [[nodiscard]] bool busy() const noexcept { return fence.generation != 0; }
  };
  // What an open fence stands for.
  struct Operation {
    SequenceId sequence;  // may be gone
    FenceId host_fence;   // over the host pages of a swap; generation 0 = none
  };

  PageManager(const PageManagerOptions& options, PagePool pool, BlockTables tables);

  [[nodiscard]] const Sequence* find(SequenceId id) const noexcept;
  [[nodiscard]] Sequence* find(SequenceId id) noexcept;
  // The sequence when it may be changed; else stale_id or busy (also when swapped).
  Status usable(SequenceId id, Sequence*& sequence) noexcept;
  [[nodiscard]] SequenceId take_record() noexcept;
  void return_record(SequenceId id) noexcept;
  [[nodiscard]] PageId* row(SequenceId id) noexcept { return tables_.row(id.index); }
  [[nodiscard]] const PageId* row(SequenceId id) const noexcept { return tables_.row(id.index); }
  [[nodiscard]] TokenId* tokens(SequenceId id, std::int64_t slot) noexcept;

  [[nodiscard]] PageId allocate() noexcept;
  void drop_reference(PageId page) noexcept;
  void withdraw(PageId page) noexcept;   // from the index only; the pool is told by the caller
  void unpublish(PageId page) noexcept;  // no-op when it is not published
  void drop_tail(SequenceId id, Sequence& s, std::int32_t pages) noexcept;

  [[nodiscard]] Chain chain(const ExtraKey& key) const noexcept;
  std::int32_t match(std::span<const TokenId> tokens, const Chain& chain,
                     PageId* pages) const noexcept;
  void publish_pages(SequenceId id, Sequence& s) noexcept;
  void step_back(SequenceId id, Sequence& s, std::int32_t published) noexcept;

  // A fence over the sequence's pages, with room for `more` guards; out_of_fences.
  Result<FenceId> open_fence(SequenceId id, const Sequence& s, std::int32_t more) noexcept;
  void guard_host_pages(SequenceId id, const Sequence& s, FenceId fence) noexcept;
  // No other table holds the page and no other fence guards it: its rows may be replaced.
  [[nodiscard]] bool rewritable(const Sequence& s, PageId page) const noexcept;
  Status check_plan(SequenceId id, const Sequence& s, const CompactionTicket& ticket,
                    const CompactionPlan& plan, std::span<const std::int32_t> page_kept) const;
  void replace_shared_pages(SequenceId id, Sequence& s, FenceId fence,
                            std::vector<PageCopy>& copies);
  void withdraw_rewritten(SequenceId id, const Sequence& s, const CompactionPlan& plan,
                          std::span<const std::int32_t> page_kept,
                          std::int32_t rows_per_page) noexcept;

  [[nodiscard]] Status check_sequence(SequenceId id, const Sequence& s) const;
  [[nodiscard]] Status check_pool(const PagePool& pool,
                                  const std::vector<std::uint32_t>& tables) const;
  [[nodiscard]] Status check_index() const;

  PageManagerOptions options_;
  PagePool pool_;
  std::optional<PagePool> host_pool_;
  std::optional<PrefixIndex> index_;  // with prefix_caching
  BlockTables tables_;                // host pages while swapped
  // [sequence, slot] tokens of the slots past the published pages, where the index keeps them.
  detail::LazyArray<TokenId> tokens_;
  std::vector<Sequence> sequences_;
  std::vector<Operation> operations_;  // [fence]
  std::unique_ptr<KvEventRing> events_;
  std::int64_t live_ = 0;
  std::int64_t evicted_pages_ = 0;
  std::int64_t copied_pages_ = 0;
  std::uint32_t free_record_ = 0;  // index + 1
  std::int32_t page_shift_ = 0;    // log2(page_size)
};

}  // namespace growpage

#include "growpage/detail/page_manager.hpp"
#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/page_manager.ipp"
#endif
