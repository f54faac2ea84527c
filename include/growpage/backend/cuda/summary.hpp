// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/contract.hpp"
#include "growpage/core/dtype.hpp"
#include "growpage/core/status.hpp"
#include "growpage/core/stream.hpp"
#include "growpage/demand/query_summary.hpp"

namespace growpage::cuda {

/// Both EMAs of `requests` requests for layers [first_layer, first_layer + layers): `SummaryUpdate`
/// with the entries in device memory. An entry whose slot is negative is skipped, so that a
/// captured graph serves smaller batches; the slots of a batch are distinct.
struct SummaryBatch {
  SummaryView state;
  SummaryOptions options;                 ///< as used: `beta_long` is the weight itself, not 0
  const SummaryEntry* entries = nullptr;  ///< [request], device
  std::int32_t requests = 0;
  std::int32_t first_layer = 0;
  std::int32_t layers = 1;
  const void* q = nullptr;  ///< [layer, request, q_head, head_dim] with the strides below, device
  DType q_dtype = DType::f32;
  std::int64_t q_layer_stride = 0;    ///< in elements
  std::int64_t q_request_stride = 0;  ///< in elements
  std::int64_t q_head_stride = 0;     ///< in elements; the head dimension is contiguous
};

/// One read of q, one read-modify-write of the state. Enqueues only.
///
/// Against the scalar CPU backend: summaries (both storages, with the same stochastic rounding
/// bits), window and steps are equal bit for bit, query_rms within 1 ulp (its sum has another
/// order).
///
/// An engine that has the queries in registers can fuse the update into its own kernel instead:
/// `growpage::cuda::SummaryStep` in cuda/summary.cuh.
[[nodiscard]] Status summary_update(const SummaryBatch& batch, StreamView stream);

}  // namespace growpage::cuda
