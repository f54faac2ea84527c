// SPDX-License-Identifier: Apache-2.0
#include "logits.cuh"

#include "launch_logits.cuh"

namespace growpage::cuda {
namespace {

template <class Products>
cudaError_t launch_products(const BoundaryStage& stage, unsigned tasks, cudaStream_t stream) {
  const std::int32_t query_blocks = (stage.queries + Products::queries - 1) / Products::queries;
  const dim3 grid(static_cast<unsigned>(stage.scratch.chunks * query_blocks), tasks);
  return launch(logit_kernel<Products>, grid, logit_threads,
                Products::shared_bytes(stage.scratch.padded_dim), stream, stage);
}

template <class Key, int blocks>
cudaError_t launch_matrix(const BoundaryStage& stage, unsigned tasks, cudaStream_t stream) {
  if (stage.queries <= 8)
    return launch_products<MatrixProducts<Key, blocks, 1>>(stage, tasks, stream);
  if (stage.queries <= 16)
    return launch_products<MatrixProducts<Key, blocks, 2>>(stage, tasks, stream);
  return launch_products<MatrixProducts<Key, blocks, 4>>(stage, tasks, stream);
}

template <class Key>
cudaError_t launch_blocks(const BoundaryStage& stage, unsigned tasks, cudaStream_t stream) {
  switch (stage.scratch.padded_dim / 32) {
    case 1:
      return launch_matrix<Key, 1>(stage, tasks, stream);
    case 2:
      return launch_matrix<Key, 2>(stage, tasks, stream);
    case 3:
      return launch_matrix<Key, 3>(stage, tasks, stream);
    case 4:
      return launch_matrix<Key, 4>(stage, tasks, stream);
    case 5:
    case 6:
      return launch_matrix<Key, 6>(stage, tasks, stream);
    default:
      return launch_matrix<Key, 8>(stage, tasks, stream);
  }
}

template <class Key>
cudaError_t launch_fma(const BoundaryStage& stage, unsigned tasks, cudaStream_t stream) {
  // Two tiles while their queries fit beside the rest in 48 KB of shared memory.
  if (stage.queries > 8 && stage.scratch.padded_dim <= 512) {
    return launch_products<FmaProducts<Key, 2>>(stage, tasks, stream);
  }
  return launch_products<FmaProducts<Key, 1>>(stage, tasks, stream);
}

}  // namespace

cudaError_t launch_logits(const BoundaryStage& stage, unsigned tasks, cudaStream_t stream) {
  const DType dtype = stage.batch.kv.k.dtype;
  switch (stage.form) {
    case QueryForm::bf16:
      return launch_blocks<__nv_bfloat16>(stage, tasks, stream);
    case QueryForm::split_f16:
      return launch_blocks<__half>(stage, tasks, stream);
    case QueryForm::f32:
      break;
  }
  if (dtype == DType::f16) return launch_fma<__half>(stage, tasks, stream);
  if (dtype == DType::bf16) return launch_fma<__nv_bfloat16>(stage, tasks, stream);
  return launch_fma<float>(stage, tasks, stream);
}

}  // namespace growpage::cuda
