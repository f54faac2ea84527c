// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>

#include "simt/thread.hpp"

namespace simt {

/// A CUDA thread, or the host thread that runs the block. Fibres keep their stacks for ever and run
/// one CUDA thread after the other.
class Fibre {
 public:
  enum class State : std::uint8_t { ready, at_barrier, in_collective, asks_active_mask, exited };
  using Entry = void (*)(Fibre& self);

  ThreadView view{};
  State state = State::exited;
  Location at{};             ///< where it waits
  unsigned mask = 0;         ///< of the collective in which it waits
  std::uint64_t result = 0;  ///< what it waits for, once it is ready again

  /// Takes over the calling thread as a fibre: what the others switch back to.
  void adopt_host();
  /// Makes it begin at `entry` with an empty stack when it is switched to next.
  void prepare(Entry entry);
  /// Leaves this fibre, which runs, for `to`; returns when something switches back.
  void switch_to(Fibre& to) { jump(to, false); }
  /// The same for good: prepare() comes next.
  [[noreturn]] void exit_to(Fibre& to);
  /// For a fibre left in the middle, inside the runtime, or never switched to: whatever it did
  /// comes before `edge`, and the race detector forgets its calls.
  void abandon(void* edge);
  /// A new identity for the race detector, from the next prepare() on. The old one is kept until
  /// forget_retired(): a reused one would carry over the edges of earlier blocks.
  void renew_identity();
  static void forget_retired();

 private:
  static void begin(boost::context::detail::transfer_t from);
  static void arrived(Fibre& self, boost::context::detail::transfer_t from, void* fake_stack);
  void jump(Fibre& to, bool for_good);

  boost::context::detail::fcontext_t context_ = nullptr;
  Entry entry_ = nullptr;
  unsigned char* stack_ = nullptr;  ///< lowest usable address
  std::size_t stack_bytes_ = 0;
  [[maybe_unused]] void* fake_stack_ = nullptr;  ///< AddressSanitizer's
  [[maybe_unused]] void* identity_ = nullptr;    ///< ThreadSanitizer's
  bool host_ = false;
  bool begun_ = false;  ///< since prepare()
};

}  // namespace simt
