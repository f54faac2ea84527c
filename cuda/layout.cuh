// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/kv_layout.hpp"
#include "simt.cuh"

/// Device twins of KvTensor's and SummaryView's addressing: their own methods are host functions.
/// All offsets are 64-bit.
namespace growpage::cuda {

__device__ __forceinline__ std::int64_t element_bytes(DType dtype) {
  return dtype == DType::f32 ? 4 : 2;
}

/// First byte of layer `l`; the array `layer_base` lies in device memory, too.
__device__ __forceinline__ char* layer_address(const KvTensor& t, std::int32_t l) {
  return t.layer_base != nullptr
             ? static_cast<char*>(t.layer_base[l])
             : static_cast<char*>(t.base) + l * t.layout.layer_stride * element_bytes(t.dtype);
}

/// Address of the row `[dim]` of (page, head, token) of a layer.
__device__ __forceinline__ char* row_address(const KvTensor& t, char* layer, std::int32_t page,
                                             std::int32_t head, std::int32_t token) {
  return layer + (page * t.layout.page_stride + head * t.layout.head_stride +
                  token * t.layout.token_stride) *
                     element_bytes(t.dtype);
}

/// Whether rows that start at `row`, `stride` elements apart, can be read 16 bytes at a time.
__device__ __forceinline__ bool vector_rows(const void* row, std::int64_t stride, std::int32_t dim,
                                            DType dtype) {
  const std::int64_t bytes = element_bytes(dtype);
  const auto address = reinterpret_cast<std::uintptr_t>(row);
  return ((address | static_cast<std::uintptr_t>(stride * bytes) |
           static_cast<std::uintptr_t>(dim * bytes)) &
          15) == 0;
}

}  // namespace growpage::cuda
