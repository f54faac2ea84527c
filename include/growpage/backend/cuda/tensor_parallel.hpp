// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/status.hpp"
#include "growpage/core/stream.hpp"

namespace growpage::cuda {

/// Adds the sums of a boundary pass over all ranks of a tensor-parallel group, in place and on the
/// stream, between `boundary_pass` and `demand_delta`: 16 bytes a request. The sums are integers,
/// so every rank ends with the same bits and takes the same decision. Any all-reduce of uint64 will
/// do in its place (MPI, the engine's own).
///
/// `communicator` is the engine's ncclComm_t. unsupported in a build without GROWPAGE_NCCL;
/// device_error with NCCL's own words. Enqueues only; capturable, as NCCL is.
[[nodiscard]] Status reduce_demand(std::uint64_t* sums,  ///< [request, 2], device memory
                                   std::int32_t requests, void* communicator, StreamView stream);

}  // namespace growpage::cuda
