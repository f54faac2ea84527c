// SPDX-License-Identifier: Apache-2.0
#include "simt/runtime/grid.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simt/runtime/block.hpp"
#include "simt/runtime/device.hpp"
#include "simt/runtime/random.hpp"
#include "simt/runtime/sanitizer.hpp"
#include "simt/runtime/shared_memory.hpp"
#include "simt/runtime/stream.hpp"
#include "simt/settings.hpp"

namespace simt {

namespace {

std::map<const void*, std::size_t>& allowed_shared_memory() {
  static std::map<const void*, std::size_t> bytes;
  return bytes;
}

std::string text(dim3 extent) { return fmt::format("({}, {}, {})", extent.x, extent.y, extent.z); }

// The limits of every device since compute capability 3.0; of shared memory those of 9.0.
cudaError_t refusal(const void* kernel, const LaunchShape& shape) {
  const dim3 grid = shape.grid;
  const dim3 block = shape.block;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > Block::max_threads || block.z > 64) {
    return refuse(cudaErrorInvalidConfiguration, fmt::format("a block of {} threads", text(block)));
  }
  if (grid.x == 0 || grid.x > 0x7FFFFFFFU || grid.y == 0 || grid.y > 65535 || grid.z == 0 ||
      grid.z > 65535) {
    return refuse(cudaErrorInvalidConfiguration, fmt::format("a grid of {} blocks", text(grid)));
  }
  const auto found = allowed_shared_memory().find(kernel);
  const std::size_t allowed =
      found == allowed_shared_memory().end() ? shared_memory_default : found->second;
  if (shape.shared_bytes > allowed) {
    return refuse(cudaErrorInvalidValue,
                  fmt::format("{} bytes of dynamic shared memory where {} are allowed "
                              "(cudaFuncAttributeMaxDynamicSharedMemorySize)",
                              shape.shared_bytes, allowed));
  }
  return cudaSuccess;
}

std::vector<std::uint64_t> block_order(std::uint64_t blocks) {
  std::vector<std::uint64_t> order(blocks);
  for (std::uint64_t i = 0; i < blocks; ++i) order[i] = i;
  if (settings().order == Order::forward) return order;
  for (std::uint64_t i = blocks; i > 1; --i) {
    std::swap(order[i - 1], order[random_numbers().below(static_cast<unsigned>(i))]);
  }
  return order;
}

}  // namespace

void run_grid(const std::function<void()>& run_thread, const LaunchShape& shape) {
  Block& block = the_block();
  const dim3 grid = shape.grid;
  std::string error;
  for (const std::uint64_t linear : block_order(std::uint64_t{grid.x} * grid.y * grid.z)) {
    const uint3 index{static_cast<unsigned>(linear % grid.x),
                      static_cast<unsigned>(linear / grid.x % grid.y),
                      static_cast<unsigned>(linear / grid.x / grid.y)};
    const BlockMemory memory(shape.shared_bytes);
    std::unique_ptr<char[]> edges;
    if (settings().grid_races) edges = std::make_unique<char[]>(Block::all_edge_bytes);
    if (!block.run(run_thread, index, shape.block, grid, edges.get())) {
      error = block.error();
      break;
    }
  }
  Block::finish_grid();
  if (!error.empty()) throw KernelFailure(error);
}

void allow_shared_memory(const void* kernel, std::size_t bytes) {
  allowed_shared_memory()[kernel] = bytes;
}

cudaError_t launch_kernel(std::function<void()> run_thread, const void* kernel,
                          const LaunchShape& shape, cudaStream_t stream) {
  const ApiCall call;
  if (const cudaError_t error = refusal(kernel, shape); error != cudaSuccess) return error;
  return enqueue(stream,
                 [run_thread = std::move(run_thread), shape] { run_grid(run_thread, shape); });
}

}  // namespace simt
