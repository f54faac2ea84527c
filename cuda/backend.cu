// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "growpage/backend/cuda.hpp"
#include "growpage/backend/cuda/append.hpp"
#include "growpage/backend/cuda/attention.hpp"
#include "growpage/backend/cuda/boundary.hpp"
#include "growpage/backend/cuda/compaction.hpp"
#include "growpage/backend/cuda/pages.hpp"
#include "growpage/backend/cuda/selection.hpp"
#include "growpage/backend/cuda/summary.hpp"
#include "listed.hpp"
#include "simt.cuh"
#include "staging.cuh"
#include "status.cuh"

namespace growpage {
namespace {

using cuda::device_status;
using cuda::Staging;
using cuda::to_cuda;

/// Requests of a paged_attention that share the workspace at a time.
constexpr std::int32_t attention_requests = 16;

[[nodiscard]] std::int64_t pages_of(std::int64_t slots, std::int32_t page_size) noexcept {
  return (slots + page_size - 1) / page_size;
}

/// What a call may stage in front of its scratch.
[[nodiscard]] std::int64_t staging_bytes(const CacheShape& shape, std::int32_t max_slots) noexcept {
  const std::int64_t pages = pages_of(max_slots, shape.page_size);
  return 2 * Staging::bytes<std::int32_t>(pages)       // block table, page_kept
         + Staging::bytes<std::uint8_t>(pages)         // marks
         + Staging::bytes<std::uint8_t>(shape.layers)  // layer mask
         + Staging::bytes<cuda::BoundaryRequest>(1) + Staging::bytes<cuda::RetentionRequest>(1) +
         Staging::bytes<cuda::RequestPlan>(1) + Staging::bytes<std::uint64_t>(2);
}

[[nodiscard]] std::int64_t counted_layers(const DemandOptions& demand, std::int32_t layers) {
  if (demand.layer_mask == nullptr) return layers;
  return layers - std::count(demand.layer_mask, demand.layer_mask + layers, std::uint8_t{0});
}

[[nodiscard]] std::span<const std::int32_t> block_table(const PageId* pages, std::int64_t count) {
  static_assert(sizeof(PageId) == sizeof(std::int32_t));
  return {reinterpret_cast<const std::int32_t*>(pages), static_cast<std::size_t>(count)};
}

/// A device call that no stream orders: allocations.
void* zeroed(void* memory, cudaError_t error, std::int64_t bytes) noexcept {
  if (error != cudaSuccess) {
    (void)cudaGetLastError();  // null is the answer; it must not surface in a later call
    return nullptr;
  }
  if (cudaMemset(memory, 0, static_cast<std::size_t>(bytes)) != cudaSuccess) {
    (void)cudaFree(memory);
    return nullptr;
  }
  return memory;
}

[[nodiscard]] Status read_back(void* host, const void* device, std::size_t bytes,
                               cudaStream_t stream) {
  cudaError_t error = cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  return device_status(error, "cudaMemcpyAsync");
}

/// ok when kernels can address `host`.
[[nodiscard]] Status require_addressable(const void* host) {
  cudaPointerAttributes attributes{};
  const cudaError_t error = cudaPointerGetAttributes(&attributes, host);
  if (error != cudaSuccess) return device_status(error, "cudaPointerGetAttributes");
  if (attributes.type != cudaMemoryTypeUnregistered) return {};
  return Status::error(StatusCode::unsupported, "host", "ordinary host memory",
                       "memory of allocate_host, or registered with CUDA");
}

}  // namespace

bool CudaBackend::keep(const Status& status) {
  if (!status.ok() && status_.ok()) status_ = status;
  return status.ok();
}

bool CudaBackend::use_device() {
  return device_ < 0 || keep(device_status(cudaSetDevice(device_), "cudaSetDevice"));
}

Status CudaBackend::take_status() noexcept { return std::exchange(status_, Status()); }

void* CudaBackend::allocate(std::int64_t bytes) noexcept {
  if (bytes < 0) return nullptr;
  if (device_ >= 0 && cudaSetDevice(device_) != cudaSuccess) return nullptr;
  void* memory = nullptr;
  const std::int64_t size = std::max<std::int64_t>(bytes, 1);
  const cudaError_t error = cudaMalloc(&memory, static_cast<std::size_t>(size));
  return zeroed(memory, error, size);
}

void CudaBackend::deallocate(void* memory, std::int64_t /*bytes*/) noexcept {
  (void)cudaFree(memory);  // also waits for the work that uses it
}

void* CudaBackend::allocate_host(std::int64_t bytes) noexcept {
  if (bytes < 0) return nullptr;
  void* memory = nullptr;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  if (cudaMallocHost(&memory, size) != cudaSuccess) {
    (void)cudaGetLastError();
    return nullptr;
  }
  std::memset(memory, 0, size);
  return memory;
}

void CudaBackend::deallocate_host(void* memory, std::int64_t /*bytes*/) noexcept {
  (void)cudaFreeHost(memory);
}

std::int64_t CudaBackend::workspace_bytes(const CacheShape& shape,
                                          std::int32_t max_slots) const noexcept {
  // A window is no longer than a page.
  const std::int64_t boundary =
      cuda::boundary_workspace_bytes(shape, 1, max_slots, shape.page_size);
  const std::int64_t attention =
      cuda::paged_attention_workspace_bytes(shape, attention_requests, max_slots);
  return staging_bytes(shape, max_slots) + std::max(boundary, attention);
}

void CudaBackend::summary_update(const SummaryUpdate& update, StreamView stream) {
  if (!use_device()) return;
  cuda::SummaryBatch batch;
  batch.state = update.state;
  batch.options = update.options;
  batch.first_layer = update.first_layer;
  batch.layers = update.layers;
  batch.q = update.q;
  batch.q_dtype = update.q_dtype;
  batch.q_layer_stride = update.q_layer_stride;
  batch.q_request_stride = update.q_request_stride;
  batch.q_head_stride = update.q_head_stride;
  const auto count = static_cast<std::size_t>(std::max(update.requests, 0));
  keep(cuda::summary_update(batch, {update.entries, count}, stream));
}

void CudaBackend::boundary_pass(const BoundaryPass& pass, void* workspace, StreamView stream) {
  if (!use_device()) return;
  const CacheShape& shape = pass.shape;
  Staging staging(workspace, to_cuda(stream));
  cuda::BoundaryBatch batch;
  batch.shape = shape;
  batch.kv = pass.kv;
  batch.summaries = pass.summaries;
  batch.rope = pass.rope;
  batch.demand = pass.demand;
  batch.retention = pass.retention;
  batch.softmax_scale = pass.softmax_scale;
  batch.requests = 1;
  batch.max_slots = pass.input.slots;
  const bool old = pass.old_scores != nullptr;
  batch.inputs = staging.put(cuda::BoundaryRequest{pass.input.slots, pass.input.candidates,
                                                   pass.input.summary_slot,
                                                   old ? pass.old_slots : 0, pass.input.position});
  const std::int64_t pages = pages_of(pass.input.slots, shape.page_size);
  batch.block_table = staging.put(block_table(pass.input.pages, pages));
  batch.block_table_stride = pages;
  if (pass.demand.layer_mask != nullptr) {
    batch.demand.layer_mask = staging.put(std::span<const std::uint8_t>(
        pass.demand.layer_mask, static_cast<std::size_t>(shape.layers)));
  }
  batch.scores = pass.scores;
  batch.score_stride = pass.score_stride;
  batch.score_request_stride = pass.score_stride * shape.layers * shape.kv_heads;
  batch.old_scores = pass.old_scores;
  const bool demand = pass.result != nullptr && pass.input.candidates > 0;
  if (demand) batch.sums = staging.take<std::uint64_t>(2);
  if (!keep(staging.status()) || !keep(cuda::boundary_pass(batch, staging.end(), stream))) return;
  if (!demand) return;
  std::uint64_t sums[2] = {};
  if (!keep(read_back(sums, batch.sums, sizeof sums, to_cuda(stream)))) return;
  pass.result->short_sum += static_cast<double>(sums[0]) * 0x1p-40;
  pass.result->long_sum += static_cast<double>(sums[1]) * 0x1p-40;
  pass.result->count += counted_layers(pass.demand, shape.layers) * shape.kv_heads;
}

void CudaBackend::select(const Selection& selection, void* workspace, StreamView stream) {
  if (!use_device()) return;
  const KeepSet& out = selection.out;
  const auto pages = static_cast<std::size_t>(out.pages);
  Staging staging(workspace, to_cuda(stream));
  cuda::SelectionBatch batch;
  batch.shape = selection.shape;
  batch.retention = selection.retention;
  batch.requests = 1;
  batch.max_slots = out.slots;
  batch.inputs =
      staging.put(cuda::RetentionRequest{out.slots, selection.protected_slots, selection.keep, 0});
  batch.scores = selection.scores;
  batch.score_stride = selection.score_stride;
  batch.marks = staging.put(std::span<const std::uint8_t>(selection.marks, pages));
  batch.mark_stride = out.pages;
  batch.bits = out.bits;
  batch.words = out.words;
  batch.page_kept = staging.take<std::int32_t>(out.pages);
  batch.page_kept_stride = out.pages;
  if (!keep(staging.status()) || !keep(cuda::select(batch, stream))) return;
  keep(read_back(out.page_kept, batch.page_kept, pages * sizeof(std::int32_t), to_cuda(stream)));
}

void CudaBackend::compact(const CompactionMove& move, void* workspace, StreamView stream) {
  if (!use_device()) return;
  const KeepSet& kept = move.keep;
  Staging staging(workspace, to_cuda(stream));
  cuda::CompactionBatch batch;
  batch.shape = move.shape;
  batch.kv = move.kv;
  batch.strategy = move.plan.strategy;
  batch.requests = 1;
  batch.inputs = staging.put(cuda::RetentionRequest{kept.slots, 0, 0, move.plan.victims});
  batch.plans = staging.put(cuda::RequestPlan{static_cast<std::int32_t>(StatusCode::ok),
                                              move.plan.victims,
                                              {move.plan.victim[0], move.plan.victim[1]}});
  batch.block_table = staging.put(block_table(move.pages, kept.pages));
  batch.block_table_stride = kept.pages;
  batch.marks =
      staging.put(std::span<const std::uint8_t>(move.marks, static_cast<std::size_t>(kept.pages)));
  batch.mark_stride = kept.pages;
  batch.bits = kept.bits;
  batch.words = kept.words;
  batch.scores = move.scores;
  batch.score_stride = move.score_stride;
  if (keep(staging.status())) keep(cuda::compact(batch, stream));
}

void CudaBackend::copy_pages(const CacheShape& shape, const KvView& kv,
                             std::span<const PageCopy> copies, StreamView stream) {
  if (!use_device()) return;
  keep(cuda::copy_pages({shape, kv, nullptr, 0}, copies, stream));
}

void CudaBackend::pages_to_host(const CacheShape& shape, const KvView& kv,
                                std::span<const PageTransfer> transfers, void* host,
                                StreamView stream) {
  if (!use_device() || transfers.empty() || !keep(require_addressable(host))) return;
  keep(cuda::pages_to_host({shape, kv, nullptr, 0, host}, transfers, stream));
}

void CudaBackend::pages_from_host(const CacheShape& shape, const KvView& kv,
                                  std::span<const PageTransfer> transfers, const void* host,
                                  StreamView stream) {
  if (!use_device() || transfers.empty() || !keep(require_addressable(host))) return;
  // The batch serves both directions; this one only reads.
  keep(cuda::pages_from_host({shape, kv, nullptr, 0, const_cast<void*>(host)}, transfers, stream));
}

void CudaBackend::copy_to_host(void* host, const void* device, std::int64_t bytes,
                               StreamView stream) {
  if (!use_device() || bytes <= 0) return;
  keep(device_status(cudaMemcpyAsync(host, device, static_cast<std::size_t>(bytes),
                                     cudaMemcpyDeviceToHost, to_cuda(stream)),
                     "cudaMemcpyAsync"));
}

void CudaBackend::copy_from_host(void* device, const void* host, std::int64_t bytes,
                                 StreamView stream) {
  if (!use_device() || bytes <= 0) return;
  keep(device_status(cudaMemcpyAsync(device, host, static_cast<std::size_t>(bytes),
                                     cudaMemcpyHostToDevice, to_cuda(stream)),
                     "cudaMemcpyAsync"));
}

void CudaBackend::append_kv(const AppendKv& append, StreamView stream) {
  if (use_device()) keep(cuda::append_kv(append, stream));
}

void CudaBackend::paged_attention(const PagedAttention& attention, void* workspace,
                                  StreamView stream) {
  if (!use_device()) return;
  const CacheShape& shape = attention.shape;
  const std::int64_t row = attention.block_table_stride * shape.page_size;
  const auto max_slots = static_cast<std::int32_t>(
      attention.max_slots > 0 ? std::min<std::int64_t>(attention.max_slots, row) : row);
  for (std::int32_t first = 0; first < attention.requests; first += attention_requests) {
    PagedAttention part = attention;
    part.requests = std::min(attention.requests - first, attention_requests);
    part.block_table += first * attention.block_table_stride;
    part.kv_lengths += first;
    part.q += std::int64_t{first} * shape.query_heads * shape.head_dim;
    part.out += std::int64_t{first} * shape.query_heads * shape.v_dim();
    if (!keep(cuda::paged_attention(part, max_slots, workspace, stream))) return;
  }
}

void CudaBackend::synchronize(StreamView stream) {
  if (use_device())
    keep(device_status(cudaStreamSynchronize(to_cuda(stream)), "cudaStreamSynchronize"));
}

}  // namespace growpage
