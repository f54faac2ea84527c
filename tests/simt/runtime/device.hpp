// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <mutex>
#include <string>

#include "simt/runtime/sanitizer.hpp"

namespace simt {

/// Every runtime function holds one: host threads take turns, as they do at a driver.
class ApiCall {
 public:
  ApiCall() : lock_(mutex()) {}

 private:
  static std::recursive_mutex& mutex();
  std::lock_guard<std::recursive_mutex> lock_;
  sanitizer::RuntimeScope scope_;
};

/// Notes an error for cudaGetLastError() and last_error_text(), and returns it.
cudaError_t refuse(cudaError_t error, const std::string& text);

/// The device is lost until cudaGetLastError() (a real one: until the process ends). Printed too,
/// for a test that looks at no error code.
void kernel_failed(const std::string& text);

/// cudaSuccess, or why the device is lost.
cudaError_t device_error();

}  // namespace simt
