// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "growpage/cache/page_manager.hpp"

namespace growpage::test {

struct Key {
  std::string salt, lora, modality;
  std::int64_t modality_from = 0;
  [[nodiscard]] ExtraKey view() const { return {salt, lora, modality, modality_from}; }
};

/// The part of ManagerModel (manager_model.hpp) that concerns sequences and pages; what runs behind
/// fences is in the derived class.
class SequenceModel {
 public:
  using Row = std::uint64_t;
  static constexpr TokenId unknown = -1;

  struct Sequence {
    SequenceId id;
    std::size_t key = 0;
    std::vector<Row> history{0};  // [length + 1], of the text before each position
    std::vector<TokenId> tokens;  // [length]
    std::vector<Row> rows;        // [slots] what its K/V must be
    std::vector<int> table;       // [pages]
    int computed = 0, written = 0, known = 0, compactions = 0;
    int floor_pages = 0;
    std::size_t floor_length = 0;
    bool busy = false, swapped = false, rewriting = false, publishes = true;
    int fence = 0;  // serial number of its work
  };

  SequenceModel(const PageManagerOptions& options, std::vector<Key> keys)
      : options_(options),
        keys_(std::move(keys)),
        manager_(PageManager::create(options).value()),
        pages_(static_cast<std::size_t>(options.pages)),
        device_(pages_.size() * width()),
        host_refs_(static_cast<std::size_t>(options.host_pages)),
        host_(host_refs_.size() * width()) {
    copies_.reserve(256);
    transfers_.reserve(256);
  }

  [[nodiscard]] PageManager& manager() { return manager_; }
  [[nodiscard]] std::vector<Sequence>& sequences() { return sequences_; }
  [[nodiscard]] std::int64_t hits() const { return hits_; }

  // -- Operations on both -------------------------------------------------------------------------

  void admit(const std::vector<TokenId>& prompt, std::size_t key) {
    const std::int64_t promised = manager_.match_length(prompt, keys_[key].view());
    const auto got = manager_.admit(prompt, keys_[key].view());
    if (static_cast<std::int32_t>(sequences_.size()) == options_.max_sequences) {
      return expect(got.code() == StatusCode::out_of_sequences, "admit: out_of_sequences");
    }
    expect(got.ok() && got->matched == promised, "admit: as match_length says");
    Sequence s;
    s.id = got->sequence;
    s.key = key;
    s.publishes = options_.prefix_caching;
    const auto matched = static_cast<std::size_t>(got->matched);
    expect(matched % width() == 0 && (matched == 0 || matched < prompt.size()), "admit: matched");
    s.history[0] = mix(0xabcdef, key_root(key));
    extend(s, prompt.data(), matched, true);
    // Every page taken must be one the model would take, and it must not have stopped early.
    std::uint64_t parent = key_root(key);
    const SequenceView view = manager_.view(s.id).value();
    for (std::size_t k = 0; k < matched / width(); ++k) {
      parent = join(parent, key, k);
      const int page = view.pages[k].value;
      expect(matches(at(page), parent, prompt, k), "admit: a page that holds the prefix");
      expect(!blocked(page), "admit: not a page under compaction");
      s.table.push_back(page);
      parent = at(page).id;
    }
    const std::size_t next = matched / width();
    if ((next + 1) * width() < prompt.size()) {
      parent = join(parent, key, next);
      bool found = false, hidden = false;
      for (std::size_t p = 0; p < pages_.size(); ++p) {
        if (!matches(pages_[p], parent, prompt, next)) continue;
        found = true;
        hidden = hidden || blocked(static_cast<int>(p));
      }
      expect(!found || hidden, "admit: the longest prefix");
    }
    for (const int page : s.table) {
      lru_.remove(page);
      ++at(page).refs;
    }
    hits_ += static_cast<std::int64_t>(matched);
    s.computed = static_cast<int>(matched);
    sequences_.push_back(std::move(s));
  }

  void grow(Sequence& s) {
    const Status got = manager_.grow(s.id);
    if (blocked_call(s, got)) return;
    if (static_cast<std::int32_t>(s.table.size()) == options_.max_pages_per_sequence) {
      return expect(got == StatusCode::invalid_argument, "grow: table full");
    }
    if (allocatable() == 0) return expect(got == StatusCode::out_of_pages, "grow: out_of_pages");
    expect(got.ok(), "grow");
    take_new_pages(s);
  }

