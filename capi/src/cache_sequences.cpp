// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "cache.hpp"
#include "convert.hpp"
#include "growpage/cache/batch_tables.hpp"
#include "layouts.hpp"
#include "structs.hpp"

using namespace growpage;
using namespace growpage::capi;

namespace {

/// Runs `f(cache, id)` on a sequence that the caller may change.
template <class F>
growpage_status change(growpage_cache* cache, uint64_t sequence, F&& f) noexcept {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    if (c.foreign(sequence)) [[unlikely]] {
      return c.not_own(sequence);
    }
    return f(c, SequenceId::from_bits(sequence));
  });
}

/// In a function of its own, so that the calls that never need it stay short.
[[gnu::cold, gnu::noinline]] Status null_argument(const char* name) {
  return Status::invalid(name, "null", "a non-null pointer");
}

// The appends hand a Status on where it was made: a decode step calls nothing more often.
Status append(Cache& c, SequenceId id, std::int64_t count, const TokenId* tokens,
              growpage_page_copy& copy) {
  c.copies.clear();
  Status s = c.manager->append(id, count, tokens, c.copies);
  if (s.ok()) {  // only the page that holds both old rows and new ones is ever copied
    copy = c.copies.empty() ? growpage_page_copy{-1, -1}
                            : *twin<const growpage_page_copy>(c.copies.data());
  }
  return s;
}

/// A token for each sequence until one is refused; `done` counts those before it. Not inlined: the
/// loop's variables would share the registers with all that the call checks first.
[[gnu::noinline]] Status append_each(Cache& c, std::span<const std::uint64_t> sequences,
                                     const TokenId* tokens, std::size_t& done) {
  PageManager& manager = *c.manager;
  const bool shared = c.schedulers != 0;
  const std::size_t step = tokens != nullptr ? 1 : 0;
  const std::uint64_t* next = sequences.data();
  const std::uint64_t* const end = next + sequences.size();
  const auto stop = [&](Status s) {
    done = static_cast<std::size_t>(next - sequences.data());
    return s;
  };
  for (; next != end; ++next, tokens += step) {
    if (shared && !c.owns(*next)) [[unlikely]] {
      return stop(c.not_own(*next));
    }
    Status s = manager.append(SequenceId::from_bits(*next), 1, tokens, c.copies);
    if (!s.ok()) [[unlikely]] {
      return stop(std::move(s));
    }
  }
  return stop({});
}

Status read_batch(const uint64_t* sequences, size_t batch, std::span<const SequenceId>& out) {
  Status s;
  if (!require_array(s, "sequences", sequences, batch)) return s;
  out = {twin<const SequenceId>(sequences), batch};
  return {};
}

}  // namespace

extern "C" {

growpage_status growpage_cache_admit(growpage_cache* cache, const int32_t* tokens, size_t count,
                                     const growpage_key* key, uint64_t* sequence,
                                     int64_t* matched) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s;
    ExtraKey extra;
    if (!require_array(s, "tokens", tokens, count) ||
        !growpage::detail::require_not_null(s, "sequence", sequence)) {
      return s;
    }
    if (s = read_key(key, extra); !s.ok()) return s;
    const Result<PageManager::Admission> admission = c.manager->admit({tokens, count}, extra);
    if (!admission.ok()) return admission.status();
    c.remember(admission->sequence);
    *sequence = admission->sequence.bits();
    if (matched != nullptr) *matched = admission->matched;
    return {};
  });
}

growpage_status growpage_cache_match_length(const growpage_cache* cache, const int32_t* tokens,
                                            size_t count, const growpage_key* key,
                                            int64_t* matched) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s;
    ExtraKey extra;
    if (!require_array(s, "tokens", tokens, count) ||
        !growpage::detail::require_not_null(s, "matched", matched)) {
      return s;
    }
    if (s = read_key(key, extra); !s.ok()) return s;
    *matched = c.manager->match_length({tokens, count}, extra);
    return {};
  });
}

growpage_status growpage_cache_grow(growpage_cache* cache, uint64_t sequence) {
  return change(cache, sequence, [](Cache& c, SequenceId id) { return c.manager->grow(id); });
}

growpage_status growpage_cache_reserve(growpage_cache* cache, uint64_t sequence, int64_t slots) {
  return change(cache, sequence,
                [=](Cache& c, SequenceId id) { return c.manager->reserve(id, slots); });
}

growpage_status growpage_cache_append(growpage_cache* cache, uint64_t sequence, int64_t count,
                                      const int32_t* tokens, growpage_page_copy* copy) {
  return change(cache, sequence, [=](Cache& c, SequenceId id) {
    return copy != nullptr ? append(c, id, count, tokens, *copy) : null_argument("copy");
  });
}

growpage_status growpage_cache_append_batch(growpage_cache* cache, const uint64_t* sequences,
                                            const int32_t* tokens, size_t batch,
                                            growpage_page_copy* copies, size_t* copy_count,
                                            size_t* done) {
  return with<Cache>(cache, [=](Cache& c) -> Status {
    Status s;
    if (!require_array(s, "sequences", sequences, batch) ||
        !require_array(s, "copies", copies, batch) ||
        !growpage::detail::require_not_null(s, "copy_count", copy_count) ||
        !growpage::detail::require_not_null(s, "done", done)) {
      return s;
    }
    c.copies.clear();
    s = append_each(c, {sequences, batch}, tokens, *done);
    *copy_count = c.copies.size();  // at most one a sequence
    std::copy_n(twin<const growpage_page_copy>(c.copies.data()), c.copies.size(), copies);
    return s;
  });
}

growpage_status growpage_cache_mark_computed(growpage_cache* cache, uint64_t sequence,
                                             int32_t slots) {
  return change(cache, sequence,
                [=](Cache& c, SequenceId id) { return c.manager->mark_computed(id, slots); });
}

