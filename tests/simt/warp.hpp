// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "simt/bits.hpp"
#include "simt/thread.hpp"

namespace simt {

enum class WarpOp : std::uint8_t {
  sync,
  shfl_idx,
  shfl_up,
  shfl_down,
  shfl_xor,
  ballot,
  any,
  all,
  match_any,
  match_all,
  reduce_add,
  reduce_min_signed,
  reduce_max_signed,
  reduce_min,
  reduce_max,
  reduce_and,
  reduce_or,
  reduce_xor,
};

/// What one lane brings to a collective. `argument` is the lane, delta or xor mask of a shuffle,
/// `width` its segment.
struct WarpCall {
  WarpOp op;
  unsigned mask;
  std::uint64_t value = 0;
  int argument = 0;
  int width = 32;
};

/// Waits until every lane of the mask that has not returned calls the same operation with the same
/// mask. A lane outside its own mask fails the kernel; masks that differ end in a deadlock, which
/// fails it too.
std::uint64_t warp_collective(const WarpCall& call, Location at);

/// Lanes that ask at the same place. It is found out once no other thread can run.
unsigned active_mask(Location at);

template <class T>
T shuffle(WarpOp op, unsigned mask, T value, int argument, int width, Location at) {
  return from_bits<T>(warp_collective({op, mask, to_bits(value), argument, width}, at));
}

template <class T>
T reduce(WarpOp op, unsigned mask, T value, Location at) {
  return static_cast<T>(warp_collective({op, mask, to_bits(value)}, at));
}

inline std::uint64_t vote(WarpOp op, unsigned mask, int predicate, Location at) {
  return warp_collective({op, mask, static_cast<std::uint64_t>(predicate != 0)}, at);
}

}  // namespace simt

inline void __syncwarp(unsigned mask = ~0U, simt::Location at = simt::Location::current()) {
  simt::warp_collective({simt::WarpOp::sync, mask}, at);
}
inline unsigned __activemask(simt::Location at = simt::Location::current()) {
  return simt::active_mask(at);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              simt::Location at = simt::Location::current()) {
  return simt::shuffle(simt::WarpOp::shfl_idx, mask, value, lane, width, at);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 simt::Location at = simt::Location::current()) {
  return simt::shuffle(simt::WarpOp::shfl_up, mask, value, static_cast<int>(delta), width, at);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   simt::Location at = simt::Location::current()) {
  return simt::shuffle(simt::WarpOp::shfl_down, mask, value, static_cast<int>(delta), width, at);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                  simt::Location at = simt::Location::current()) {
  return simt::shuffle(simt::WarpOp::shfl_xor, mask, value, lane_mask, width, at);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              simt::Location at = simt::Location::current()) {
  return static_cast<unsigned>(simt::vote(simt::WarpOp::ballot, mask, predicate, at));
}
inline int __any_sync(unsigned mask, int predicate, simt::Location at = simt::Location::current()) {
  return static_cast<int>(simt::vote(simt::WarpOp::any, mask, predicate, at));
}
inline int __all_sync(unsigned mask, int predicate, simt::Location at = simt::Location::current()) {
  return static_cast<int>(simt::vote(simt::WarpOp::all, mask, predicate, at));
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, simt::Location at = simt::Location::current()) {
  return static_cast<unsigned>(
      simt::warp_collective({simt::WarpOp::match_any, mask, simt::to_bits(value)}, at));
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all_equal,
                          simt::Location at = simt::Location::current()) {
  const auto matching = static_cast<unsigned>(
      simt::warp_collective({simt::WarpOp::match_all, mask, simt::to_bits(value)}, at));
  *all_equal = matching != 0;
  return matching;
}

inline unsigned __reduce_add_sync(unsigned mask, unsigned value,
                                  simt::Location at = simt::Location::current()) {
  return simt::reduce(simt::WarpOp::reduce_add, mask, value, at);
}
inline int __reduce_add_sync(unsigned mask, int value,
                             simt::Location at = simt::Location::current()) {
  return simt::reduce(simt::WarpOp::reduce_add, mask, value, at);
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value,
                                  simt::Location at = simt::Location::current()) {
  return simt::reduce(simt::WarpOp::reduce_min, mask, value, at);
}
inline int __reduce_min_sync(unsigned mask, int value,
                             simt::Location at = simt::Location::current()) {
  return simt::reduce(simt::WarpOp::reduce_min_signed, mask, value, at);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value,
                                  simt::Location at = simt::Location::current()) {
  return simt::reduce(simt::WarpOp::reduce_max, mask, value, at);
}
inline int __reduce_max_sync(unsigned mask, int value,
                             simt::Location at = simt::Location::current()) {
  return simt::reduce(simt::WarpOp::reduce_max_signed, mask, value, at);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value,
                                  simt::Location at = simt::Location::current()) {
  return simt::reduce(simt::WarpOp::reduce_and, mask, value, at);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value,
                                 simt::Location at = simt::Location::current()) {
  return simt::reduce(simt::WarpOp::reduce_or, mask, value, at);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value,
                                  simt::Location at = simt::Location::current()) {
  return simt::reduce(simt::WarpOp::reduce_xor, mask, value, at);
}
