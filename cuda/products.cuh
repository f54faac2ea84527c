// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "boundary_stage.cuh"
#include "mma.cuh"
#include "numeric.cuh"
#include "simt.cuh"
#include "warp.cuh"

/// Products of 16 keys with 8·tiles queries by one warp, in two forms. Both leave lane 4·i + q with
///   acc[t][0], acc[t][1]: key i with queries 8t + 2q, 8t + 2q + 1; acc[t][2], acc[t][3]: key i
///   + 8.
/// Both read a key's row with four lanes, 16 bytes each: 64 contiguous bytes, straight from global
/// memory into registers.
namespace growpage::cuda {

/// Two of a warp's 16 keys: rows i and i + 8 for lanes 4·i … 4·i + 3. Null = no such slot.
struct KeyRows {
  const char* upper;
  const char* lower;
  bool vector;  ///< uniform: rows can be read 16 bytes at a time
};

/// Elements [first, first + 16 bytes) of a key; zeros behind `dim` and for a null row. K is read
/// once: evict first, and leave the cache to the logits.
template <class Key>
__device__ __forceinline__ uint4 load_piece(const char* row, std::int32_t first, std::int32_t dim,
                                            bool vector) {
  uint4 piece = make_uint4(0, 0, 0, 0);
  if (row == nullptr || first >= dim) return piece;
  const Key* source = reinterpret_cast<const Key*>(row) + first;
  if (vector) return __ldcs(reinterpret_cast<const uint4*>(source));
  unsigned words[4] = {};
  if constexpr (sizeof(Key) == 4) {
    for (int i = 0; i < 4; ++i) {
      if (first + i < dim) words[i] = __float_as_uint(source[i]);
    }
  } else {
    const auto* bits = reinterpret_cast<const unsigned short*>(source);
    for (int i = 0; i < 8; ++i) {
      if (first + i < dim) words[i / 2] |= static_cast<unsigned>(bits[i]) << (16 * (i % 2));
    }
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

/// Matrix units: half or bf16 keys of at most 32·blocks elements. A sum does not care in which
/// order its terms come, so a lane's 16 contiguous bytes serve as its fragments of two k-steps of
/// 16, and the queries lie in shared memory permuted the same way, a lane's fragments together:
/// neither keys nor queries need ldmatrix, and the keys no shared memory.
///
/// Half keys meet queries of two halves each (QueryForm::split_f16): 22 bits instead of float's 24,
/// for twice the multiplications, which the units have to spare.
template <class Key, int blocks, int tiles>
struct MatrixProducts {
  static constexpr int queries = 8 * tiles;
  static constexpr int parts = std::is_same_v<Key, __half> ? 2 : 1;
  /// CTAs that an SM is to hold: enough loads in flight, without spills.
  static constexpr int ctas = tiles == 1 && blocks <= 4   ? (blocks <= 2 ? 4 : 3)
                              : tiles <= 2 || blocks <= 4 ? 2
                                                          : 1;
  static constexpr int step = 32;  // elements of a row that four lanes load at once

  using Query = uint4;  // what lies in shared memory

  struct Keys {
    uint4 upper[blocks];
    uint4 lower[blocks];
  };

  static std::size_t shared_bytes(std::int32_t /*padded_dim*/) {
    return blocks * parts * tiles * warp_lanes * sizeof(uint4);
  }

  /// Copies queries [first, first + queries) of a task; all threads of the block.
  static __device__ void stage_queries(const BoundaryStage& stage, const BoundaryTask& task,
                                       std::int32_t first, uint4* shared) {
    const BoundaryScratch& scratch = stage.scratch;
    constexpr int fragments = blocks * parts * tiles * warp_lanes;
    for (int i = static_cast<int>(threadIdx.x); i < fragments; i += static_cast<int>(blockDim.x)) {
      const int lane = i % warp_lanes;
      const int tile = i / warp_lanes % tiles;
      const int part = i / (warp_lanes * tiles) % parts;
      const int element = i / (warp_lanes * tiles * parts) * step + lane % 4 * 8;
      const std::int32_t query = first + tile * 8 + lane / 4;
      uint4 fragment = make_uint4(0, 0, 0, 0);
      if (query < stage.queries && element < scratch.padded_dim) {
        const std::byte* row =
            scratch.queries + query_row(stage, task, query) * scratch.query_bytes;
        fragment = *reinterpret_cast<const uint4*>(row + (part * scratch.padded_dim + element) * 2);
      }
      shared[i] = fragment;
    }
  }

  static __device__ __forceinline__ void load(const BoundaryStage& stage, const KeyRows& rows,
                                              Keys& keys) {
    const std::int32_t dim = stage.batch.shape.head_dim;
    const int first = lane_id() % 4 * 8;
#pragma unroll
    for (int b = 0; b < blocks; ++b) {
      keys.upper[b] = load_piece<Key>(rows.upper, b * step + first, dim, rows.vector);
      keys.lower[b] = load_piece<Key>(rows.lower, b * step + first, dim, rows.vector);
    }
  }

  static __device__ __forceinline__ void multiply(const BoundaryStage& /*stage*/, const Keys& keys,
                                                  const uint4* shared, float (&acc)[tiles][4]) {
    float rest[tiles][4] = {};
#pragma unroll
    for (int b = 0; b < blocks; ++b) {
      const uint4 u = keys.upper[b];
      const uint4 l = keys.lower[b];
      const unsigned first[4] = {u.x, l.x, u.y, l.y};
      const unsigned second[4] = {u.z, l.z, u.w, l.w};
#pragma unroll
      for (int i = 0; i < parts * tiles; ++i) {
        const uint4 q = shared[(b * parts * tiles + i) * warp_lanes + lane_id()];
        const unsigned first_query[2] = {q.x, q.y};
        const unsigned second_query[2] = {q.z, q.w};
        float(&sum)[4] = i < tiles ? acc[i % tiles] : rest[i % tiles];
        mma_16x8x16<Key>(sum, first, first_query);
        mma_16x8x16<Key>(sum, second, second_query);
      }
    }
    if constexpr (parts == 2) {
      // Apart until now: an infinite key makes an infinity of the first half's products, and NaN of
      // the second's, which is often 0.
#pragma unroll
      for (int i = 0; i < tiles * 4; ++i) {
        float& sum = acc[i / 4][i % 4];
        if (fabsf(sum) <= FLT_MAX) sum += rest[i / 4][i % 4];
      }
    }
  }
};

/// Fused multiply-adds, float queries: f32 keys, and rows too long for the other form. A lane sums
/// its quarter of two rows for all queries, then the four lanes add up and share out the queries.
template <class Key, int tiles>
struct FmaProducts {
  static constexpr int queries = 8 * tiles;
  static constexpr int ctas = 2;
  static constexpr int piece = 16 / static_cast<int>(sizeof(Key));  // elements of a lane's load

  using Query = float;
  using Keys = KeyRows;  // read piece by piece while multiplying

  static std::size_t shared_bytes(std::int32_t padded_dim) {
    return static_cast<std::size_t>(queries * padded_dim) * sizeof(float);
  }

  /// `shared` [queries, padded_dim].
  static __device__ void stage_queries(const BoundaryStage& stage, const BoundaryTask& task,
                                       std::int32_t first, float* shared) {
    const std::int32_t padded = stage.scratch.padded_dim;
    for (auto i = static_cast<std::int32_t>(threadIdx.x); i < queries * padded;
         i += static_cast<std::int32_t>(blockDim.x)) {
      const std::int32_t query = first + i / padded;
      const std::byte* row =
          stage.scratch.queries + query_row(stage, task, query) * stage.scratch.query_bytes;
      shared[i] = query < stage.queries ? reinterpret_cast<const float*>(row)[i % padded] : 0.0F;
    }
  }

  static __device__ __forceinline__ void widen(const uint4& bytes, float (&out)[piece]) {
    const unsigned words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
#pragma unroll
    for (int i = 0; i < piece; ++i) {
      if constexpr (sizeof(Key) == 4) {
        out[i] = __uint_as_float(words[i]);
      } else {
        const auto bits = static_cast<unsigned short>(words[i / 2] >> (16 * (i % 2)));
        if constexpr (std::is_same_v<Key, __half>) {
          out[i] = to_float(__ushort_as_half(bits));
        } else {
          out[i] = to_float(__ushort_as_bfloat16(bits));
        }
      }
    }
  }

  /// Adds the four lanes' v[8] up; lane q gets columns 2q and 2q + 1.
  static __device__ __forceinline__ void share_out(const float (&v)[8], float& even, float& odd) {
    const bool high = (lane_id() & 2) != 0;
    float half[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      half[i] = (high ? v[4 + i] : v[i]) + __shfl_xor_sync(full_warp, high ? v[i] : v[4 + i], 2);
    }
    const bool upper = (lane_id() & 1) != 0;
    even = (upper ? half[2] : half[0]) + __shfl_xor_sync(full_warp, upper ? half[0] : half[2], 1);
    odd = (upper ? half[3] : half[1]) + __shfl_xor_sync(full_warp, upper ? half[1] : half[3], 1);
  }

  static __device__ __forceinline__ void load(const BoundaryStage& /*stage*/, const KeyRows& rows,
                                              Keys& keys) {
    keys = rows;
  }

  static __device__ __forceinline__ void multiply(const BoundaryStage& stage, const KeyRows& rows,
                                                  const float* shared, float (&acc)[tiles][4]) {
    const std::int32_t dim = stage.batch.shape.head_dim;
    const std::int32_t padded = stage.scratch.padded_dim;
    float upper[tiles][8] = {};
    float lower[tiles][8] = {};
#pragma unroll 2
    for (std::int32_t first = lane_id() % 4 * piece; first < dim; first += 4 * piece) {
      float u[piece];
      float l[piece];
      widen(load_piece<Key>(rows.upper, first, dim, rows.vector), u);
      widen(load_piece<Key>(rows.lower, first, dim, rows.vector), l);
#pragma unroll
      for (int n = 0; n < queries; ++n) {
        const auto* q = reinterpret_cast<const float4*>(shared + n * padded + first);
#pragma unroll
        for (int i = 0; i < piece; i += 4) {
          const float4 x = q[i / 4];
          float& a = upper[n / 8][n % 8];
          float& b = lower[n / 8][n % 8];
          a += x.x * u[i] + x.y * u[i + 1] + x.z * u[i + 2] + x.w * u[i + 3];
          b += x.x * l[i] + x.y * l[i + 1] + x.z * l[i + 2] + x.w * l[i + 3];
        }
      }
    }
#pragma unroll
    for (int t = 0; t < tiles; ++t) {
      share_out(upper[t], acc[t][0], acc[t][1]);
      share_out(lower[t], acc[t][2], acc[t][3]);
    }
  }
};

}  // namespace growpage::cuda
