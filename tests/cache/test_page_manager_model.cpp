// SPDX-License-Identifier: Apache-2.0
// Random operations on a small pool, compared step by step with a plain model.
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "growpage/detail/splitmix.hpp"
#include "support/catch.hpp"
#include "support/manager_model.hpp"

using namespace growpage;
using growpage::test::ManagerModel;

namespace {

struct Random {
  std::uint64_t state;
  std::size_t operator()(std::size_t n) {
    return static_cast<std::size_t>(detail::splitmix64(state++) % n);
  }
};

class Driver {
 public:
  Driver(const PageManagerOptions& options, std::uint64_t seed)
      : model_(options, {{"", "", "", 0},
                         {"X", "", "", 0},
                         {"", "X", "", 0},
                         {"", "", "image", 20},
                         {"", "", "other", 20}}),
        random_{seed << 32} {}

  void step() {
    auto& sequences = model_.sequences();
    const std::size_t dice = random_(100);
    if (sequences.empty() || dice < 10) return admit();
    const std::size_t index = random_(sequences.size());
    ManagerModel::Sequence& s = sequences[index];
    if (dice < 14) return model_.grow(s);
    if (dice < 20) return model_.reserve(s, random_(40));
    if (dice < 40) return append(s);
    if (dice < 58) return compute(s);
    if (dice < 62) return model_.fork(s);
    if (dice < 68)
      return model_.truncate(s, random_(4) == 0 ? random_(s.tokens.size() + 1) : near(s));
    if (dice < 74) return model_.release(index);
    if (dice < 80) return compact(s);
    if (dice < 82 && (s.swapped || s.table.size() < 3)) return model_.swap_in(s);
    if (dice < 82) return model_.swap_out(s);
    if (dice < 85) {
      for (auto& other : sequences) {
        if (other.swapped) return model_.swap_in(other);
      }
    }
    if (dice < 86) return model_.guard(s);
    if (dice == 86 && random_(20) == 0) return model_.clear_prefix_cache();
    work();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      model_.check(i % 4 == 0);
      model_.check_host();
    }
    finish();
  }

  [[nodiscard]] std::int64_t hits() const { return model_.hits(); }

