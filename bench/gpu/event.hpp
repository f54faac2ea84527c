// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "growpage/backend/cuda/boundary.hpp"
#include "growpage/backend/cuda/compaction.hpp"
#include "growpage/backend/cuda/selection.hpp"
#include "growpage/backend/cuda/summary.hpp"

namespace growpage::bench {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}
inline void check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}

/// Device memory of `count` elements.
template <class T>
class Device {
 public:
  explicit Device(std::int64_t count) : count_(count) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes()), "cudaMalloc");
    data_ = static_cast<T*>(memory);
  }
  explicit Device(const std::vector<T>& values) : Device(static_cast<std::int64_t>(values.size())) {
    check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~Device() { (void)cudaFree(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// `values` over and over: random memory at the price of a block.
  void fill(const std::vector<T>& values) {
    for (std::int64_t at = 0; at < count_; at += static_cast<std::int64_t>(values.size())) {
      const auto n =
          static_cast<std::size_t>(std::min(count_ - at, static_cast<std::int64_t>(values.size())));
      check(cudaMemcpy(data_ + at, values.data(), n * sizeof(T), cudaMemcpyHostToDevice),
            "cudaMemcpy");
    }
  }
  [[nodiscard]] std::vector<T> download() const {
    std::vector<T> values(static_cast<std::size_t>(count_));
    check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
  }
  [[nodiscard]] T* get() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }

 private:
  std::int64_t count_;
  T* data_ = nullptr;
};

/// A batch of requests at a capacity boundary, on the device: what the launchers of an event want.
/// Where the GPU has no room for the pages of all requests they share pages, which changes nothing
/// for what only reads them.
class Event {
 public:
  Event(const CacheShape& shape, std::int32_t requests, std::int32_t slots);

  void pass();     ///< demand and scores, Δ
  void select();   ///< keep bits
  void plan();     ///< victims
  void compact();  ///< row moves
  void update_summaries(std::int32_t round);

  [[nodiscard]] bool shares_pages() const { return pool_ < requests_ * pages_; }
  [[nodiscard]] double k_bytes() const;      ///< K of the historical pages, read once
  [[nodiscard]] double score_bytes() const;  ///< scores, read once
  [[nodiscard]] double moved_bytes() const;  ///< read and written by the compaction planned last
  [[nodiscard]] double summary_bytes() const;

 private:
  static constexpr std::int32_t summary_slots = 512;
  static constexpr std::int32_t rounds = 8;

  [[nodiscard]] std::int64_t rows() const { return std::int64_t{shape_.layers} * shape_.kv_heads; }
  [[nodiscard]] std::int64_t query() const {
    return std::int64_t{shape_.query_heads} * shape_.head_dim;
  }
  [[nodiscard]] std::int64_t page_elements() const {
    return std::int64_t{shape_.kv_heads} * shape_.page_size * shape_.head_dim;
  }
  [[nodiscard]] KvView kv() const;
  [[nodiscard]] SummaryView summaries() const;

  CacheShape shape_;
  std::int32_t requests_, slots_, pages_;
  std::int64_t pool_;
  Device<std::uint16_t> k_, v_, q_;
  Device<float> summary_, rms_, scores_, delta_;
  Device<std::int64_t> steps_;
  Device<SummaryEntry> entries_;
  Device<std::int32_t> table_, page_kept_;
  Device<cuda::BoundaryRequest> boundary_;
  Device<cuda::RetentionRequest> retention_;
  Device<std::uint8_t> marks_;
  Device<std::uint64_t> sums_, bits_;
  Device<cuda::RequestPlan> plans_;
  Device<std::byte> workspace_;
};

}  // namespace growpage::bench
