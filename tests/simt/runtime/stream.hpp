// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "simt/runtime/capture.hpp"

namespace simt {

/// What a stream does in its turn.
using Work = std::function<void()>;

/// The first `count` items of a stream.
struct Prefix {
  std::shared_ptr<CUstream_st> stream;
  std::uint64_t count;
};

struct QueuedWork {
  Work run;
  std::vector<Prefix> after;  ///< of other streams
};

}  // namespace simt

struct CUstream_st : std::enable_shared_from_this<CUstream_st> {
  std::deque<simt::QueuedWork> queue;
  std::uint64_t enqueued = 0;  ///< ever
  std::uint64_t done = 0;
  bool blocking = true;  ///< ordered with the legacy default stream
  std::shared_ptr<simt::Capture> capture;
  std::uint64_t captured = 0;  ///< items that it gave to `capture`

  simt::Prefix all() { return {shared_from_this(), enqueued}; }
};

namespace simt {

/// Null for a handle of a stream that has been destroyed.
std::shared_ptr<CUstream_st> find_stream(cudaStream_t handle);

/// Puts work at the end of a stream, or into the graph that the stream captures, and perhaps lets
/// streams go on (Settings::streams).
cudaError_t enqueue(cudaStream_t stream, Work work, std::vector<Prefix> after = {});

/// Lets a stream go on until it has done that many items.
void drain(CUstream_st& stream, std::uint64_t count);
/// Lets all streams finish, in random order.
void drain_all();
/// Lets one stream do one item; false when there is none.
bool advance();

cudaError_t unknown_stream();

}  // namespace simt
