// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "simt.cuh"
#include "warp.cuh"

namespace growpage::cuda {

/// An integer in the order of the scores, as in the CPU backend: equal scores (−0 and 0, too) have
/// equal keys, NaN the lowest, none is 0.
[[nodiscard]] __device__ __forceinline__ std::uint32_t order_key(float score) {
  if (score != score) return 1;
  const std::uint32_t bits = __float_as_uint(score + 0.0F);  // −0 becomes 0
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

/// The keys of a row's slots in shared memory. 0 = not to be chosen: taken, or of a shared page.
class SharedKeys {
 public:
  static constexpr bool in_shared = true;
  __device__ SharedKeys(unsigned char* memory, const float* /*scores*/,
                        const std::uint32_t* /*kept*/)
      : keys_(reinterpret_cast<std::uint32_t*>(memory)) {}
  __device__ void set(std::int32_t slot, std::uint32_t key) const { keys_[slot] = key; }
  [[nodiscard]] __device__ std::uint32_t get(std::int32_t slot) const { return keys_[slot]; }

 private:
  std::uint32_t* keys_;
};

/// The same of a row too long for shared memory: made from the score at every look, 0 where the
/// keep bit is set.
class ScoreKeys {
 public:
  static constexpr bool in_shared = false;
  __device__ ScoreKeys(unsigned char* /*memory*/, const float* scores, const std::uint32_t* kept)
      : scores_(scores), kept_(kept) {}
  __device__ void set(std::int32_t /*slot*/, std::uint32_t /*key*/) const {}
  [[nodiscard]] __device__ std::uint32_t get(std::int32_t slot) const {
    const bool kept = ((kept_[slot >> 5] >> (slot & 31)) & 1U) != 0;
    return kept ? 0 : order_key(scores_[slot]);
  }

 private:
  const float* scores_;
  const std::uint32_t* kept_;
};

/// The keys of one page, read by one warp: key j of lane l is that of slot first + 32·j + l. With
/// n > 0 they stay in registers (pages of up to 32·n slots), with n = 0 they are read at every
/// look.
template <class Keys, int n>
class PageKeys {
 public:
  __device__ PageKeys(const Keys& keys, std::int32_t first, std::int32_t end)
      : keys_(keys), first_(first), end_(end) {
    for (int j = 0; j < n; ++j) key_[j] = read(j);
  }
  [[nodiscard]] __device__ int words() const {
    return n > 0 ? n : (end_ - first_ + warp_lanes - 1) / warp_lanes;
  }
  [[nodiscard]] __device__ std::uint32_t at(int j) const {
    if constexpr (n > 0) {
      return key_[j];
    } else {
      return read(j);
    }
  }
  /// Keys of the page that are at least `threshold` ≥ 1; in every lane.
  [[nodiscard]] __device__ std::int32_t count_at_least(std::uint32_t threshold) const {
    int count = 0;
#pragma unroll
    for (int j = 0; j < words(); ++j) count += at(j) >= threshold ? 1 : 0;
    return __reduce_add_sync(full_warp, count);
  }

 private:
  [[nodiscard]] __device__ std::uint32_t read(int j) const {
    const std::int32_t slot = first_ + j * warp_lanes + lane_id();
    return slot < end_ ? keys_.get(slot) : 0;
  }

  const Keys& keys_;
  std::int32_t first_;
  std::int32_t end_;
  std::uint32_t key_[n > 0 ? n : 1];
};

}  // namespace growpage::cuda
