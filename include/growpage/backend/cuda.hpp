// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "growpage/backend/contract.hpp"

namespace growpage {

/// The CUDA backend: link `growpage::cuda`. A thin layer that serves one request a call over the
/// batch launchers of `backend/cuda/`, which an engine may call directly, with its metadata in
/// device memory, to serve a whole batch or to capture a graph.
///
/// What the contract calls host memory goes to the device by value, inside kernel parameters: no
/// buffer of the caller's has to live on and nothing is allocated. "Synchronises" waits for the
/// stream, so such a call cannot be captured; a captured call replays the host values it was
/// captured with.
///
/// A call that CUDA refuses, or whose arguments no kernel serves, does nothing and is told by
/// take_status. Faults of kernels that ran (none, in a correct program) show as device_error of a
/// later call, as with all of CUDA.
///
/// Thread-safety: take_status and whatever writes it, every call, need the caller's lock.
class CudaBackend {
 public:
  /// Works on `device` from then on: every call makes it current. −1 = the current device at the
  /// first call.
  explicit CudaBackend(std::int32_t device = -1) noexcept : device_(device) {}

  [[nodiscard]] void* allocate(std::int64_t bytes) noexcept;  ///< cudaMalloc, 256-byte aligned
  void deallocate(void* memory, std::int64_t bytes) noexcept;
  [[nodiscard]] void* allocate_host(std::int64_t bytes) noexcept;  ///< pinned and mapped
  void deallocate_host(void* memory, std::int64_t bytes) noexcept;
  [[nodiscard]] bool host_accessible() const noexcept { return false; }
  [[nodiscard]] Status take_status() noexcept;

  [[nodiscard]] std::int64_t workspace_bytes(const CacheShape& shape,
                                             std::int32_t max_slots) const noexcept;

  void summary_update(const SummaryUpdate& update, StreamView stream = {});
  void boundary_pass(const BoundaryPass& pass, void* workspace, StreamView stream = {});
  void select(const Selection& selection, void* workspace, StreamView stream = {});
  void compact(const CompactionMove& move, void* workspace, StreamView stream = {});
  void copy_pages(const CacheShape& shape, const KvView& kv, std::span<const PageCopy> copies,
                  StreamView stream = {});
  /// `host` must be memory that the device can address: allocate_host's, or the caller's own when
  /// registered (cudaHostRegister) or managed. unsupported otherwise.
  void pages_to_host(const CacheShape& shape, const KvView& kv,
                     std::span<const PageTransfer> transfers, void* host, StreamView stream = {});
  void pages_from_host(const CacheShape& shape, const KvView& kv,
                       std::span<const PageTransfer> transfers, const void* host,
                       StreamView stream = {});
  /// Ordinary host memory is fine here, but slower than pinned memory.
  void copy_to_host(void* host, const void* device, std::int64_t bytes, StreamView stream = {});
  void copy_from_host(void* device, const void* host, std::int64_t bytes, StreamView stream = {});
  void append_kv(const AppendKv& append, StreamView stream = {});
  void paged_attention(const PagedAttention& attention, void* workspace, StreamView stream = {});
  void synchronize(StreamView stream = {});

  [[nodiscard]] const char* name() const noexcept { return "cuda"; }

 private:
  /// Keeps the first failure; true when `status` is ok.
  bool keep(const Status& status);
  /// Makes the device current; false when CUDA refuses.
  bool use_device();

  std::int32_t device_;
  Status status_;
};

static_assert(KvBackend<CudaBackend>);

}  // namespace growpage
