// SPDX-License-Identifier: Apache-2.0
#include "simt/runtime/warp_state.hpp"

#include <bit>

namespace simt {

namespace {

// What a shuffle gives that reads a lane that is not there: undefined in CUDA, here a number that
// shows, NaN as a float.
constexpr std::uint64_t undefined_lane = 0xFFC0DEADFFC0DEADU;

template <class F>
void for_each_lane(unsigned mask, F visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<unsigned>(std::countr_zero(mask)));
}

std::uint32_t combine(WarpOp op, std::uint32_t a, std::uint32_t b) {
  const auto signed_a = static_cast<std::int32_t>(a);
  const auto signed_b = static_cast<std::int32_t>(b);
  switch (op) {
    case WarpOp::reduce_add:
      return a + b;
    case WarpOp::reduce_min_signed:
      return signed_b < signed_a ? b : a;
    case WarpOp::reduce_max_signed:
      return signed_b > signed_a ? b : a;
    case WarpOp::reduce_min:
      return b < a ? b : a;
    case WarpOp::reduce_max:
      return b > a ? b : a;
    case WarpOp::reduce_and:
      return a & b;
    case WarpOp::reduce_or:
      return a | b;
    default:
      return a ^ b;
  }
}

}  // namespace

std::uint64_t Rendezvous::result(unsigned lane) const {
  switch (op) {
    case WarpOp::sync:
      return 0;
    case WarpOp::shfl_idx:
    case WarpOp::shfl_up:
    case WarpOp::shfl_down:
    case WarpOp::shfl_xor:
      return shuffled(lane);
    case WarpOp::ballot:
    case WarpOp::any:
    case WarpOp::all:
      return vote();
    case WarpOp::match_any:
      return matching(lane);
    case WarpOp::match_all:
      return matching(lane) == arrived ? arrived : 0;
    default:
      return reduced();
  }
}

std::uint64_t Rendezvous::vote() const {
  unsigned ballot = 0;
  for_each_lane(arrived, [&](unsigned lane) {
    if (value[lane] != 0) ballot |= 1U << lane;
  });
  if (op == WarpOp::any) return ballot != 0 ? 1 : 0;
  if (op == WarpOp::all) return ballot == arrived ? 1 : 0;
  return ballot;
}

std::uint64_t Rendezvous::matching(unsigned lane) const {
  unsigned equal = 0;
  for_each_lane(arrived, [&](unsigned other) {
    if (value[other] == value[lane]) equal |= 1U << other;
  });
  return equal;
}

std::uint64_t Rendezvous::reduced() const {
  const auto first = static_cast<unsigned>(std::countr_zero(arrived));
  auto result = static_cast<std::uint32_t>(value[first]);
  for_each_lane(arrived & (arrived - 1), [&](unsigned lane) {
    result = combine(op, result, static_cast<std::uint32_t>(value[lane]));
  });
  return result;
}

std::uint64_t Rendezvous::shuffled(unsigned lane) const {
  const int self = static_cast<int>(lane);
  const int first = self & ~(width[lane] - 1);
  const int end = first + width[lane];
  int source = self;
  switch (op) {
    case WarpOp::shfl_idx:
      source = first + (argument[lane] & (width[lane] - 1));
      break;
    case WarpOp::shfl_up:
      if (self - argument[lane] >= first) source = self - argument[lane];
      break;
    case WarpOp::shfl_down:
      if (self + argument[lane] < end) source = self + argument[lane];
      break;
    default:
      if ((self ^ argument[lane]) < end) source = self ^ argument[lane];
      break;
  }
  const bool present = source >= 0 && source < 32 && (arrived >> source & 1U) != 0;
  return present ? value[source] : undefined_lane;
}

unsigned Warp::join(const WarpCall& call, unsigned lane) {
  const unsigned bit = 1U << lane;
  unsigned index = slots;
  for_each_lane(open, [&](unsigned i) {
    if (slot[i].op == call.op && slot[i].mask == call.mask && (slot[i].arrived & bit) == 0) {
      index = i;
    }
  });
  if (index == slots) {
    while ((open >> next & 1U) != 0) next = (next + 1) % slots;
    index = next;
    next = (next + 1) % slots;
    open |= 1U << index;
    slot[index].op = call.op;
    slot[index].mask = call.mask;
    slot[index].arrived = 0;
  }
  Rendezvous& joined = slot[index];
  joined.arrived |= bit;
  joined.value[lane] = call.value;
  joined.argument[lane] = call.argument;
  joined.width[lane] = call.width;
  return index;
}

}  // namespace simt
