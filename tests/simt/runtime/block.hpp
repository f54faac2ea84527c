// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "simt/barriers.hpp"
#include "simt/runtime/fibre.hpp"
#include "simt/runtime/ready_set.hpp"
#include "simt/runtime/warp_state.hpp"

namespace simt {

/// The block that runs: its threads, warps and barrier. There is one at a time, and one object for
/// all of them, in arrays of fixed size: the stacks of its threads refer to it across switches.
class Block {
 public:
  static constexpr unsigned max_threads = ReadySet::max_threads;

  /// Runs a block to its end. False when it failed, and error() says why. With `edges`, memory for
  /// happens-before edges of its own, blocks stay unordered to the race detector.
  bool run(const std::function<void()>& run_thread, uint3 index, dim3 threads, dim3 grid,
           char* edges);
  const std::string& error() const { return error_; }
  /// Orders what all blocks did before what the host does next.
  static void finish_grid();

  static constexpr unsigned barrier_edges = 2;  ///< whoever leaves a barrier may meet the next
  static constexpr unsigned edge_bytes = 8;
  static constexpr unsigned all_edge_bytes =
      edge_bytes * (barrier_edges + max_threads / 32 * Warp::slots);

  // What the running thread calls.
  int barrier(BarrierKind kind, bool predicate, Location at);
  std::uint64_t collective(const WarpCall& call, Location at);
  unsigned active_mask(Location at);
  void yield();
  /// Ends the block: the thread does not come back. Give it a string of its own: no destructor on
  /// the thread's stack runs any more.
  [[noreturn]] void fail(std::string&& what);
  const Fibre& running() const { return *running_; }

 private:
  static void thread_entry(Fibre& self);
  void start_thread(unsigned linear, uint3 index, dim3 threads, dim3 grid);
  Fibre& next();
  void wait(Location at);
  void make_ready(Fibre& fibre);
  void open_barrier();
  void complete(Warp& warp, unsigned slot);
  Fibre& leave(Fibre& self);
  bool release_active_masks();
  std::string deadlock() const;
  void abandon_threads();

  const std::function<void()>* run_thread_ = nullptr;
  uint3 index_{};
  unsigned threads_ = 0;
  unsigned alive_ = 0;
  unsigned waiting_ = 0;  ///< at the barrier
  unsigned phase_ = 0;    ///< of the barrier: which of its edges
  unsigned lonely_yields_ = 0;
  BarrierKind barrier_kind_{};
  Location barrier_at_{};
  int barrier_result_ = 0;
  Fibre host_;
  Fibre* running_ = nullptr;
  ReadySet ready_;
  std::string error_;
  char* edges_ = nullptr;
  Fibre fibres_[max_threads];
  Warp warps_[max_threads / 32];
};

/// Never destroyed: fibres left in the middle still refer to it.
Block& the_block();

/// `file.cpp:12:5`.
std::string place(const Location& at);
bool same_place(const Location& a, const Location& b);

}  // namespace simt
