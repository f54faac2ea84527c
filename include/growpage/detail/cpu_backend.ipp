// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "growpage/backend/cpu.hpp"
#include "growpage/detail/cpu_attention.ipp"
#include "growpage/detail/cpu_boundary.ipp"
#include "growpage/detail/cpu_compact.ipp"
#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/cpu_scalar.hpp"
#include "growpage/detail/cpu_select.ipp"
#include "growpage/detail/cpu_summary.ipp"
#include "growpage/detail/cpu_transfer.ipp"
#include "growpage/detail/cpu_workspace.hpp"

namespace growpage {

namespace detail {

inline const CpuKernels* choose_kernels([[maybe_unused]] CpuBackend::Isa isa) noexcept {
#ifndef GROWPAGE_HEADER_ONLY
  const char* wish = std::getenv("GROWPAGE_CPU");
  const bool scalar_wished = wish != nullptr && std::string_view(wish) == "scalar";
  const bool automatic = isa == CpuBackend::Isa::automatic;
  if (automatic ? !scalar_wished : isa == CpuBackend::Isa::simd) return &simd_kernels();
#endif
  return &scalar::kernels;
}

}  // namespace detail

GROWPAGE_INLINE CpuBackend::CpuBackend(Executor executor, Isa isa) noexcept
    : executor_(executor), kernels_(detail::choose_kernels(isa)) {}

GROWPAGE_INLINE void* CpuBackend::allocate(std::int64_t bytes) noexcept {
  if (bytes < 0) return nullptr;
  constexpr std::size_t huge_page = std::size_t{1} << 21;
  const auto size = static_cast<std::size_t>(bytes);
  const bool large = size >= 4 * huge_page;
  const std::size_t alignment = large ? huge_page : 64;
  // calloc rather than aligned_alloc and memset: the pages of a large cache are then committed when
  // they are first written. The address calloc gave stands in front of the one handed out.
  void* memory = std::calloc(size + alignment + sizeof(void*), 1);
  if (memory == nullptr) return nullptr;
  const auto start = reinterpret_cast<std::uintptr_t>(memory) + sizeof(void*);
  void* aligned =
      static_cast<char*>(memory) + sizeof(void*) + (alignment - start % alignment) % alignment;
  static_cast<void**>(aligned)[-1] = memory;
#if defined(__linux__)
  // Heads of a token-major cache are strided: with small pages the TLB would miss on every row. A
  // refusal does no harm.
  if (large) (void)madvise(aligned, size / huge_page * huge_page, MADV_HUGEPAGE);
#endif
  return aligned;
}

GROWPAGE_INLINE void CpuBackend::deallocate(void* memory, std::int64_t /*bytes*/) noexcept {
  if (memory != nullptr) std::free(static_cast<void**>(memory)[-1]);
}

GROWPAGE_INLINE std::int64_t CpuBackend::workspace_bytes(const CacheShape& shape,
                                                         std::int32_t max_slots) const noexcept {
  return detail::CpuWorkspace(shape, max_slots, nullptr).bytes(executor_.workers);
}

GROWPAGE_INLINE void CpuBackend::synchronize(StreamView /*stream*/) noexcept {}

GROWPAGE_INLINE const char* CpuBackend::name() const noexcept { return kernels_->name; }

}  // namespace growpage
