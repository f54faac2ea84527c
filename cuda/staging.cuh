// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "growpage/core/status.hpp"
#include "simt.cuh"
#include "status.cuh"

/// Host metadata on its way to the device: by value, inside kernel parameters, of which CUDA takes
/// 4 KiB. The caller's memory is free again when the call returns, no buffer of ours has to outlive
/// it, nothing is allocated, and a captured graph replays the values.
namespace growpage::cuda {

inline constexpr std::size_t parameter_bytes = 3072;  // leaves room for the other parameters

struct ParameterBlock {
  alignas(16) unsigned char bytes[parameter_bytes];
};

/// Items of a launch whose list the host has.
template <class T>
struct ParameterList {
  static constexpr std::size_t size = parameter_bytes / sizeof(T);
  T at[size];

  /// The first of `items`, as many as fit, which it takes away.
  static ParameterList take(std::span<const T>& items, std::size_t& taken) noexcept {
    ParameterList list{};
    taken = std::min(items.size(), size);
    std::copy_n(items.data(), taken, list.at);
    items = items.subspan(taken);
    return list;
  }
};

inline constexpr int staging_threads = 256;

/// Writes `words` 4-byte words of the block. A template, because a plain kernel in a header would
/// be defined by everyone who includes it.
template <int threads>
__global__ void __launch_bounds__(threads)
    stage_kernel(const __grid_constant__ ParameterBlock block, std::uint32_t* to, int words) {
  const auto* const from = reinterpret_cast<const std::uint32_t*>(block.bytes);
  for (int i = static_cast<int>(threadIdx.x); i < words; i += threads) to[i] = from[i];
}

/// Hands out the front of a workspace and fills it from the host.
class Staging {
 public:
  Staging(void* workspace, cudaStream_t stream) noexcept
      : at_(static_cast<unsigned char*>(workspace)), stream_(stream) {}

  /// Bytes that `count` elements of T take.
  template <class T>
  [[nodiscard]] static constexpr std::int64_t bytes(std::int64_t count) noexcept {
    return (count * static_cast<std::int64_t>(sizeof(T)) + alignment - 1) / alignment * alignment;
  }

  /// Device memory for `count` elements, not written yet.
  template <class T>
  [[nodiscard]] T* take(std::int64_t count) noexcept {
    auto* const memory = reinterpret_cast<T*>(at_);
    at_ += bytes<T>(count);
    return memory;
  }

  /// A device copy of `values`, there for what is enqueued on the stream from now on.
  template <class T>
  [[nodiscard]] T* put(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    T* const memory = take<T>(static_cast<std::int64_t>(values.size()));
    auto* const to = reinterpret_cast<unsigned char*>(memory);
    const auto* const from = reinterpret_cast<const unsigned char*>(values.data());
    const std::size_t size = values.size_bytes();
    for (std::size_t done = 0; done < size; done += parameter_bytes) {
      ParameterBlock block{};
      const std::size_t part = std::min(size - done, parameter_bytes);
      std::memcpy(block.bytes, from + done, part);
      keep(launch(stage_kernel<staging_threads>, 1, staging_threads, 0, stream_, block,
                  reinterpret_cast<std::uint32_t*>(to + done), static_cast<int>((part + 3) / 4)));
    }
    return memory;
  }
  template <class T>
  [[nodiscard]] T* put(const T& value) {
    return put(std::span<const T>(&value, 1));
  }

  /// Where what was handed out ends.
  [[nodiscard]] void* end() const noexcept { return at_; }
  [[nodiscard]] Status status() const { return device_status(error_, "launch of stage"); }

 private:
  static constexpr std::int64_t alignment = 256;

  void keep(cudaError_t error) noexcept {
    if (error_ == cudaSuccess) error_ = error;
  }

  unsigned char* at_;
  cudaStream_t stream_;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace growpage::cuda
