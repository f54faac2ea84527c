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

/// The CPU backend. Two forms of every hot kernel: the scalar oracle, plain loops with sums in
/// double, and SIMD (Highway with run-time dispatch, and AVX512-BF16 for bf16 keys; absent from
/// header-only builds). The form is chosen once, at construction. Equal scores give equal
/// selections in both; weights agree to about 1e-5, relative.
///
/// What the contract leaves open, in both forms:
///  - A weight below e^-87 of the row's largest is 0.
///  - D_p (algorithm, section 2): the fewest largest weights whose sum reaches p·Σw, p the float
///    that was given; weights equal to the smallest one needed count only as often as needed; p = 1
///    counts all positive weights; one candidate gives r = 1 for both metrics.
///  - Selection: always-kept slots (the newest first, then from the front), then of every private
///    page the best min(k_loc, budget left / private pages), then the globally best. NaN ranks
///    last.
///  - Window scores read K again for every 32 queries of a group, since their logits have to fit in
///    the workspace; summaries and demand read it once.
///  - Redundancy (algorithm, section 6): softmax over the used slots of the mean cosine similarity
///    of a slot's key to all other used slots' keys, over the temperature; the score becomes
///    (1 − λ)·score − λ·redundancy, after max-pool and global score.
///
/// Thread-safety: const; calls may run concurrently when their memory and workspaces are distinct
/// and the executor allows it. No call allocates except allocate().
class CpuBackend {
 public:
  enum class Isa : std::int32_t {
    automatic = 0,  ///< GROWPAGE_CPU=scalar|simd if set and valid, else the best there is
    scalar = 1,     ///< the oracle
    simd = 2,       ///< the best SIMD target of this machine; scalar in a header-only build
  };

  explicit CpuBackend(Executor executor = {}, Isa isa = Isa::automatic) noexcept;

  /// Large blocks ask for huge pages and take memory as it is first written.
  [[nodiscard]] void* allocate(std::int64_t bytes) noexcept;
  void deallocate(void* memory, std::int64_t bytes) noexcept;
  [[nodiscard]] void* allocate_host(std::int64_t bytes) noexcept { return allocate(bytes); }
  void deallocate_host(void* memory, std::int64_t bytes) noexcept { deallocate(memory, bytes); }
  [[nodiscard]] bool host_accessible() const noexcept { return true; }
  [[nodiscard]] Status take_status() noexcept { return {}; }  // nothing can fail
  [[nodiscard]] std::int64_t workspace_bytes(const CacheShape& shape,
                                             std::int32_t max_slots) const noexcept;

  void summary_update(const SummaryUpdate& update, StreamView stream = {}) noexcept;
  void boundary_pass(const BoundaryPass& pass, void* workspace, StreamView stream = {}) noexcept;
  void select(const Selection& selection, void* workspace, StreamView stream = {}) noexcept;
  /// Needs no workspace: null is fine.
  void compact(const CompactionMove& move, void* workspace = nullptr,
               StreamView stream = {}) noexcept;
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

  /// "cpu-scalar", "cpu-AVX2", "cpu-AVX3+BF16", … Static storage.
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