  void reserve(Sequence& s, std::size_t slots) {
    const Status got = manager_.reserve(s.id, static_cast<std::int64_t>(slots));
    if (blocked_call(s, got)) return;
    const std::size_t needed = (s.rows.size() + slots + width() - 1) / width();
    if (needed > static_cast<std::size_t>(options_.max_pages_per_sequence)) {
      return expect(got == StatusCode::invalid_argument, "reserve: too many");
    }
    if (needed > s.table.size() + allocatable()) {
      return expect(got == StatusCode::out_of_pages, "reserve: out_of_pages");
    }
    expect(got.ok(), "reserve");
    take_new_pages(s);
    expect(s.table.size() >= needed, "reserve: enough");
  }

  void append(Sequence& s, const std::vector<TokenId>& tokens, bool known) {
    copies_.clear();
    const Status got = manager_.append(s.id, static_cast<std::int64_t>(tokens.size()),
                                       known ? tokens.data() : nullptr, copies_);
    if (blocked_call(s, got)) return;
    const std::size_t slots = s.rows.size();
    if (slots + tokens.size() > s.table.size() * width()) {
      return expect(got == StatusCode::at_capacity && copies_.empty(), "append: at_capacity");
    }
    if (tokens.empty()) return expect(got.ok(), "append: nothing");
    const bool rolled_back = s.written > static_cast<int>(slots);
    const auto shared = [&](int page) {
      return at(page).refs > 1 || (rolled_back && at(page).pins > 0);
    };
    const std::size_t first = slots / width(), last = (slots + tokens.size() - 1) / width();
    std::size_t needed = 0;
    for (std::size_t k = first; k <= last; ++k) needed += shared(s.table[k]) ? 1 : 0;
    if (needed > allocatable()) {
      return expect(got == StatusCode::out_of_pages && copies_.empty(), "append: out_of_pages");
    }
    expect(got.ok(), "append");
    std::vector<PageCopy> expected;
    const SequenceView view = manager_.view(s.id).value();
    for (std::size_t k = first; k <= last; ++k) {
      const int page = s.table[k];
      if (!shared(page)) {
        at(page).published = false;
        continue;
      }
      const int fresh = view.pages[k].value;
      take(fresh);
      if (k * width() < slots) expected.push_back({PageId{page}, PageId{fresh}});
      s.table[k] = fresh;
      drop(page);
    }
    run_copies(expected);
    extend(s, tokens.data(), tokens.size(), known);
    s.written = std::max(s.written, static_cast<int>(s.rows.size()));
  }

  /// Writes the K/V of the slots up to `slots` and says so.
  void compute(Sequence& s, int slots) {
    if (!s.busy && !s.swapped) {
      for (int i = s.computed; i < slots; ++i) slot(s, i) = s.rows[static_cast<std::size_t>(i)];
    }
    const Status got = manager_.mark_computed(s.id, slots);
    if (blocked_call(s, got)) return;
    expect(got.ok(), "mark_computed");
    s.computed = std::max(s.computed, slots);
    publish(s);
  }

  void fork(Sequence& s) {
    const auto got = manager_.fork(s.id);
    if (blocked_call(s, got.status())) return;
    if (static_cast<std::int32_t>(sequences_.size()) == options_.max_sequences) {
      return expect(got.code() == StatusCode::out_of_sequences, "fork: out_of_sequences");
    }
    expect(got.ok(), "fork");
    Sequence copy = s;
    copy.id = *got;
    for (const int page : copy.table) ++at(page).refs;
    sequences_.push_back(std::move(copy));
  }

  void truncate(Sequence& s, std::size_t length) {
    const Status got = manager_.truncate(s.id, static_cast<std::int64_t>(length));
    if (blocked_call(s, got)) return;
    if (length < s.floor_length) {
      return expect(got == StatusCode::behind_compaction, "truncate: behind_compaction");
    }
    expect(got.ok(), "truncate");
    const std::size_t slots = s.rows.size() - (s.tokens.size() - length);
    s.tokens.resize(length);
    s.history.resize(length + 1);
    s.rows.resize(slots);
    s.computed = std::min(s.computed, static_cast<int>(slots));
    s.known = std::min(s.known, static_cast<int>(slots));
    const std::size_t keep =
        std::max((slots + width() - 1) / width(), static_cast<std::size_t>(s.floor_pages));
    while (s.table.size() > keep) {
      drop(s.table.back());
      s.table.pop_back();
    }
    s.written = std::min(s.written, static_cast<int>(s.table.size() * width()));
  }

