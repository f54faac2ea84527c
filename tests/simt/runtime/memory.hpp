// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace simt {

/// While device code runs. Outside of it AddressSanitizer reports host code that touches device
/// memory.
class DeviceScope {
 public:
  DeviceScope();
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
};

/// Host code within a DeviceScope: a host function in a stream.
class HostScope {
 public:
  HostScope();
  ~HostScope();
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;
};

/// Whether a call may touch `[pointer, pointer + bytes)`: a range that begins in memory of the
/// runtime stays in its allocation, and is on the side that the copy's kind says.
cudaError_t check_range(const void* pointer, std::size_t bytes, bool may_be_host,
                        bool may_be_device);

}  // namespace simt
