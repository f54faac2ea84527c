// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What CUB's block and warp collectives take from PTX. The copies that patch_cub.py writes include
/// this; device-wide algorithms do not work.

#include <cuda/std/detail/__config>

#include <cstdint>

#include "simt/emulation.hpp"

namespace simt {

/// Stands for a type with a PTX specialisation of its own: no value has it, so the general form is
/// taken.
struct NoSpecialisation {};

/// `control` holds a clamp in bits 0-4 and the segment's mask in bits 8-12, as PTX has it.
struct ShuffleControl {
  explicit ShuffleControl(int control)
      : first(static_cast<int>(self().lane) & (control >> 8)),
        clamp(first | (control & ~(control >> 8) & 31)) {}
  int first;
  int clamp;
};

/// shfl.sync.up.b32; here the clamp is the lowest lane of the segment.
inline unsigned ptx_shuffle_up(unsigned value, int delta, int control, unsigned mask,
                               Location at = Location::current()) {
  const int lane = static_cast<int>(self().lane);
  const bool inside = lane - delta >= ShuffleControl(control).clamp;
  return shuffle(WarpOp::shfl_idx, mask, value, inside ? lane - delta : lane, 32, at);
}

/// shfl.sync.down.b32
inline unsigned ptx_shuffle_down(unsigned value, int delta, int control, unsigned mask,
                                 Location at = Location::current()) {
  const int lane = static_cast<int>(self().lane);
  const bool inside = lane + delta <= ShuffleControl(control).clamp;
  return shuffle(WarpOp::shfl_idx, mask, value, inside ? lane + delta : lane, 32, at);
}

/// bfe.u32
inline unsigned ptx_bit_field(unsigned value, unsigned first, unsigned count) {
  return first > 31 ? 0U : (value >> first) & (count > 31 ? ~0U : (1U << count) - 1);
}

/// shl.b32 and shr.b32: beyond 31 they give 0.
inline unsigned ptx_shift_left(unsigned value, unsigned bits) {
  return bits > 31 ? 0U : value << bits;
}
inline unsigned ptx_shift_right(unsigned value, unsigned bits) {
  return bits > 31 ? 0U : value >> bits;
}

}  // namespace simt

// SIMD-in-a-word minima and maxima, named in code for 16-bit types that no kernel of ours uses.
#define SIMT_WITHOUT(name)                                                                  \
  inline unsigned name(unsigned, unsigned, simt::Location at = simt::Location::current()) { \
    simt::trap(#name " is not emulated; called", at);                                       \
  }
SIMT_WITHOUT(__vmins2)
SIMT_WITHOUT(__vminu2)
SIMT_WITHOUT(__vmaxs2)
SIMT_WITHOUT(__vmaxu2)
#undef SIMT_WITHOUT

_LIBCUDACXX_BEGIN_NAMESPACE_CUDA_PTX
inline unsigned get_sreg_laneid() { return simt::self().lane; }
inline unsigned get_sreg_lanemask_ge() { return ~0U << simt::self().lane; }
inline unsigned get_sreg_lanemask_gt() { return ~1U << simt::self().lane; }
inline unsigned get_sreg_lanemask_le() { return ~(~1U << simt::self().lane); }
inline unsigned get_sreg_lanemask_lt() { return ~(~0U << simt::self().lane); }
_LIBCUDACXX_END_NAMESPACE_CUDA_PTX
