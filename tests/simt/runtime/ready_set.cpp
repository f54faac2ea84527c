// SPDX-License-Identifier: Apache-2.0
#include "simt/runtime/ready_set.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "simt/runtime/random.hpp"

namespace simt {

namespace {

constexpr unsigned warp_size = 32;

void shuffle(unsigned* first, unsigned count) {
  for (unsigned i = count; i > 1; --i) std::swap(first[i - 1], first[random_numbers().below(i)]);
}

Order drawn_order() {
  constexpr Order orders[] = {Order::forward,  Order::reverse,       Order::uniform,
                              Order::priority, Order::warp_priority, Order::starved};
  const Order chosen = settings().order;
  return chosen == Order::mix ? orders[random_numbers().below(std::size(orders))] : chosen;
}

}  // namespace

void ReadySet::start_block(unsigned threads) {
  std::fill(std::begin(ready_), std::end(ready_), 0);
  count_ = 0;
  const Order order = drawn_order();
  uniform_ = order == Order::uniform;
  draw_ranks(order, threads);
  for (unsigned rank = 0; rank < threads; ++rank) rank_of_[by_rank_[rank]] = rank;
}

// The lowest rank runs first, so that the highest ones starve for as long as possible. That is what
// shows a missing barrier; uniform choice hardly does where the racing thread has a few collectives
// to get through first.
void ReadySet::draw_ranks(Order order, unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) {
    by_rank_[i] = order == Order::reverse ? threads - 1 - i : i;
  }
  if (order == Order::priority) {
    shuffle(by_rank_, threads);
  } else if (order == Order::warp_priority) {
    unsigned warps[max_threads / warp_size];
    const unsigned warp_count = (threads + warp_size - 1) / warp_size;
    for (unsigned i = 0; i < warp_count; ++i) warps[i] = i;
    shuffle(warps, warp_count);
    unsigned* lanes = by_rank_;
    for (unsigned i = 0; i < warp_count; ++i) {
      const unsigned lane_count = std::min(warp_size, threads - warps[i] * warp_size);
      for (unsigned lane = 0; lane < lane_count; ++lane) lanes[lane] = warps[i] * warp_size + lane;
      shuffle(lanes, lane_count);
      lanes += lane_count;
    }
  } else if (order == Order::starved) {
    // Thread 0 half of the time: it is the one with work of its own after a reduction.
    const unsigned victim = random_numbers().below(2) == 0 ? 0 : random_numbers().below(threads);
    std::swap(by_rank_[victim], by_rank_[threads - 1]);
    shuffle(by_rank_, threads - 1);
  }
}

void ReadySet::insert(unsigned thread) {
  const unsigned rank = rank_of_[thread];
  ready_[rank / 64] |= std::uint64_t{1} << (rank % 64);
  ++count_;
}

unsigned ReadySet::take() {
  if (uniform_) return take_any();
  unsigned word = 0;
  while (ready_[word] == 0) ++word;
  return take_rank(word * 64 + static_cast<unsigned>(std::countr_zero(ready_[word])));
}

unsigned ReadySet::take_any() {
  unsigned skip = random_numbers().below(count_);
  unsigned word = 0;
  for (;; ++word) {
    const auto here = static_cast<unsigned>(std::popcount(ready_[word]));
    if (skip < here) break;
    skip -= here;
  }
  std::uint64_t bits = ready_[word];
  for (; skip > 0; --skip) bits &= bits - 1;
  return take_rank(word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
}

unsigned ReadySet::take_rank(unsigned rank) {
  ready_[rank / 64] &= ~(std::uint64_t{1} << (rank % 64));
  --count_;
  return by_rank_[rank];
}

}  // namespace simt
