// SPDX-License-Identifier: Apache-2.0
#include "growpage/backend/cuda/tensor_parallel.hpp"

#include "status.cuh"

#ifdef GROWPAGE_HAS_NCCL
#include <nccl.h>
#endif

namespace growpage::cuda {

Status reduce_demand(std::uint64_t* sums, std::int32_t requests, void* communicator,
                     StreamView stream) {
  if (requests <= 0) return {};
#ifdef GROWPAGE_HAS_NCCL
  const ncclResult_t result =
      ncclAllReduce(sums, sums, 2 * static_cast<std::size_t>(requests), ncclUint64, ncclSum,
                    static_cast<ncclComm_t>(communicator), to_cuda(stream));
  if (result == ncclSuccess) return {};
  return Status::error(StatusCode::device_error, "ncclAllReduce", ncclGetErrorString(result),
                       "ncclSuccess");
#else
  (void)sums;
  (void)communicator;
  (void)stream;
  return Status::error(StatusCode::unsupported, "communicator", "NCCL",
                       "a build with GROWPAGE_NCCL=ON, or another all-reduce");
#endif
}

}  // namespace growpage::cuda
