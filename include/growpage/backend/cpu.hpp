// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "growpage/backend/contract.hpp"
#include "growpage/core/executor.hpp"

namespace growpage {

namespace detail {
struct CpuKernels;  // a table of row-level kernels: detail/cpu_kernels.hpp
}

/// The CPU backend. Two forms of every kernel: the scalar oracle, and SIMD with run-time dispatch
/// (Highway; absent from header-only builds). The form is chosen once, at construction.
class CpuBackend {
 public:
  enum class Isa : std::int32_t {
    automatic = 0,  ///< GROWPAGE_CPU=scalar|simd if set and valid, else the best there is
    scalar = 1,     ///< the oracle
    simd = 2,       ///< the best SIMD target of this machine; scalar in a header-only build
  };

  explicit CpuBackend(Executor executor = {}, Isa isa = Isa::automatic) noexcept;

  [[nodiscard]] void* allocate(std::int64_t bytes) noexcept;
  void deallocate(void* memory, std::int64_t bytes) noexcept;
  [[nodiscard]] std::int64_t workspace_bytes(const CacheShape& shape,
                                             std::int32_t max_slots) const noexcept;

  void summary_update(const SummaryUpdate& update, StreamView stream = {}) noexcept;
  void boundary_pass(const BoundaryPass& pass, void* workspace, StreamView stream = {}) noexcept;
  void select(const Selection& selection, void* workspace, StreamView stream = {}) noexcept;
  void compact(const CompactionMove& move, StreamView stream = {}) noexcept;
  void copy_pages(const CacheShape& shape, const KvView& kv, std::span<const PageCopy> copies,
                  StreamView stream = {}) noexcept;
  void pages_to_host(const CacheShape& shape, const KvView& kv,
                     std::span<const PageTransfer> transfers, void* host,
                     StreamView stream = {}) noexcept;
  void pages_from_host(const CacheShape& shape, const KvView& kv,
                       std::span<const PageTransfer> transfers, const void* host,
                       StreamView stream = {}) noexcept;
  void copy_to_host(void* host, const void* device, std::int64_t bytes,
                    StreamView stream = {}) noexcept;
  void copy_from_host(void* device, const void* host, std::int64_t bytes,
                      StreamView stream = {}) noexcept;
  void append_kv(const AppendKv& append, StreamView stream = {}) noexcept;
  void paged_attention(const PagedAttention& attention, void* workspace,
                       StreamView stream = {}) noexcept;
  void synchronize(StreamView stream = {}) noexcept;

  /// "cpu-scalar", "cpu-AVX3_DL", …
  [[nodiscard]] const char* name() const noexcept;

 private:
  Executor executor_;
  const detail::CpuKernels* kernels_;
};

static_assert(KvBackend<CpuBackend>);

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/cpu_backend.ipp"
#endif
