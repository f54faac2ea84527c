// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfloat>
#include <cstdint>
#include <type_traits>

#include "growpage/core/dtype.hpp"
#include "simt.cuh"

/// Element types and the float rules that every backend shares (contract.hpp).
namespace growpage::cuda {

/// The type that device code sees in memory of a dtype.
template <DType dtype>
struct ElementOf;
template <>
struct ElementOf<DType::f32> {
  using type = float;
};
template <>
struct ElementOf<DType::f16> {
  using type = __half;
};
template <>
struct ElementOf<DType::bf16> {
  using type = __nv_bfloat16;
};
template <DType dtype>
using Element = typename ElementOf<dtype>::type;

/// A weight whose logit is further than this below the row's largest is 0 in every backend.
inline constexpr float exp_floor = -87.0F;

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

/// Rounds to nearest even.
template <class T>
__device__ __forceinline__ T from_float(float x) {
  if constexpr (sizeof(T) == 4) {
    return x;
  } else if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else {
    return __float2bfloat16_rn(x);
  }
}

/// Element `i` of an array whose dtype is known only at run time.
__device__ __forceinline__ float load_as_float(const void* data, DType dtype, std::int64_t i) {
  switch (dtype) {
    case DType::f16:
      return to_float(static_cast<const __half*>(data)[i]);
    case DType::bf16:
      return to_float(static_cast<const __nv_bfloat16*>(data)[i]);
    case DType::f32:
      break;
  }
  return static_cast<const float*>(data)[i];
}

/// A logit as the softmax sees it: NaN counts as −inf, +inf as the largest float.
__device__ __forceinline__ float sanitize(float logit) {
  return logit == logit ? fminf(logit, FLT_MAX) : minus_infinity();
}

/// exp(logit − max) of a sanitized logit. A row whose logits are all −inf is uniform.
__device__ __forceinline__ float softmax_weight(float logit, float max) {
  if (max == minus_infinity()) return 1.0F;
  const float distance = logit - max;
  return distance < exp_floor ? 0.0F : expf(distance);
}

}  // namespace growpage::cuda