 private:
  /// Few different texts, so that prefixes are found again and again.
  std::vector<TokenId> prompt() {
    const std::size_t base = random_(2);
    const std::size_t branch = 30 + random_(60);
    std::vector<TokenId> text(random_(90));
    for (std::size_t i = 0; i < text.size(); ++i) {
      text[i] = static_cast<TokenId>(i < branch ? base : base + 1 + random_(2));
    }
    return text;
  }
  /// Mostly followed by a prefill of the whole prompt.
  void admit() {
    const std::vector<TokenId> text = prompt();
    const std::size_t before = model_.sequences().size();
    model_.admit(text, random_(2) == 0 ? 0 : random_(5));
    if (model_.sequences().size() == before || random_(4) == 0) return;
    ManagerModel::Sequence& s = model_.sequences().back();
    const std::size_t left = text.size() - s.tokens.size();
    model_.reserve(s, left);
    model_.append(s, {text.end() - static_cast<std::ptrdiff_t>(left), text.end()}, true);
    if (random_(8) != 0) model_.compute(s, static_cast<int>(s.rows.size()));
  }
  void append(ManagerModel::Sequence& s) {
    const std::size_t room =
        s.table.size() * static_cast<std::size_t>(model_.manager().options().page_size) -
        (s.swapped ? 0 : s.rows.size());
    const std::size_t count = random_(8) == 0 ? random_(40) : random_(room + 1);
    std::vector<TokenId> tokens(count);
    for (TokenId& t : tokens) t = static_cast<TokenId>(s.key % 2);
    if (random_(3) == 0) {
      for (TokenId& t : tokens) t = static_cast<TokenId>(random_(3));
    }
    const bool known = random_(50) != 0;
    model_.append(s, tokens, known);
  }
  void compute(ManagerModel::Sequence& s) {
    const auto slots = static_cast<int>(s.rows.size());
    const auto more = static_cast<std::size_t>(slots - s.computed);
    model_.compute(s, random_(3) == 0 ? s.computed + static_cast<int>(random_(more + 1)) : slots);
  }
  std::size_t near(const ManagerModel::Sequence& s) {
    return s.tokens.size() - random_(std::min<std::size_t>(s.tokens.size(), 20) + 1);
  }
  /// Mostly fills the pages first, so that a compaction can begin.
  void compact(ManagerModel::Sequence& s) {
    if (!s.busy && !s.swapped && random_(4) != 0) {
      const std::size_t room =
          s.table.size() * static_cast<std::size_t>(model_.manager().options().page_size) -
          s.rows.size();
      model_.append(s, std::vector<TokenId>(room, 1), true);
      model_.compute(s, static_cast<int>(s.rows.size()));
    }
    const int victims = 1 + static_cast<int>(random_(2));
    const auto strategy =
        random_(2) == 0 ? CompactionStrategy::fill_holes : CompactionStrategy::in_order;
    const auto shared = random_(2) == 0 ? SharedPages::keep : SharedPages::copy;
    model_.begin_compaction(s, victims, strategy, shared);
  }
  void work() {
    if (model_.works().empty()) return;
    auto at = model_.works().begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_(model_.works().size())));
    if (at->kind != ManagerModel::Kind::compaction || at->applied) return model_.complete(*at);
    const std::size_t dice = random_(8);
    if (dice == 0) return model_.cancel(*at);
    if (dice == 1 && model_.works().size() > 3) return model_.complete(*at);
    model_.apply_compaction(*at, random_);
    // Nobody applies for a sequence that is gone; its fence completes all the same.
    if (!model_.manager().alive(at->sequence)) model_.complete(*at);
  }
  void finish() {
    while (!model_.works().empty()) model_.complete(model_.works().front());
    while (!model_.sequences().empty()) model_.release(model_.sequences().size() - 1);
    model_.check(true);
    model_.check_host();
    const PageCounts counts = model_.manager().counts();
    ManagerModel::expect(counts.referenced == 0 && counts.in_flight == 0, "a page has leaked");
  }

  ManagerModel model_;
  Random random_;
};

void run(const PageManagerOptions& options, std::uint64_t seeds, int steps) {
  std::int64_t hits = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Driver driver(options, seed);
    try {
      driver.run(steps);
    } catch (const std::runtime_error& difference) {
      FAIL("seed " << seed << ": " << difference.what());
    }
    hits += driver.hits();
  }
  std::cout << "seeds 1 to " << seeds << ", " << steps << " steps each: " << hits
            << " tokens found in the prefix cache\n";
  if (options.prefix_caching) CHECK(hits > 0);
}

#ifdef GROWPAGE_NIGHTLY
constexpr std::uint64_t seed_factor = 100;
#else
constexpr std::uint64_t seed_factor = 1;
#endif

PageManagerOptions small() {
  PageManagerOptions options;
  options.pages = 24;
  options.page_size = 16;
  options.max_sequences = 8;
  options.max_pages_per_sequence = 7;
  options.host_pages = 12;
  options.max_fences = 6;
  options.event_capacity = 8;
  return options;
}

}  // namespace

TEST_CASE("random operations agree with the model") { run(small(), 150 * seed_factor, 4000); }

TEST_CASE("random operations agree with the model when pages are scarce") {
  PageManagerOptions options = small();
  options.pages = 9;
  options.max_fences = 3;
  run(options, 100 * seed_factor, 4000);
}

TEST_CASE("random operations agree with the model in a pool with room") {
  PageManagerOptions options = small();
  options.pages = 80;
  options.max_sequences = 12;
  options.host_pages = 40;
  options.max_fences = 16;
  run(options, 25 * seed_factor, 4000);
}

TEST_CASE("random operations agree with the model without prefix caching") {
  PageManagerOptions options = small();
  options.prefix_caching = false;
  run(options, 25 * seed_factor, 4000);
}
