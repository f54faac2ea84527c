// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "boundary_stage.cuh"
#include "simt.cuh"

namespace growpage::cuda {

/// Enqueues the logit kernel for `tasks` tasks from `stage.first_task` on. It has many forms, which
/// one file compiles (logits.cu).
cudaError_t launch_logits(const BoundaryStage& stage, unsigned tasks, cudaStream_t stream);

}  // namespace growpage::cuda
