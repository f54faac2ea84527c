// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "growpage/cache/page_manager.hpp"
#include "support/check.hpp"
#include "support/text.hpp"

namespace growpage::bench {

/// A page manager and sequences in it, as an engine holds them.
struct Sequences {
  struct Options {
    std::int64_t pages = 32768;
    std::int32_t page_size = 256;
    std::int32_t max_pages = 512;
    std::int64_t host_pages = 0;
  };
  explicit Sequences(const Options& options) : manager(PageManager::create(of(options)).value()) {}

  /// `count` sequences of `tokens` tokens each that nobody knows.
  void fill(std::int32_t count, std::int64_t tokens) {
    for (std::int32_t i = 0; i < count; ++i) {
      ids.push_back(manager.admit({})->sequence);
      check(manager.reserve(ids.back(), tokens).ok());
      check(manager.append(ids.back(), tokens, nullptr, copies).ok());
      check(manager.mark_computed(ids.back(), static_cast<std::int32_t>(tokens)).ok());
    }
  }

  PageManager manager;
  std::vector<SequenceId> ids;
  std::vector<PageCopy> copies;

 private:
  static PageManagerOptions of(const Options& options) {
    PageManagerOptions manager;
    manager.pages = options.pages;
    manager.page_size = options.page_size;
    manager.max_sequences = 2048;
    manager.max_pages_per_sequence = options.max_pages;
    manager.host_pages = options.host_pages;
    return manager;
  }
};

}  // namespace growpage::bench
