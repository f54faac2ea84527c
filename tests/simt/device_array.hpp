// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

namespace simt {

/// Device memory of a test: filled from the host, read back with host().
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count, T value = T{})
      : DeviceArray(std::vector<T>(count, value)) {}
  explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
    cudaMalloc(reinterpret_cast<void**>(&data_), bytes());
    cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  /// Waits for the default stream and those that it waits for.
  std::vector<T> host() const {
    std::vector<T> values(count_);
    cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

}  // namespace simt
