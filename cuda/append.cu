// SPDX-License-Identifier: Apache-2.0
#include "append.cuh"

#include <algorithm>
#include <cstdint>

#include "status.cuh"

namespace growpage::cuda {

Status append_kv(const AppendKv& append, StreamView stream) {
  if (append.tokens <= 0) return {};
  AppendKv resolved = append;
  resolve(resolved.shape, resolved.kv);
  // Enough threads for 16-byte units; where rows are less aligned each takes several.
  const std::int64_t units =
      append.tokens * append.shape.kv_heads * row_units(resolved.shape, resolved.kv);
  const std::int64_t blocks =
      std::min<std::int64_t>((units + append_threads - 1) / append_threads, 1 << 30);
  const dim3 grid(static_cast<unsigned>(blocks), resolved.kv.v.null() ? 1U : 2U);
  return device_status(launch(append_kernel, grid, append_threads, 0, to_cuda(stream), resolved),
                       "launch of append_kv");
}

}  // namespace growpage::cuda