  void release(std::size_t index) {
    Sequence& s = sequences_[index];
    expect(manager_.release(s.id).ok(), "release");
    expect(manager_.release(s.id) == StatusCode::stale_id, "release twice");
    if (s.swapped) {
      for (const int page : s.table) --host_refs_[static_cast<std::size_t>(page)];
    } else {
      for (const int page : s.table) {
        if (s.rewriting && is_private(s, page)) at(page).published = false;
      }
      while (!s.table.empty()) {
        drop(s.table.back());
        s.table.pop_back();
      }
    }
    sequences_.erase(sequences_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  // -- Comparing ----------------------------------------------------------------------------------

  void check(bool invariants) {
    std::int64_t free = 0, cached = 0, referenced = 0, in_flight = 0;
    for (const Page& page : pages_) {
      ++(page.refs > 0 ? referenced : page.pins > 0 ? in_flight : page.published ? cached : free);
    }
    const PageCounts counts = manager_.counts();
    expect(counts.free == free && counts.cached == cached && counts.referenced == referenced &&
               counts.in_flight == in_flight,
           "counts");
    expect(manager_.live_sequences() == static_cast<std::int64_t>(sequences_.size()), "live");
    for (Sequence& s : sequences_) {
      const SequenceView view = manager_.view(s.id).value();
      expect(view.length == static_cast<std::int64_t>(s.tokens.size()), "view: length");
      expect(view.slots == static_cast<std::int32_t>(s.rows.size()), "view: slots");
      expect(view.computed == s.computed, "view: computed");
      expect(view.compactions == s.compactions, "view: compactions");
      expect(view.busy == s.busy && view.swapped == s.swapped, "view: state");
      expect(view.pages.size() == s.table.size(), "view: pages");
      for (std::size_t k = 0; k < s.table.size(); ++k) {
        expect(view.pages[k].value == s.table[k], "view: table");
      }
      if (s.busy || s.swapped) continue;
      for (int i = 0; i < s.computed; ++i) {
        expect(slot(s, i) == s.rows[static_cast<std::size_t>(i)], "a row that is not what it was");
      }
    }
    if (!invariants) return;
    const Status status = manager_.check_invariants();
    expect(status.ok(), status.message().c_str());
  }

  static void expect(bool good, const char* what) {
    if (!good) throw std::runtime_error(what);
  }

 protected:
  struct Page {
    int refs = 0, pins = 0;
    bool published = false;
    std::uint64_t id = 0, parent = 0;
    std::vector<TokenId> tokens;
  };

  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(options_.page_size); }
  [[nodiscard]] Page& at(int page) { return pages_[static_cast<std::size_t>(page)]; }
  [[nodiscard]] Row& row(int page, std::size_t r) {
    return device_[static_cast<std::size_t>(page) * width() + r];
  }
  [[nodiscard]] Row& slot(const Sequence& s, int i) {
    const auto n = static_cast<std::size_t>(i);
    return row(s.table[n / width()], n % width());
  }
  [[nodiscard]] static Row mix(Row a, Row b) {
    Row x = (a ^ (b + 0x9e3779b97f4a7c15ULL)) * 0xff51afd7ed558ccdULL;
    x = (x ^ (x >> 32)) * 0xc4ceb9fe1a85ec53ULL;
    return x ^ (x >> 29);
  }
  [[nodiscard]] Sequence* find(SequenceId id) {
    for (Sequence& s : sequences_) {
      if (s.id == id) return &s;
    }
    return nullptr;
  }

  // Identities of prefixes: roots by what they are made of, pages by a counter.
  [[nodiscard]] std::uint64_t named(const std::string& name) {
    return names_.try_emplace(name, (std::uint64_t{1} << 40) + names_.size()).first->second;
  }
  [[nodiscard]] std::uint64_t key_root(std::size_t key) {
    return named("salt:" + keys_[key].salt + "|lora:" + keys_[key].lora);
  }
  [[nodiscard]] std::uint64_t join(std::uint64_t parent, std::size_t key, std::size_t page) {
    const Key& k = keys_[key];
    if (k.modality.empty() || static_cast<std::size_t>(k.modality_from) / width() != page) {
      return parent;
    }
    return named("modality:" + k.modality + "|" + std::to_string(parent));
  }
  [[nodiscard]] bool matches(const Page& page, std::uint64_t parent,
                             const std::vector<TokenId>& text, std::size_t k) const {
    return page.published && page.parent == parent &&
           std::equal(page.tokens.begin(), page.tokens.end(),
                      text.begin() + static_cast<std::ptrdiff_t>(k * width()));
  }
  [[nodiscard]] bool blocked(int page) { return at(page).refs == 1 && at(page).pins > 0; }
  [[nodiscard]] bool is_private(const Sequence& s, int page) {
    return at(page).refs == 1 && at(page).pins == (s.rewriting ? 1 : 0);
  }

  bool blocked_call(const Sequence& s, const Status& got) {
    if (!s.busy && !s.swapped) return false;
    expect(got == StatusCode::busy, "busy");
    return true;
  }
  [[nodiscard]] std::size_t allocatable() {
    std::size_t count = 0;
    for (const Page& page : pages_) count += page.refs == 0 && page.pins == 0 ? 1 : 0;
    expect(manager_.allocatable() >= 0, "allocatable");
    return count;
  }
  /// The manager gave this page out: it must have been free, or the oldest cached one when none is.
  void take(int number) {
    Page& page = at(number);
    expect(page.refs == 0 && page.pins == 0, "a page in use was given out");
    if (page.published) {
      for (const Page& other : pages_) {
        expect(other.refs > 0 || other.pins > 0 || other.published, "evicted beside a free page");
      }
      expect(!lru_.empty() && lru_.front() == number, "evicted is the least recently used");
      lru_.pop_front();
      page.published = false;
    }
    page.refs = 1;
    for (std::size_t r = 0; r < width(); ++r) row(number, r) = 0xdead;  // nothing is left to read
  }
  void take_new_pages(Sequence& s) {
    const SequenceView view = manager_.view(s.id).value();
    for (std::size_t k = s.table.size(); k < view.pages.size(); ++k) {
      take(view.pages[k].value);
      s.table.push_back(view.pages[k].value);
    }
  }
  void settle(int number) {
    const Page& page = at(number);
    if (page.refs == 0 && page.pins == 0 && page.published) lru_.push_back(number);
  }
  void drop(int number) {
    --at(number).refs;
    settle(number);
  }
  void extend(Sequence& s, const TokenId* tokens, std::size_t count, bool known) {
    const Key& key = keys_[s.key];
    for (std::size_t i = 0; i < count; ++i) {
      Row h = mix(s.history.back(), static_cast<Row>(tokens[i]));
      h = mix(h, static_cast<Row>(s.compactions));
      if (!key.modality.empty() && s.tokens.size() == static_cast<std::size_t>(key.modality_from)) {
        for (const char c : key.modality) h = mix(h, static_cast<Row>(c));
      }
      s.tokens.push_back(tokens[i]);
      s.history.push_back(h);
      s.rows.push_back(h);
    }
    s.written = std::max(s.written, static_cast<int>(s.rows.size()));
    const int before = static_cast<int>(s.rows.size() - count);
    if (known && s.known == before) s.known = static_cast<int>(s.rows.size());
  }
  void publish(Sequence& s) {
    if (!s.publishes) return;
    std::uint64_t parent = key_root(s.key);
    const auto ready = static_cast<std::size_t>(std::min(s.computed, s.known)) / width();
    for (std::size_t k = 0; k < ready; ++k) {
      Page& page = at(s.table[k]);
      parent = join(parent, s.key, k);
      if (!page.published || page.parent != parent) {
        page.published = false;
        page.tokens.assign(s.tokens.begin() + static_cast<std::ptrdiff_t>(k * width()),
                           s.tokens.begin() + static_cast<std::ptrdiff_t>((k + 1) * width()));
        page.id = 0;
        for (const Page& other : pages_) {
          if (other.published && other.parent == parent && other.tokens == page.tokens) {
            page.id = other.id;
          }
        }
        if (page.id == 0) page.id = ++next_id_;
        page.parent = parent;
        page.published = true;
      }
      parent = page.id;
    }
  }
  void run_copies(const std::vector<PageCopy>& expected) {
    expect(copies_.size() == expected.size(), "copies: number");
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expect(copies_[i].source == expected[i].source && copies_[i].target == expected[i].target,
             "copies: pages");
      for (std::size_t r = 0; r < width(); ++r) {
        row(copies_[i].target.value, r) = row(copies_[i].source.value, r);
      }
    }
  }

  PageManagerOptions options_;
  std::vector<Key> keys_;
  PageManager manager_;
  std::vector<Sequence> sequences_;
  std::vector<Page> pages_;
  std::vector<Row> device_;     // [page, row]
  std::vector<int> host_refs_;  // [host page] holders and swaps in flight
  std::vector<Row> host_;       // [host page, row]
  std::list<int> lru_;          // oldest first
  std::map<std::string, std::uint64_t> names_;
  std::vector<PageCopy> copies_;
  std::vector<PageTransfer> transfers_;
  std::uint64_t next_id_ = 0;
  std::int64_t hits_ = 0;
};

}  // namespace growpage::test
