// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace simt {

/// A capture under way: streams give it their work instead of doing it. The order of the calls is
/// one of the orders that the graph allows, so a list is enough to replay it.
class Capture {
 public:
  Capture(CUstream_st& origin, cudaStreamCaptureMode mode);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cudaError_t add(CUstream_st& stream, std::function<void()> work);
  /// A stream waits for an event that a captured stream recorded after `position` of its items: it
  /// joins the capture, and the other stream is joined with it.
  cudaError_t wait(CUstream_st& stream, CUstream_st& recorded_on, std::uint64_t position);
  /// What a capture forbids has happened; it ends without a graph.
  void invalidate() { valid_ = false; }
  /// The origin ends it: takes all streams out of it.
  cudaError_t end(const CUstream_st& stream, std::vector<std::function<void()>>& work);

  bool valid() const { return valid_; }
  /// Whether the mode forbids this thread's calls that may wait for the device.
  bool forbids_unsafe_calls() const;

 private:
  CUstream_st* origin_;
  cudaStreamCaptureMode mode_;
  std::thread::id thread_ = std::this_thread::get_id();
  std::vector<std::function<void()>> work_;
  std::map<std::shared_ptr<CUstream_st>, bool> joined_;  ///< the streams but the origin
  bool valid_ = true;
};

/// For calls that wait for the device or change its memory: cudaSuccess, or the refusal where a
/// capture forbids the call. A capturing `stream` forbids it in every mode.
cudaError_t not_while_capturing(const char* call, CUstream_st* stream);

}  // namespace simt
