// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "growpage/cache/page_manager.hpp"
#include "support/catch.hpp"

namespace growpage::test {

/// `count` tokens `first`, `first` + 1, ….
inline std::vector<TokenId> text(std::size_t count, TokenId first = 0) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

inline std::vector<TokenId> operator+(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// An engine without a model: drives a PageManager with pages of 16 tokens, checks its invariants
/// after every call.
class Engine {
 public:
  explicit Engine(const PageManagerOptions& options) : m(PageManager::create(options).value()) {}
  explicit Engine(std::int64_t pages, std::int64_t host_pages = 0)
      : Engine([&] {
          PageManagerOptions options;
          options.pages = pages;
          options.page_size = 16;
          options.max_sequences = 16;
          options.max_pages_per_sequence = 64;
          options.host_pages = host_pages;
          options.event_capacity = 256;
          return options;
        }()) {}

  SequenceId admit(const std::vector<TokenId>& tokens, const ExtraKey& key = {},
                   std::int64_t matched = -1) {
    const auto admission = m.admit(tokens, key);
    REQUIRE(admission.ok());
    if (matched >= 0) CHECK(admission->matched == matched);
    check();
    return admission->sequence;
  }
  /// Appends `tokens`, growing as needed; their K/V is computed when `compute`.
  void append(SequenceId id, const std::vector<TokenId>& tokens, bool compute = true) {
    REQUIRE(m.reserve(id, static_cast<std::int64_t>(tokens.size())).ok());
    REQUIRE(m.append(id, static_cast<std::int64_t>(tokens.size()), tokens.data(), copies).ok());
    if (compute) REQUIRE(m.mark_computed(id, view(id).slots).ok());
    check();
  }
  /// Admission and prefill of a prompt, of which `matched` tokens must be cached (−1 = any).
  SequenceId prefill(const std::vector<TokenId>& tokens, const ExtraKey& key = {},
                     std::int64_t matched = -1) {
    const SequenceId id = admit(tokens, key, matched);
    const auto from = static_cast<std::ptrdiff_t>(view(id).length);
    append(id, {tokens.begin() + from, tokens.end()});
    return id;
  }
  void release(SequenceId id) {
    REQUIRE(m.release(id).ok());
    check();
  }
  /// Prefill and release.
  void run(const std::vector<TokenId>& tokens, const ExtraKey& key = {},
           std::int64_t matched = -1) {
    release(prefill(tokens, key, matched));
  }
  /// A whole compaction that empties logical page `victim` (and `second`).
  void compact(SequenceId id, int victim, int second = -1) {
    const auto ticket = m.begin_compaction(id, second < 0 ? 1 : 2, CompactionStrategy::fill_holes,
                                           SharedPages::keep, copies);
    REQUIRE(ticket.ok());
    CompactionPlan plan;
    plan.victims = ticket->victims;
    plan.victim[0] = victim;
    plan.victim[1] = second;
    REQUIRE(m.apply_compaction(*ticket, plan, {}, 16).ok());
    check();
    REQUIRE(m.complete_fence(ticket->fence).ok());
    check();
  }
  [[nodiscard]] SequenceView view(SequenceId id) const { return m.view(id).value(); }
  [[nodiscard]] std::vector<int> table(SequenceId id) const {
    std::vector<int> pages;
    for (const PageId page : view(id).pages) pages.push_back(page.value);
    return pages;
  }
  void check() const {
    const Status status = m.check_invariants();
    INFO(status.message());
    REQUIRE(status.ok());
  }

  PageManager m;
  std::vector<PageCopy> copies;
  std::vector<PageTransfer> transfers;
};

}  // namespace growpage::test
