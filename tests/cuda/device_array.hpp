// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

#include "support/catch.hpp"

namespace growpage::test {

/// Device memory with a host copy's values; freed with its scope.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : size_(values.size()) {
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, bytes() + 1) == cudaSuccess);  // never null
    data_ = static_cast<T*>(memory);
    upload(values);
  }
  ~DeviceArray() { (void)cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  void upload(const std::vector<T>& values) {
    if (size_ == 0) return;  // an empty vector's data may be null
    REQUIRE(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  [[nodiscard]] std::vector<T> download() const {
    std::vector<T> values(size_);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    if (size_ == 0) return values;
    REQUIRE(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost) == cudaSuccess);
    return values;
  }
  [[nodiscard]] T* get() const { return data_; }

 private:
  [[nodiscard]] std::size_t bytes() const { return size_ * sizeof(T); }
  std::size_t size_;
  T* data_ = nullptr;
};

}  // namespace growpage::test
