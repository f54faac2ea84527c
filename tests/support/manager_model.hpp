// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <utility>
#include <vector>

#include "support/sequence_model.hpp"

namespace growpage::test {

/// A second PageManager, slow and plain, that runs beside the real one: every operation is done on
/// both, their answers and states are compared, and KV memory is simulated with one number per row
/// that stands for the row's whole history (key and every token before it). Device work behind a
/// fence is done as late as allowed, when the fence completes. Throws std::runtime_error at the
/// first difference.
class ManagerModel : public SequenceModel {
 public:
  using SequenceModel::SequenceModel;

  enum class Kind { guard, compaction, swap_out, swap_in };
  struct Work {
    int serial = 0;
    Kind kind = Kind::guard;
    FenceId fence;
    SequenceId sequence;
    CompactionTicket ticket;
    bool applied = false;
    std::vector<int> guards, host_guards;                    // in the order they were guarded
    std::vector<PageTransfer> transfers;                     // run at the end
    std::vector<std::pair<std::size_t, std::size_t>> moves;  // device rows, from → to, at the end
    std::vector<std::pair<std::size_t, Row>> snapshot;  // device rows that must stay what they are
  };

  [[nodiscard]] std::list<Work>& works() { return works_; }

  void begin_compaction(Sequence& s, int victims, CompactionStrategy strategy, SharedPages shared) {
    copies_.clear();
    const auto got = manager_.begin_compaction(s.id, victims, strategy, shared, copies_);
    if (blocked_call(s, got.status())) return;
    const std::size_t pages = s.table.size();
    if (s.rows.size() != pages * width() || s.computed != static_cast<int>(s.rows.size())) {
      return expect(got.code() == StatusCode::invalid_argument, "begin_compaction: not full");
    }
    std::size_t own = 0;
    for (const int page : s.table) own += is_private(s, page) ? 1 : 0;
    const bool copy = shared == SharedPages::copy;
    if ((copy ? pages : own) < static_cast<std::size_t>(victims) + 1) {
      return expect(got.code() == StatusCode::at_capacity, "begin_compaction: at_capacity");
    }
    const std::size_t replaced = copy ? pages - own : 0;
    if (replaced > allocatable()) {
      return expect(got.code() == StatusCode::out_of_pages, "begin_compaction: out_of_pages");
    }
    if (!fence_to_be_had(pages + replaced)) {
      return expect(got.code() == StatusCode::out_of_fences, "begin_compaction: out_of_fences");
    }
    expect(got.ok(), "begin_compaction");
    Work& work = add(Kind::compaction, got->fence, s);
    work.ticket = *got;
    std::vector<PageCopy> expected;
    const SequenceView view = manager_.view(s.id).value();
    for (std::size_t k = 0; k < pages && replaced > 0; ++k) {
      const int source = s.table[k];
      if (is_private(s, source)) continue;
      s.table[k] = view.pages[k].value;
      take(s.table[k]);
      expected.push_back({PageId{source}, PageId{s.table[k]}});
      guard_page(work, source);
      drop(source);
    }
    run_copies(expected);
    for (const int page : s.table) guard_page(work, page);
    s.busy = s.rewriting = true;
    s.fence = work.serial;
  }

