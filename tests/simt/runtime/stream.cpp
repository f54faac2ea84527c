// SPDX-License-Identifier: Apache-2.0
#include "simt/runtime/stream.hpp"

#include <utility>

#include "simt/runtime/device.hpp"
#include "simt/runtime/grid.hpp"
#include "simt/runtime/memory.hpp"
#include "simt/runtime/random.hpp"
#include "simt/settings.hpp"

namespace simt {

namespace {

// A queue of a device is finite too, and dependencies are followed recursively.
constexpr std::uint64_t most_pending = 256;

CUstream_st& legacy() {
  static auto& stream = *new auto(std::make_shared<CUstream_st>());
  return *stream;
}

/// All streams, the legacy one first.
std::vector<std::shared_ptr<CUstream_st>>& streams() {
  static auto& all = *new std::vector<std::shared_ptr<CUstream_st>>{legacy().shared_from_this()};
  return all;
}

std::uint64_t pending() {
  std::uint64_t items = 0;
  for (const auto& stream : streams()) items += stream->queue.size();
  return items;
}

void run_first(CUstream_st& stream) {
  const QueuedWork item = std::move(stream.queue.front());
  stream.queue.pop_front();
  for (const Prefix& prefix : item.after) drain(*prefix.stream, prefix.count);
  if (item.run && device_error() == cudaSuccess) {
    const DeviceScope scope;
    try {
      item.run();
    } catch (const KernelFailure& failure) {
      kernel_failed(failure.what());
    }
  }
  ++stream.done;
}

// The legacy default stream waits for all blocking streams and they for it.
void order_with_legacy(CUstream_st& stream, std::vector<Prefix>& after) {
  if (&stream != &legacy()) {
    if (stream.blocking && !legacy().queue.empty()) after.push_back(legacy().all());
    return;
  }
  for (const auto& other : streams()) {
    if (other.get() != &stream && other->blocking && !other->queue.empty()) {
      after.push_back(other->all());
    }
  }
}

void go_on_at_random() {
  switch (settings().streams) {
    case Streams::eager:
      drain_all();
      break;
    case Streams::deferred:
      break;
    case Streams::mix:
      if (random_numbers().below(4) == 0) {
        for (unsigned steps = 1 + random_numbers().below(4); steps > 0 && advance(); --steps) {
        }
      }
      break;
  }
  if (pending() > most_pending) drain_all();
}

}  // namespace

cudaError_t unknown_stream() {
  return refuse(cudaErrorInvalidResourceHandle, "the stream has been destroyed");
}

std::shared_ptr<CUstream_st> find_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    return streams().front();
  }
  for (const auto& stream : streams()) {
    if (stream.get() == handle) return stream;
  }
  return nullptr;
}

cudaError_t enqueue(cudaStream_t handle, Work work, std::vector<Prefix> after) {
  if (device_error() != cudaSuccess) return device_error();
  const auto stream = find_stream(handle);
  if (stream == nullptr) return unknown_stream();
  if (stream->capture != nullptr) return stream->capture->add(*stream, std::move(work));
  if (stream.get() == &legacy()) {
    for (const auto& other : streams()) {
      if (other->capture != nullptr && other->blocking) {
        other->capture->invalidate();
        return refuse(cudaErrorStreamCaptureImplicit,
                      "the default stream is used while a blocking stream captures");
      }
    }
  }
  order_with_legacy(*stream, after);
  stream->queue.push_back({std::move(work), std::move(after)});
  ++stream->enqueued;
  go_on_at_random();
  return device_error();
}

void drain(CUstream_st& stream, std::uint64_t count) {
  while (stream.done < count && !stream.queue.empty()) run_first(stream);
}

bool advance() {
  std::vector<std::shared_ptr<CUstream_st>> busy;
  for (const auto& stream : streams()) {
    if (!stream->queue.empty()) busy.push_back(stream);
  }
  if (busy.empty()) return false;
  run_first(*busy[random_numbers().below(static_cast<unsigned>(busy.size()))]);
  return true;
}

void drain_all() {
  while (advance()) {
  }
}

}  // namespace simt

using simt::ApiCall;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  const ApiCall call;
  auto stream = std::make_shared<CUstream_st>();
  stream->blocking = (flags & cudaStreamNonBlocking) == 0;
  *handle = stream.get();
  simt::streams().push_back(std::move(stream));
  return simt::device_error();
}

cudaError_t cudaStreamCreate(cudaStream_t* handle) {
  return cudaStreamCreateWithFlags(handle, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int) {
  return cudaStreamCreateWithFlags(handle, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const ApiCall call;
  const auto stream = simt::find_stream(handle);
  if (stream == nullptr || stream.get() == &simt::legacy()) return simt::unknown_stream();
  if (stream->capture != nullptr) stream->capture->invalidate();
  simt::drain(*stream, stream->enqueued);
  std::erase(simt::streams(), stream);
  return simt::device_error();
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const ApiCall call;
  const auto stream = simt::find_stream(handle);
  if (stream == nullptr) return simt::unknown_stream();
  if (const cudaError_t error = simt::not_while_capturing("cudaStreamSynchronize", stream.get());
      error != cudaSuccess) {
    return error;
  }
  simt::drain(*stream, stream->enqueued);
  return simt::device_error();
}

// A loop that asks until it is done has to end: every question lets some stream go on.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const ApiCall call;
  const auto stream = simt::find_stream(handle);
  if (stream == nullptr) return simt::unknown_stream();
  if (const cudaError_t error = simt::not_while_capturing("cudaStreamQuery", stream.get());
      error != cudaSuccess) {
    return error;
  }
  const bool busy = !stream->queue.empty();
  simt::advance();
  if (simt::device_error() != cudaSuccess) return simt::device_error();
  return busy ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const ApiCall call;
  if (const cudaError_t error = simt::not_while_capturing("cudaDeviceSynchronize", nullptr);
      error != cudaSuccess) {
    return error;
  }
  simt::drain_all();
  return simt::device_error();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  const ApiCall call;
  return simt::enqueue(stream, [function, argument] {
    const simt::HostScope scope;
    function(argument);
  });
}

}  // extern "C"
