// SPDX-License-Identifier: Apache-2.0
// Barriers and warp collectives: the calls in which the threads of a block wait for each other.
#include <fmt/core.h>

#include "simt/runtime/block.hpp"
#include "simt/runtime/sanitizer.hpp"

namespace simt {

namespace {

char fence_edge;

}  // namespace

void fence() {
  sanitizer::release(&fence_edge);
  sanitizer::acquire(&fence_edge);
}

void yield_thread() {
  const sanitizer::RuntimeScope scope;
  the_block().yield();
}

void trap(const char* what, Location at) {
  const sanitizer::RuntimeScope scope;
  std::string text = fmt::format("{} by thread {} at {}", what, self().linear, place(at));
  the_block().fail(std::move(text));
}

int block_barrier(BarrierKind kind, bool predicate, Location at) {
  self();
  const sanitizer::RuntimeScope scope;
  return the_block().barrier(kind, predicate, at);
}

std::uint64_t warp_collective(const WarpCall& call, Location at) {
  self();
  const sanitizer::RuntimeScope scope;
  return the_block().collective(call, at);
}

unsigned active_mask(Location at) {
  self();
  const sanitizer::RuntimeScope scope;
  return the_block().active_mask(at);
}

int Block::barrier(BarrierKind kind, bool predicate, Location at) {
  Fibre& self = *running_;
  if (waiting_ == 0) {
    barrier_kind_ = kind;
    barrier_at_ = at;
    barrier_result_ = kind == BarrierKind::all ? 1 : 0;
  } else if (barrier_kind_ != kind || !same_place(barrier_at_, at)) {
    std::string what = fmt::format("divergent barrier: thread {} comes to {} while {} wait at {}",
                                   self.view.linear, place(at), waiting_, place(barrier_at_));
    fail(std::move(what));
  }
  if (kind == BarrierKind::count) barrier_result_ += predicate ? 1 : 0;
  if (kind == BarrierKind::any && predicate) barrier_result_ = 1;
  if (kind == BarrierKind::all && !predicate) barrier_result_ = 0;
  char* edge = edges_ + phase_ * edge_bytes;
  sanitizer::release(edge);
  self.state = Fibre::State::at_barrier;
  if (++waiting_ == alive_) open_barrier();
  wait(at);
  sanitizer::acquire(edge);
  return static_cast<int>(self.result);
}

void Block::open_barrier() {
  phase_ = (phase_ + 1) % barrier_edges;
  waiting_ = 0;
  for (unsigned i = 0; i < threads_; ++i) {
    if (fibres_[i].state != Fibre::State::at_barrier) continue;
    fibres_[i].result = static_cast<std::uint64_t>(barrier_result_);
    make_ready(fibres_[i]);
  }
}

std::uint64_t Block::collective(const WarpCall& call, Location at) {
  Fibre& self = *running_;
  const unsigned lane = self.view.lane;
  if ((call.mask >> lane & 1U) == 0) {
    std::string what =
        fmt::format("lane {} calls a collective whose mask leaves it out at {}", lane, place(at));
    fail(std::move(what));
  }
  const unsigned warp_index = self.view.linear / 32;
  Warp& warp = warps_[warp_index];
  const unsigned slot = warp.join(call, lane);
  // Of all collectives only __syncwarp() orders memory.
  char* edge = edges_ + edge_bytes * (barrier_edges + warp_index * Warp::slots + slot);
  const bool orders = call.op == WarpOp::sync;
  if (orders) sanitizer::release(edge);
  self.state = Fibre::State::in_collective;
  self.mask = call.mask;
  if (warp.complete(slot)) complete(warp, slot);
  wait(at);
  if (orders) sanitizer::acquire(edge);
  return self.result;
}

void Block::complete(Warp& warp, unsigned slot) {
  const auto first = static_cast<unsigned>(&warp - warps_) * 32;
  const Rendezvous& all = warp.slot[slot];
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((all.arrived >> lane & 1U) == 0) continue;
    fibres_[first + lane].result = all.result(lane);
    make_ready(fibres_[first + lane]);
  }
  warp.open &= ~(1U << slot);
}

unsigned Block::active_mask(Location at) {
  Fibre& self = *running_;
  self.state = Fibre::State::asks_active_mask;
  wait(at);
  return static_cast<unsigned>(self.result);
}

// No thread can run: lanes of a warp that ask at one place are together, as far as can be.
bool Block::release_active_masks() {
  bool any = false;
  for (unsigned i = 0; i < threads_; ++i) {
    if (fibres_[i].state != Fibre::State::asks_active_mask) continue;
    const unsigned first = i / 32 * 32;
    const unsigned end = threads_ - first < 32 ? threads_ : first + 32;
    unsigned mask = 0;
    for (unsigned j = i; j < end; ++j) {
      if (fibres_[j].state == Fibre::State::asks_active_mask &&
          same_place(fibres_[j].at, fibres_[i].at)) {
        mask |= 1U << (j - first);
      }
    }
    for (unsigned j = i; j < end; ++j) {
      if ((mask >> (j - first) & 1U) == 0) continue;
      fibres_[j].result = mask;
      make_ready(fibres_[j]);
    }
    any = true;
  }
  return any;
}

}  // namespace simt
