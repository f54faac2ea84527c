// SPDX-License-Identifier: Apache-2.0
// The device as a whole: errors, attributes, settings.
#include "simt/runtime/device.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simt/runtime/grid.hpp"
#include "simt/runtime/random.hpp"
#include "simt/settings.hpp"

namespace simt {

namespace {

struct ErrorState {
  cudaError_t last = cudaSuccess;
  cudaError_t device = cudaSuccess;
  std::string text;
};

ErrorState& errors() {
  static auto& state = *new ErrorState;
  return state;
}

template <class T>
struct Named {
  const char* name;
  T value;
};

constexpr Named<Order> orders[] = {
    {"mix", Order::mix},           {"forward", Order::forward},
    {"reverse", Order::reverse},   {"uniform", Order::uniform},
    {"priority", Order::priority}, {"warp_priority", Order::warp_priority},
    {"starved", Order::starved}};
constexpr Named<Streams> stream_orders[] = {
    {"mix", Streams::mix}, {"deferred", Streams::deferred}, {"eager", Streams::eager}};

template <class T, std::size_t n>
T from_environment(const char* variable, const Named<T> (&choices)[n], T otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  for (const auto& choice : choices) {
    if (std::strcmp(text, choice.name) == 0) return choice.value;
  }
  std::fprintf(stderr, "simt: %s=%s is none of", variable, text);
  for (const auto& choice : choices) std::fprintf(stderr, " %s", choice.name);
  std::fputc('\n', stderr);
  std::abort();
}

Settings environment_settings() {
  Settings settings;
  if (const char* seed = std::getenv("SIMT_SEED")) settings.seed = std::strtoull(seed, nullptr, 0);
  settings.order = from_environment("SIMT_SCHED", orders, Order::mix);
  settings.streams = from_environment("SIMT_STREAMS", stream_orders, Streams::mix);
  const char* grid_races = std::getenv("SIMT_GRID_RACES");
  settings.grid_races = grid_races != nullptr && std::strcmp(grid_races, "1") == 0;
  return settings;
}

struct Schedule {
  Settings settings;
  Random random{settings.seed};

  explicit Schedule(const Settings& chosen) : settings(chosen) {
    // At once, not at the end: whatever ends the process, the seed has been seen.
    std::fprintf(stderr, "simt: SIMT_SEED=%llu repeats these schedules\n",
                 static_cast<unsigned long long>(settings.seed));
  }
};

Schedule& schedule() {
  static Schedule state{environment_settings()};
  return state;
}

}  // namespace

const Settings& settings() { return schedule().settings; }

void configure(const Settings& settings) {
  const ApiCall call;
  schedule().settings = settings;
  schedule().random = Random(settings.seed);
}

Random& random_numbers() { return schedule().random; }

std::string last_error_text() {
  const ApiCall call;
  return errors().text;
}

std::recursive_mutex& ApiCall::mutex() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

cudaError_t refuse(cudaError_t error, const std::string& text) {
  errors().last = error;
  errors().text = text;
  return error;
}

void kernel_failed(const std::string& text) {
  errors().device = cudaErrorLaunchFailure;
  refuse(cudaErrorLaunchFailure, text);
  std::fprintf(stderr, "simt: kernel failed: %s (SIMT_SEED=%llu)\n", text.c_str(),
               static_cast<unsigned long long>(settings().seed));
}

cudaError_t device_error() { return errors().device; }

}  // namespace simt

using simt::ApiCall;

extern "C" {

cudaError_t cudaGetLastError() {
  const ApiCall call;
  const cudaError_t error = simt::errors().last;
  simt::errors() = {};
  return error;
}

cudaError_t cudaPeekAtLastError() {
  const ApiCall call;
  return simt::errors().last;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureImplicit:
      return "cudaErrorStreamCaptureImplicit";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    default:
      return "an error that the emulation does not name";
  }
}

const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const ApiCall call;
  return device == 0 ? cudaSuccess : simt::refuse(cudaErrorInvalidDevice, "there is only device 0");
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {};
  std::strcpy(properties->name, "emulated");
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const ApiCall call;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = 1024;
      return cudaSuccess;
    case cudaDevAttrWarpSize:
      *value = 32;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = 4;  // small, so that grids sized by it loop
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = 2048;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(simt::shared_memory_default);
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(simt::shared_memory_limit);
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 8;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrConcurrentManagedAccess:
      *value = 0;
      return cudaSuccess;
    default:
      return simt::refuse(cudaErrorInvalidValue,
                          fmt::format("the emulation has no device attribute {}", int{attribute}));
  }
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const ApiCall call;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<std::size_t>(value) > simt::shared_memory_limit) {
    return simt::refuse(cudaErrorInvalidValue,
                        fmt::format("{} bytes of dynamic shared memory", value));
  }
  simt::allow_shared_memory(kernel, static_cast<std::size_t>(value));
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*,
                                                                   int block_size, std::size_t,
                                                                   unsigned) {
  *blocks = block_size > 0 ? 2048 / block_size : 0;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int block_size,
                                                          std::size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, block_size,
                                                                shared_bytes, 0);
}

}  // extern "C"
