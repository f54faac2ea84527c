// SPDX-License-Identifier: Apache-2.0
// Stream capture and graphs.
#include "simt/runtime/capture.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "simt/runtime/device.hpp"
#include "simt/runtime/stream.hpp"

struct CUgraph_st {
  std::vector<simt::Work> work;
};
struct CUgraphExec_st {
  std::vector<simt::Work> work;
};

namespace simt {

namespace {

std::vector<Capture*>& captures() {
  static auto& active = *new std::vector<Capture*>;
  return active;
}

}  // namespace

Capture::Capture(CUstream_st& origin, cudaStreamCaptureMode mode) : origin_(&origin), mode_(mode) {
  captures().push_back(this);
}

Capture::~Capture() { std::erase(captures(), this); }

bool Capture::forbids_unsafe_calls() const {
  return mode_ == cudaStreamCaptureModeGlobal ||
         (mode_ == cudaStreamCaptureModeThreadLocal && thread_ == std::this_thread::get_id());
}

cudaError_t Capture::add(CUstream_st& stream, std::function<void()> work) {
  if (!valid_) {
    return refuse(cudaErrorStreamCaptureInvalidated, "the stream's capture has been invalidated");
  }
  work_.push_back(std::move(work));
  ++stream.captured;
  if (&stream != origin_) joined_[stream.shared_from_this()] = false;
  return cudaSuccess;
}

cudaError_t Capture::wait(CUstream_st& stream, CUstream_st& recorded_on, std::uint64_t position) {
  if (stream.capture == nullptr) {
    stream.capture = recorded_on.capture;
    stream.captured = 0;
    joined_[stream.shared_from_this()] = false;
  }
  if (stream.capture != recorded_on.capture) {
    invalidate();
    return refuse(cudaErrorStreamCaptureMerge, "a wait would merge two captures");
  }
  const bool everything = position == recorded_on.captured;
  if (everything && &recorded_on != origin_ && &recorded_on != &stream) {
    joined_[recorded_on.shared_from_this()] = true;
  }
  return cudaSuccess;
}

cudaError_t Capture::end(const CUstream_st& stream, std::vector<std::function<void()>>& work) {
  if (&stream != origin_) {
    invalidate();
    return refuse(cudaErrorStreamCaptureUnmatched, "the capture began on another stream");
  }
  const std::shared_ptr<Capture> self = origin_->capture;
  std::erase(captures(), this);  // events may hold it for longer
  bool joined = true;
  for (const auto& [other, is_joined] : joined_) {
    other->capture = nullptr;
    joined = joined && is_joined;
  }
  origin_->capture = nullptr;
  if (!valid_) {
    return refuse(cudaErrorStreamCaptureInvalidated, "the capture has been invalidated");
  }
  if (!joined) {
    return refuse(cudaErrorStreamCaptureUnjoined, "a stream that forked off was not joined");
  }
  work = std::move(work_);
  return cudaSuccess;
}

cudaError_t not_while_capturing(const char* call, CUstream_st* stream) {
  bool forbidden = false;
  if (stream != nullptr && stream->capture != nullptr) {
    stream->capture->invalidate();
    forbidden = true;
  }
  for (Capture* capture : captures()) {
    if (!capture->forbids_unsafe_calls()) continue;
    capture->invalidate();
    forbidden = true;
  }
  if (!forbidden) return cudaSuccess;
  return refuse(cudaErrorStreamCaptureUnsupported, fmt::format("{} during a capture", call));
}

}  // namespace simt

using simt::ApiCall;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const ApiCall call;
  const auto stream = simt::find_stream(handle);
  if (stream == nullptr) return simt::unknown_stream();
  if (stream == simt::find_stream(nullptr)) {
    return simt::refuse(cudaErrorStreamCaptureUnsupported, "the default stream cannot capture");
  }
  if (stream->capture != nullptr) {
    return simt::refuse(cudaErrorIllegalState, "the stream already captures");
  }
  stream->capture = std::make_shared<simt::Capture>(*stream, mode);
  stream->captured = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const ApiCall call;
  *graph = nullptr;
  const auto stream = simt::find_stream(handle);
  if (stream == nullptr) return simt::unknown_stream();
  if (stream->capture == nullptr) {
    return simt::refuse(cudaErrorIllegalState, "the stream captures nothing");
  }
  std::vector<simt::Work> work;
  const cudaError_t error = stream->capture->end(*stream, work);
  if (error == cudaSuccess) *graph = new CUgraph_st{std::move(work)};
  return error;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const ApiCall call;
  const auto stream = simt::find_stream(handle);
  if (stream == nullptr) return simt::unknown_stream();
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->valid() ? cudaStreamCaptureStatusActive
                                       : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const ApiCall call;
  for (const simt::Work& work : executable->work) {
    if (const cudaError_t error = simt::enqueue(stream, work); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

/// Only how many: `nodes` has to be null.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  const ApiCall call;
  if (nodes != nullptr) {
    return simt::refuse(cudaErrorNotSupported, "the emulation's graphs have no node handles");
  }
  *count = graph->work.size();
  return cudaSuccess;
}

}  // extern "C"
