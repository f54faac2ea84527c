// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

/// What the toolkit's half headers leave out when no CUDA compiler reads them. Conversions and
/// operators are the headers' own.

/// One rounding: the product and the sum are exact in double, but for a tie in a trillion.
inline __half __hfma(__half a, __half b, __half c) {
  const double product =
      static_cast<double>(__half2float(a)) * static_cast<double>(__half2float(b));
  return __double2half(product + static_cast<double>(__half2float(c)));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  const double product =
      static_cast<double>(__bfloat162float(a)) * static_cast<double>(__bfloat162float(b));
  return __double2bfloat16(product + static_cast<double>(__bfloat162float(c)));
}
inline __half hexp(__half x) { return __float2half(std::exp(__half2float(x))); }
inline __half hrsqrt(__half x) { return __float2half(1.0F / std::sqrt(__half2float(x))); }
