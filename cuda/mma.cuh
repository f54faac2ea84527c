// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "numeric.cuh"
#include "simt.cuh"
#include "warp.cuh"

/// Matrix units, the only inline PTX. Each function has an emulated twin beside it.
namespace growpage::cuda {

/// D += A·B of one warp, A [16 rows, 16 k] and B [16 k, 8 columns] of T (__half or __nv_bfloat16,
/// two to a register), D [16, 8] in float. Lane 4·i + q holds
///   a[0], a[2]: row i, k = 2q, 2q+1 and 2q+8, 2q+9;   a[1], a[3]: the same of row i + 8;
///   b[0], b[1]: column i, k = 2q, 2q+1 and 2q+8, 2q+9;
///   d[0], d[1]: row i, columns 2q, 2q+1;              d[2], d[3]: the same of row i + 8.
template <class T>
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], const unsigned (&a)[4],
                                            const unsigned (&b)[2]);

#ifndef GROWPAGE_SIMT_EMULATION

template <>
__device__ __forceinline__ void mma_16x8x16<__half>(float (&d)[4], const unsigned (&a)[4],
                                                    const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <>
__device__ __forceinline__ void mma_16x8x16<__nv_bfloat16>(float (&d)[4], const unsigned (&a)[4],
                                                           const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#else

namespace emulated {

/// Half `i` of a register as float.
template <class T>
inline float element(unsigned pair, int i) {
  const auto bits = static_cast<unsigned short>(pair >> (16 * i));
  if constexpr (std::is_same_v<T, __half>) {
    return to_float(__ushort_as_half(bits));
  } else {
    return to_float(__ushort_as_bfloat16(bits));
  }
}

/// Two registers of another lane.
struct Pair {
  unsigned x, y;
};
inline Pair of_lane(unsigned x, unsigned y, int lane) {
  const unsigned long long both = (static_cast<unsigned long long>(y) << 32) | x;
  const unsigned long long got = __shfl_sync(full_warp, both, lane);
  return {static_cast<unsigned>(got), static_cast<unsigned>(got >> 32)};
}

template <class T>
inline float dot(Pair a, Pair b) {
  float sum = 0;
  for (int i = 0; i < 2; ++i) {
    sum += element<T>(a.x, i) * element<T>(b.x, i) + element<T>(a.y, i) * element<T>(b.y, i);
  }
  return sum;
}

}  // namespace emulated

template <class T>
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], const unsigned (&a)[4],
                                            const unsigned (&b)[2]) {
  using emulated::of_lane;
  const int row = lane_id() / 4;
  const int column = 2 * (lane_id() % 4);
  for (int q = 0; q < 4; ++q) {
    const emulated::Pair upper = of_lane(a[0], a[2], 4 * row + q);
    const emulated::Pair lower = of_lane(a[1], a[3], 4 * row + q);
    for (int j = 0; j < 2; ++j) {
      const emulated::Pair query = of_lane(b[0], b[1], 4 * (column + j) + q);
      d[j] += emulated::dot<T>(upper, query);
      d[2 + j] += emulated::dot<T>(lower, query);
    }
  }
}

#endif

}  // namespace growpage::cuda
