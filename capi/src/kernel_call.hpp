// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/cpu.hpp"
#include "growpage/growpage.h"

namespace growpage::capi {

/// How much of a growpage_kernel a call needs.
enum class KernelParts : std::int32_t {
  shape,      ///< shape, isa, executor
  request,    ///< and the request: slots, block table, K, V
  workspace,  ///< and a workspace that is large enough
};

/// A growpage_kernel, checked, with the backend to run it.
struct KernelCall {
  CacheShape shape;
  CpuBackend backend;
  KvView kv;
  const PageId* pages = nullptr;  // [page_count]
  std::int32_t page_count = 0;    // ceil(slots / page_size)
  std::int32_t slots = 0;
  void* workspace = nullptr;

  Status read(const growpage_kernel* in, KernelParts parts);
  /// The options as used, with `beta_long` for this page size; checked, and that the sizes can be
  /// computed.
  Status read_summary(const growpage_summary_options* in, SummaryOptions& out) const;
  /// The summaries in the engine's memory; invalid_argument when an array is missing.
  Status read_state(const growpage_summary_state* in, const SummaryOptions& options,
                    SummaryView& out) const;
  /// Query, options and summaries of a boundary pass over this request.
  Status read_query(const growpage_query* in, BoundaryPass& out) const;
};

}  // namespace growpage::capi