  /// Keeps a random choice of rows: `random(n)` is below n.
  template <class Random>
  void apply_compaction(Work& work, Random&& random) {
    Sequence* s = find(work.sequence);
    const auto victims = static_cast<std::size_t>(work.ticket.victims);
    if (s == nullptr) {
      return expect(manager_.apply_compaction(work.ticket, {}, {}, 0) == StatusCode::stale_id,
                    "apply_compaction: gone");
    }
    const std::size_t pages = s->table.size();
    std::vector<std::size_t> own;  // private logical pages
    std::vector<std::uint8_t> marks(pages);
    const int protected_slots = static_cast<int>(random(40));
    expect(manager_.page_marks(s->id, protected_slots, marks).ok(), "page_marks");
    for (std::size_t k = 0; k < pages; ++k) {
      const bool is_own = is_private(*s, s->table[k]);
      if (is_own) own.push_back(k);
      const int mark = (is_own ? page_private : 0) |
                       (static_cast<int>(k * width()) < protected_slots ? page_protected : 0);
      expect(marks[k] == mark, "page_marks: as expected");
    }
    CompactionPlan plan;
    plan.strategy = work.ticket.strategy;
    plan.victims = work.ticket.victims;
    std::vector<std::size_t> chosen;
    const bool in_order = plan.strategy == CompactionStrategy::in_order;
    while (chosen.size() < victims) {
      const std::size_t k =
          in_order ? own[own.size() - 1 - chosen.size()] : own[random(own.size())];
      if (std::find(chosen.begin(), chosen.end(), k) == chosen.end()) chosen.push_back(k);
    }
    std::sort(chosen.begin(), chosen.end());
    for (std::size_t v = 0; v < victims; ++v) plan.victim[v] = static_cast<int>(chosen[v]);
    const auto is_victim = [&](std::size_t k) {
      return std::find(chosen.begin(), chosen.end(), k) != chosen.end();
    };

    std::vector<bool> kept(s->rows.size(), true);
    std::vector<std::int32_t> page_kept(pages, options_.page_size);
    // Mostly from few pages, so that others keep all their rows.
    const std::size_t from = random(own.size());
    for (std::size_t evicted = 0; evicted < victims * width();) {
      const std::size_t k = own[(from + random(victims + 1)) % own.size()];
      const std::size_t slot = k * width() + random(width());
      if (!kept[slot]) continue;
      kept[slot] = false;
      --page_kept[k];
      ++evicted;
    }
    const bool tell = random(4) != 0;
    expect(manager_
               .apply_compaction(work.ticket, plan, tell ? page_kept : std::vector<std::int32_t>{},
                                 options_.page_size)
               .ok(),
           "apply_compaction");
    work.applied = true;

    std::vector<std::size_t> sources, targets;
    for (const std::size_t k : own) {
      for (std::size_t i = k * width(); i < (k + 1) * width(); ++i) {
        if (in_order) {
          if (kept[i]) sources.push_back(i);
          targets.push_back(i);
        } else {
          if (kept[i] && is_victim(k)) sources.push_back(i);
          if (!kept[i] && !is_victim(k)) targets.push_back(i);
        }
      }
    }
    std::vector<Row> after = s->rows;
    for (std::size_t m = 0; m < sources.size(); ++m) {
      after[targets[m]] = s->rows[sources[m]];
      work.moves.emplace_back(place(*s, sources[m]), place(*s, targets[m]));
    }
    bool shifted = false;
    for (const std::size_t k : own) {
      if (tell && !shifted && page_kept[k] == options_.page_size && !is_victim(k)) continue;
      at(s->table[k]).published = false;
      shifted = in_order;
    }
    std::vector<Row> rows;
    std::vector<int> table;
    for (std::size_t k = 0; k < pages; ++k) {
      if (is_victim(k)) continue;
      table.push_back(s->table[k]);
      const auto first = after.begin() + static_cast<std::ptrdiff_t>(k * width());
      rows.insert(rows.end(), first, first + static_cast<std::ptrdiff_t>(width()));
    }
    table.push_back(s->table[chosen[0]]);
    if (victims == 2) drop(s->table[chosen[1]]);
    s->rows = rows;
    s->table = table;
    s->computed = s->written = static_cast<int>(rows.size());
    s->floor_length = s->tokens.size();
    s->floor_pages = static_cast<int>(table.size());
    ++s->compactions;
    s->rewriting = s->publishes = false;
  }

  void swap_out(Sequence& s) {
    transfers_.clear();
    const auto got = manager_.swap_out(s.id, transfers_);
    if (blocked_call(s, got.status())) return;
    const auto free = std::count(host_refs_.begin(), host_refs_.end(), 0);
    if (static_cast<std::ptrdiff_t>(s.table.size()) > free) {
      return expect(got.code() == StatusCode::out_of_host_pages, "swap_out: out_of_host_pages");
    }
    if (!fence_to_be_had(s.table.size())) {
      return expect(got.code() == StatusCode::out_of_fences, "swap_out: out_of_fences");
    }
    expect(got.ok(), "swap_out");
    Work& work = add(Kind::swap_out, *got, s);
    work.transfers = transfers_;
    const SequenceView view = manager_.view(s.id).value();
    const std::size_t used = (s.rows.size() + width() - 1) / width();
    expect(transfers_.size() == used, "swap_out: pages with slots");
    for (std::size_t k = 0; k < s.table.size(); ++k) {
      const int host = view.pages[k].value;
      if (k < used) {
        expect(transfers_[k].device.value == s.table[k] && transfers_[k].host.value == host,
               "swap_out: transfers");
      }
      expect(host_refs_[static_cast<std::size_t>(host)] == 0, "swap_out: a host page in use");
      host_refs_[static_cast<std::size_t>(host)] = 2;  // the table and the transfer
      work.host_guards.push_back(host);
      guard_page(work, s.table[k]);
    }
    for (std::size_t k = s.table.size(); k-- > 0;) drop(s.table[k]);
    s.table = work.host_guards;
    s.busy = s.swapped = true;
    s.fence = work.serial;
  }

