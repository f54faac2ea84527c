// SPDX-License-Identifier: Apache-2.0
#include "../../../cuda/simt.cuh"
#include "planted.hpp"
#include "simt/device_array.hpp"

namespace {

using simt::DeviceArray;

constexpr int count = 32;

/// By pointer: an index into the array itself would be for UndefinedBehaviorSanitizer to report.
__device__ void fill(int* tile, int end) {
  for (int i = 0; i < end; ++i) tile[i] = i;
}

__global__ void fill_static(int* out, int end) {
  __shared__ int tile[count];
  fill(tile, end);
  out[0] = tile[count - 1];
}

__global__ void fill_macro(int* out, int end) {
  GROWPAGE_SHARED(int, tile, [count]);
  fill(tile, end);
  out[0] = tile[count - 1];
}

__global__ void fill_dynamic(int* out, int end) {
  GROWPAGE_DYNAMIC_SHARED(memory);
  int* tile = reinterpret_cast<int*>(memory);
  fill(tile, end);
  out[0] = tile[count - 1];
}

__global__ void fill_global(int* out, int end) {
  fill(out, end);
  out[0] = out[count - 1];
}

bool last_is_right(void (*kernel)(int*, int), bool planted) {
  const DeviceArray<int> out(count);
  growpage::cuda::launch(kernel, 1, 1, count * sizeof(int), nullptr, out.data(),
                         planted ? count + 1 : count);
  return out.host()[0] == count - 1;
}

bool static_shared(bool planted) { return last_is_right(fill_static, planted); }
bool macro_shared(bool planted) { return last_is_right(fill_macro, planted); }
bool dynamic_shared(bool planted) { return last_is_right(fill_dynamic, planted); }
bool global_memory(bool planted) { return last_is_right(fill_global, planted); }

constexpr Planted bounds[] = {{"beyond_static_shared", static_shared},
                              {"beyond_macro_shared", macro_shared},
                              {"beyond_dynamic_shared", dynamic_shared},
                              {"beyond_global", global_memory}};

}  // namespace

std::span<const Planted> planted_bounds() { return bounds; }