growpage_status growpage_cache_fork(growpage_cache* cache, uint64_t sequence, uint64_t* fork) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s;
    if (!growpage::detail::require_not_null(s, "fork", fork)) return s;
    const Result<SequenceId> made = c.manager->fork(SequenceId::from_bits(sequence));
    if (!made.ok()) return made.status();
    c.remember(*made);
    *fork = made->bits();
    return {};
  });
}

growpage_status growpage_cache_truncate(growpage_cache* cache, uint64_t sequence, int64_t length) {
  return change(cache, sequence,
                [=](Cache& c, SequenceId id) { return c.manager->truncate(id, length); });
}

growpage_status growpage_cache_release(growpage_cache* cache, uint64_t sequence) {
  return change(cache, sequence, [](Cache& c, SequenceId id) { return c.manager->release(id); });
}

growpage_status growpage_cache_get_sequence(const growpage_cache* cache, uint64_t sequence,
                                            growpage_sequence* view) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    if (Status s = check_output("growpage_sequence", view); !s.ok()) return s;
    const SequenceId id = SequenceId::from_bits(sequence);
    const Result<SequenceView> found = c.manager->view(id);
    if (!found.ok()) return found.status();
    growpage_sequence out{};
    out.struct_size = sizeof out;
    out.pages = twin<const int32_t>(found->pages.data());
    out.page_count = found->pages.size();
    out.length = found->length;
    out.slots = found->slots;
    out.computed = found->computed;
    out.compactions = found->compactions;
    out.busy = found->busy ? 1 : 0;
    out.swapped = found->swapped ? 1 : 0;
    out.private_pages = c.manager->private_pages(id);
    write_struct(view, out);
    return {};
  });
}

growpage_status growpage_cache_physical_slot(const growpage_cache* cache, uint64_t sequence,
                                             int32_t slot, int64_t* physical) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s;
    if (!growpage::detail::require_not_null(s, "physical", physical)) return s;
    const SequenceId id = SequenceId::from_bits(sequence);
    const Result<SequenceView> view = c.manager->view(id);
    if (!view.ok()) return view.status();
    if (view->swapped) return StatusCode::busy;
    const auto slots =
        static_cast<std::int64_t>(view->pages.size()) * c.manager->options().page_size;
    if (!growpage::detail::require_range(s, "slot", slot, 0, slots - 1)) return s;
    *physical = c.manager->physical_slot(id, slot);
    return {};
  });
}

growpage_status growpage_cache_padded_tables(const growpage_cache* cache, const uint64_t* sequences,
                                             size_t batch, int64_t* stride, int32_t* block_table,
                                             size_t size, int32_t pad, int32_t* cache_seqlens) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s;
    std::span<const SequenceId> ids;
    if (s = read_batch(sequences, batch, ids); !s.ok()) return s;
    if (!growpage::detail::require_not_null(s, "stride", stride)) return s;
    if (block_table == nullptr) {
      const Result<std::int64_t> smallest = padded_stride(*c.manager, ids);
      if (!smallest.ok()) return smallest.status();
      *stride = *smallest;
      return {};
    }
    PaddedTables out;
    out.block_table = {block_table, size};
    out.stride = *stride;
    out.pad = pad;
    if (cache_seqlens != nullptr) out.cache_seqlens = {cache_seqlens, batch};
    return fill_padded_tables(*c.manager, ids, out);
  });
}

growpage_status growpage_cache_compressed_tables(const growpage_cache* cache,
                                                 const uint64_t* sequences, size_t batch,
                                                 int32_t* indptr, int32_t* indices, size_t size,
                                                 size_t* count, int32_t* last_page_len) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s;
    std::span<const SequenceId> ids;
    if (s = read_batch(sequences, batch, ids); !s.ok()) return s;
    if (!growpage::detail::require_not_null(s, "count", count)) return s;
    const Result<std::int64_t> needed = compressed_size(*c.manager, ids);
    if (!needed.ok()) return needed.status();
    if (indices != nullptr) {
      if (!growpage::detail::require_not_null(s, "indptr", indptr) ||
          !require_array(s, "last_page_len", last_page_len, batch)) {
        return s;
      }
      s = fill_compressed_tables(*c.manager, ids,
                                 {{indptr, batch + 1}, {indices, size}, {last_page_len, batch}});
      if (!s.ok()) return s;
    }
    *count = static_cast<std::size_t>(*needed);
    return {};
  });
}

growpage_status growpage_cache_token_tables(const growpage_cache* cache, const uint64_t* sequences,
                                            size_t batch, const int32_t* counts,
                                            int64_t* slot_mapping, int64_t* positions, size_t size,
                                            size_t* total) {
  return with<Cache>(cache, [&](Cache& c) -> Status {
    Status s;
    std::span<const SequenceId> ids;
    if (s = read_batch(sequences, batch, ids); !s.ok()) return s;
    if (!require_array(s, "counts", counts, batch)) return s;
    // An empty span means "not wanted", so a wanted table of no room is refused here.
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < batch; ++i) sum += std::max(counts[i], 0);
    const bool wanted = slot_mapping != nullptr || positions != nullptr;
    if (wanted && !growpage::detail::require_range(s, "size", static_cast<std::int64_t>(size), sum,
                                                   INT64_MAX)) {
      return s;
    }
    TokenTables out;
    if (slot_mapping != nullptr) out.slot_mapping = {slot_mapping, size};
    if (positions != nullptr) out.positions = {positions, size};
    if (s = fill_token_tables(*c.manager, ids, {counts, batch}, out); !s.ok()) return s;
    if (total != nullptr) *total = static_cast<std::size_t>(sum);
    return {};
  });
}
}