  void swap_in(Sequence& s) {
    transfers_.clear();
    const auto got = manager_.swap_in(s.id, transfers_);
    if (s.busy) return expect(got.code() == StatusCode::busy, "swap_in: busy");
    if (!s.swapped) return expect(got.code() == StatusCode::protocol_error, "swap_in: not out");
    if (s.table.size() > allocatable()) {
      return expect(got.code() == StatusCode::out_of_pages, "swap_in: out_of_pages");
    }
    if (!fence_to_be_had(s.table.size())) {
      return expect(got.code() == StatusCode::out_of_fences, "swap_in: out_of_fences");
    }
    expect(got.ok(), "swap_in");
    Work& work = add(Kind::swap_in, *got, s);
    work.transfers = transfers_;
    work.host_guards = std::exchange(s.table, {});  // freed with the fence
    take_new_pages(s);
    for (std::size_t k = 0; k < transfers_.size(); ++k) {
      expect(transfers_[k].device.value == s.table[k] &&
                 transfers_[k].host.value == work.host_guards[k],
             "swap_in: transfers");
    }
    for (const int page : s.table) guard_page(work, page);
    s.written = static_cast<int>(s.rows.size());
    s.busy = true;
    s.swapped = false;
    s.fence = work.serial;
  }

  void guard(Sequence& s) {
    const auto got = manager_.guard(s.id);
    if (blocked_call(s, got.status())) return;
    if (!fence_to_be_had(s.table.size())) {
      return expect(got.code() == StatusCode::out_of_fences, "guard: out_of_fences");
    }
    expect(got.ok(), "guard");
    Work& work = add(Kind::guard, *got, s);
    for (const int page : s.table) guard_page(work, page);
    for (int i = 0; i < s.computed; ++i) {
      const auto n = static_cast<std::size_t>(i);
      work.snapshot.emplace_back(place(s, n), s.rows[n]);
    }
  }

  void cancel(Work& work) {
    const Status got = manager_.cancel_compaction(work.ticket);
    if (find(work.sequence) == nullptr) return expect(got == StatusCode::stale_id, "cancel: gone");
    if (work.applied) return expect(got == StatusCode::protocol_error, "cancel: applied");
    expect(got.ok(), "cancel");
    finish(work);
  }

  /// The device work behind the fence runs now, at the last moment, then the fence completes.
  void complete(Work& work) {
    Sequence* s = find(work.sequence);
    std::vector<Row> read;
    for (const auto& [from, to] : work.moves) read.push_back(device_[from]);
    for (std::size_t m = 0; m < read.size(); ++m) device_[work.moves[m].second] = read[m];
    for (const auto& [place, value] : work.snapshot) {
      expect(device_[place] == value, "a guarded row has changed");
    }
    for (const PageTransfer& t : work.transfers) {
      for (std::size_t r = 0; r < width(); ++r) {
        Row& host = host_[static_cast<std::size_t>(t.host.value) * width() + r];
        (work.kind == Kind::swap_out ? host : row(t.device.value, r)) =
            work.kind == Kind::swap_out ? row(t.device.value, r) : host;
      }
    }
    if (work.kind == Kind::compaction && !work.applied && s == nullptr) {
      // Released between begin and apply: kernels may have moved rows in its private pages.
      for (const int page : work.guards) {
        if (at(page).refs > 0 || at(page).pins > 1 || at(page).published) continue;
        for (std::size_t r = 0; r < width(); ++r) row(page, r) = 0xbad;
      }
    }
    expect(manager_.complete_fence(work.fence).ok(), "complete_fence");
    finish(work);
  }

  void clear_prefix_cache() {
    manager_.clear_prefix_cache();
    for (Page& page : pages_) page.published = false;
    for (Sequence& s : sequences_) s.publishes = false;
    lru_.clear();
  }

  void check_host() {
    const auto free = std::count(host_refs_.begin(), host_refs_.end(), 0);
    expect(manager_.host_counts().free == free, "host pages: free");
  }

 private:
  [[nodiscard]] std::size_t place(const Sequence& s, std::size_t slot) const {
    return static_cast<std::size_t>(s.table[slot / width()]) * width() + slot % width();
  }
  [[nodiscard]] bool fence_to_be_had(std::size_t guards) const {
    std::size_t pins = guards;
    for (const Page& page : pages_) pins += static_cast<std::size_t>(page.pins);
    return pins <= 2 * pages_.size() &&
           works_.size() < static_cast<std::size_t>(options_.max_fences);
  }
  Work& add(Kind kind, FenceId fence, const Sequence& s) {
    Work& work = works_.emplace_back();
    work.serial = ++next_work_;
    work.kind = kind;
    work.fence = fence;
    work.sequence = s.id;
    return work;
  }
  void guard_page(Work& work, int page) {
    work.guards.push_back(page);
    ++at(page).pins;
  }
  void finish(Work& work) {
    expect(manager_.complete_fence(work.fence) == StatusCode::stale_id, "complete_fence twice");
    for (std::size_t g = work.guards.size(); g-- > 0;) {
      --at(work.guards[g]).pins;
      settle(work.guards[g]);
    }
    for (const int host : work.host_guards) --host_refs_[static_cast<std::size_t>(host)];
    if (Sequence* s = find(work.sequence); s != nullptr && s->fence == work.serial) {
      s->busy = s->rewriting = false;
      s->fence = 0;
    }
    works_.remove_if([&](const Work& other) { return &other == &work; });
  }

  std::list<Work> works_;
  int next_work_ = 0;
};

}  // namespace growpage::test
