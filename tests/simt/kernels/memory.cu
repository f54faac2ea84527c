// SPDX-License-Identifier: Apache-2.0
#include "../../../cuda/simt.cuh"
#include "planted.hpp"
#include "simt/device_array.hpp"

namespace {

using simt::DeviceArray;

/// A sum that starts from what the last block, or nobody, left there.
template <bool planted>
__global__ void sum_ones(int* out) {
  GROWPAGE_SHARED(int, sum, );
  if (!planted && threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, 1);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

bool uninitialised_shared(bool planted) {
  const DeviceArray<int> out(64);
  growpage::cuda::launch(planted ? sum_ones<true> : sum_ones<false>, 2, 32, 0, nullptr, out.data());
  return out.host()[0] == 32;
}

__global__ void store(int* out, int value) { *out = value; }

bool missing_stream_sync(bool planted) {
  const DeviceArray<int> device(1);
  int host = 0;
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  growpage::cuda::launch(store, 1, 1, 0, stream, device.data(), 7);
  cudaMemcpyAsync(&host, device.data(), sizeof host, cudaMemcpyDeviceToHost, stream);
  if (!planted) cudaStreamSynchronize(stream);
  const bool right = host == 7;
  cudaStreamDestroy(stream);
  return right;
}

bool missing_event_wait(bool planted) {
  const DeviceArray<int> device(1);
  int host = 0;
  cudaStream_t producer = nullptr;
  cudaStream_t consumer = nullptr;
  cudaEvent_t produced = nullptr;
  cudaStreamCreateWithFlags(&producer, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&consumer, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&produced, cudaEventDisableTiming);
  growpage::cuda::launch(store, 1, 1, 0, producer, device.data(), 7);
  cudaEventRecord(produced, producer);
  if (!planted) cudaStreamWaitEvent(consumer, produced, 0);
  cudaMemcpyAsync(&host, device.data(), sizeof host, cudaMemcpyDeviceToHost, consumer);
  cudaStreamSynchronize(consumer);
  const bool right = host == 7;
  cudaEventDestroy(produced);
  cudaStreamDestroy(producer);
  cudaStreamDestroy(consumer);
  return right;
}

bool host_dereference(bool planted) {
  const DeviceArray<int> device(1, 7);
  return (planted ? *device.data() : device.host()[0]) == 7;
}

constexpr Planted memory[] = {{"uninitialised_shared", uninitialised_shared},
                              {"missing_stream_sync", missing_stream_sync},
                              {"missing_event_wait", missing_event_wait},
                              {"host_dereference", host_dereference}};

}  // namespace

std::span<const Planted> planted_memory() { return memory; }
