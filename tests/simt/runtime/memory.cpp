// SPDX-License-Identifier: Apache-2.0
// Device memory and pinned host memory.
#include "simt/runtime/memory.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "simt/runtime/device.hpp"
#include "simt/runtime/sanitizer.hpp"
#include "simt/runtime/stream.hpp"

namespace simt {

namespace {

constexpr std::size_t alignment = 256;
constexpr int garbage = 0xA5;
constexpr std::size_t device_bytes = std::size_t{8} << 30;

enum class Kind { device, pinned, registered };

struct Allocation {
  std::size_t bytes;
  Kind kind;
};

using Allocations = std::map<std::uintptr_t, Allocation>;

Allocations& allocations() {
  static auto& all = *new Allocations;
  return all;
}

std::size_t device_bytes_used = 0;
int device_scopes = 0;

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// The allocation that the pointer points into.
Allocations::iterator find(const void* pointer) {
  auto after = allocations().upper_bound(address(pointer));
  if (after == allocations().begin()) return allocations().end();
  --after;
  const std::size_t offset = address(pointer) - after->first;
  return offset < after->second.bytes ? after : allocations().end();
}

void hide_from_host(bool hidden) {
  if constexpr (sanitizer::address) {
    for (const auto& [begin, allocation] : allocations()) {
      if (allocation.kind != Kind::device) continue;
      const auto* memory = reinterpret_cast<const void*>(begin);
      hidden ? sanitizer::poison(memory, allocation.bytes)
             : sanitizer::unpoison(memory, allocation.bytes);
    }
  }
}

cudaError_t allocate(void** pointer, std::size_t bytes, Kind kind) {
  if (device_error() != cudaSuccess) return device_error();
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const bool too_much = kind == Kind::device && bytes > device_bytes - device_bytes_used;
  if (too_much || posix_memalign(pointer, alignment, bytes) != 0) {
    *pointer = nullptr;
    return refuse(cudaErrorMemoryAllocation, fmt::format("out of memory for {} bytes", bytes));
  }
  std::memset(*pointer, garbage, bytes);
  allocations()[address(*pointer)] = {bytes, kind};
  if (kind == Kind::device) {
    device_bytes_used += bytes;
    if (device_scopes == 0) sanitizer::poison(*pointer, bytes);
  }
  return cudaSuccess;
}

cudaError_t release(void* pointer, Kind kind) {
  if (pointer == nullptr) return cudaSuccess;
  const auto found = allocations().find(address(pointer));
  if (found == allocations().end() || found->second.kind != kind) {
    return refuse(cudaErrorInvalidValue, "the pointer to free was not allocated, or is freed");
  }
  if (kind == Kind::device) {
    device_bytes_used -= found->second.bytes;
    sanitizer::unpoison(pointer, found->second.bytes);
  }
  if (kind != Kind::registered) std::free(pointer);
  allocations().erase(found);
  return cudaSuccess;
}

// Freeing waits for the device, as it does in CUDA.
cudaError_t release_when_idle(const char* call, void* pointer, Kind kind) {
  if (const cudaError_t error = not_while_capturing(call, nullptr); error != cudaSuccess) {
    return error;
  }
  drain_all();
  const cudaError_t error = release(pointer, kind);
  return error != cudaSuccess ? error : device_error();
}

cudaError_t allocate_now(const char* call, void** pointer, std::size_t bytes, Kind kind) {
  if (const cudaError_t error = not_while_capturing(call, nullptr); error != cudaSuccess) {
    return error;
  }
  return allocate(pointer, bytes, kind);
}

}  // namespace

DeviceScope::DeviceScope() {
  if (device_scopes++ == 0) hide_from_host(false);
}
DeviceScope::~DeviceScope() {
  if (--device_scopes == 0) hide_from_host(true);
}

HostScope::HostScope() { hide_from_host(true); }
HostScope::~HostScope() { hide_from_host(false); }

cudaError_t check_range(const void* pointer, std::size_t bytes, bool may_be_host,
                        bool may_be_device) {
  if (bytes == 0) return cudaSuccess;
  const auto found = find(pointer);
  const bool known = found != allocations().end();
  const bool device = known && found->second.kind == Kind::device;
  if (device ? !may_be_device : !may_be_host) {
    return refuse(cudaErrorInvalidValue,
                  device ? "device memory where host memory is meant"
                         : "memory that is not the device's where device memory is meant");
  }
  if (known && address(pointer) - found->first + bytes > found->second.bytes) {
    return refuse(cudaErrorInvalidValue,
                  fmt::format("{} bytes reach beyond the end of an allocation of {}", bytes,
                              found->second.bytes));
  }
  return cudaSuccess;
}

}  // namespace simt

using simt::ApiCall;
using simt::Kind;

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  const ApiCall call;
  return simt::allocate_now("cudaMalloc", pointer, bytes, Kind::device);
}

cudaError_t cudaFree(void* pointer) {
  const ApiCall call;
  return simt::release_when_idle("cudaFree", pointer, Kind::device);
}

/// At once: memory that a stream has not come to yet is only early. In a capture it would be a node
/// of the graph, which the emulation has not.
cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  const ApiCall call;
  if (const cudaError_t error =
          simt::not_while_capturing("cudaMallocAsync", simt::find_stream(stream).get());
      error != cudaSuccess) {
    return error;
  }
  return simt::allocate(pointer, bytes, Kind::device);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  const ApiCall call;
  if (const cudaError_t error =
          simt::not_while_capturing("cudaFreeAsync", simt::find_stream(stream).get());
      error != cudaSuccess) {
    return error;
  }
  return simt::enqueue(stream, [pointer] { simt::release(pointer, Kind::device); });
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  const ApiCall call;
  return simt::allocate_now("cudaHostAlloc", pointer, bytes, Kind::pinned);
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
  const ApiCall call;
  return simt::release_when_idle("cudaFreeHost", pointer, Kind::pinned);
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  const ApiCall call;
  if (const cudaError_t error = simt::not_while_capturing("cudaHostRegister", nullptr);
      error != cudaSuccess) {
    return error;
  }
  if (pointer == nullptr || bytes == 0) {
    return simt::refuse(cudaErrorInvalidValue, "nothing to register");
  }
  if (simt::find(pointer) != simt::allocations().end()) {
    return simt::refuse(cudaErrorHostMemoryAlreadyRegistered, "the memory is known already");
  }
  simt::allocations()[simt::address(pointer)] = {bytes, Kind::registered};
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  const ApiCall call;
  return simt::release_when_idle("cudaHostUnregister", pointer, Kind::registered);
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  const ApiCall call;
  if (simt::find(host) == simt::allocations().end()) {
    return simt::refuse(cudaErrorInvalidValue, "the host memory is not pinned");
  }
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const ApiCall call;
  *attributes = {};
  attributes->type = cudaMemoryTypeUnregistered;
  attributes->device = -1;
  attributes->hostPointer = const_cast<void*>(pointer);
  const auto found = simt::find(pointer);
  if (found == simt::allocations().end()) return cudaSuccess;
  const bool device = found->second.kind == Kind::device;
  attributes->type = device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  attributes->device = 0;
  attributes->devicePointer = const_cast<void*>(pointer);
  if (device) attributes->hostPointer = nullptr;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  const ApiCall call;
  *available = simt::device_bytes - simt::device_bytes_used;
  *total = simt::device_bytes;
  return cudaSuccess;
}

}  // extern "C"
