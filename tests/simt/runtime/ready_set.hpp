// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "simt/settings.hpp"

namespace simt {

/// The threads of a block that can run, and which of them runs next.
class ReadySet {
 public:
  static constexpr unsigned max_threads = 1024;

  /// Empties the set and draws the order of a block of `threads`.
  void start_block(unsigned threads);
  void insert(unsigned thread);
  bool empty() const { return count_ == 0; }
  /// Takes out the next thread by the block's order.
  unsigned take();
  /// Takes out any: two threads that wait for a third must not keep it out by their rank.
  unsigned take_any();

 private:
  void draw_ranks(Order order, unsigned threads);
  unsigned take_rank(unsigned rank);

  // Ranks, not threads, so that the next by rank is the lowest bit.
  std::uint64_t ready_[max_threads / 64] = {};
  unsigned count_ = 0;
  bool uniform_ = false;
  unsigned rank_of_[max_threads] = {};
  unsigned by_rank_[max_threads] = {};
};

}  // namespace simt
