// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>

#include "simt/runtime/device.hpp"
#include "simt/runtime/stream.hpp"

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

struct CUevent_st {
  std::shared_ptr<CUstream_st> stream;  ///< null until it is recorded
  std::uint64_t position = 0;           ///< items of the stream before it
  std::shared_ptr<simt::Capture> capture;
  std::shared_ptr<Clock::time_point> reached = std::make_shared<Clock::time_point>();

  bool complete() const { return stream == nullptr || stream->done >= position; }
};

using simt::ApiCall;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  const ApiCall call;
  const auto stream = simt::find_stream(handle);
  if (stream == nullptr) return simt::unknown_stream();
  event->stream = stream;
  event->capture = stream->capture;
  if (event->capture != nullptr) {
    event->position = stream->captured;
    return cudaSuccess;
  }
  // The item must not hold the event, which may be destroyed before it runs.
  event->reached = std::make_shared<Clock::time_point>();
  event->position = stream->enqueued + 1;
  return simt::enqueue(handle, [reached = event->reached] { *reached = Clock::now(); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const ApiCall call;
  if (const cudaError_t error = simt::not_while_capturing("cudaEventSynchronize", nullptr);
      error != cudaSuccess) {
    return error;
  }
  if (event->capture != nullptr) {
    return simt::refuse(cudaErrorCapturedEvent, "the event was recorded in a capture");
  }
  if (event->stream != nullptr) simt::drain(*event->stream, event->position);
  return simt::device_error();
}

// Lets some stream go on, as cudaStreamQuery does.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const ApiCall call;
  if (const cudaError_t error = simt::not_while_capturing("cudaEventQuery", nullptr);
      error != cudaSuccess) {
    return error;
  }
  if (event->capture != nullptr) {
    return simt::refuse(cudaErrorCapturedEvent, "the event was recorded in a capture");
  }
  const bool complete = event->complete();
  simt::advance();
  if (simt::device_error() != cudaSuccess) return simt::device_error();
  return complete ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const ApiCall call;
  if (start->stream == nullptr || end->stream == nullptr) {
    return simt::refuse(cudaErrorInvalidResourceHandle, "an event was never recorded");
  }
  if (!start->complete() || !end->complete()) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(*end->reached - *start->reached).count();
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  const ApiCall call;
  const auto stream = simt::find_stream(handle);
  if (stream == nullptr) return simt::unknown_stream();
  if (event->stream == nullptr) return cudaSuccess;
  if (event->capture != nullptr && event->capture == event->stream->capture) {
    return event->capture->wait(*stream, *event->stream, event->position);
  }
  if (event->capture != nullptr) {
    return simt::refuse(cudaErrorCapturedEvent, "the event was recorded in a capture that ended");
  }
  if (stream->capture != nullptr) {
    stream->capture->invalidate();
    return simt::refuse(cudaErrorStreamCaptureIsolation,
                        "a captured wait for an event outside the capture");
  }
  return simt::enqueue(handle, {}, {{event->stream, event->position}});
}

}  // extern "C"
