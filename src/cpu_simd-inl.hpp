// SPDX-License-Identifier: Apache-2.0
// The kernel table of one SIMD target. Included by cpu_simd.cpp once per target; hence no include
// guard of the usual kind.
#if defined(GROWPAGE_CPU_SIMD_TABLE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GROWPAGE_CPU_SIMD_TABLE_INL
#undef GROWPAGE_CPU_SIMD_TABLE_INL
#else
#define GROWPAGE_CPU_SIMD_TABLE_INL
#endif

#include "cpu_simd_distribution-inl.hpp"
#include "cpu_simd_dot-inl.hpp"
#include "cpu_simd_selection-inl.hpp"
#include "cpu_simd_summary-inl.hpp"
#include "cpu_simd_vectors-inl.hpp"
#include "growpage/detail/cpu_kernels.hpp"
#include "growpage/detail/cpu_scalar.hpp"

HWY_BEFORE_NAMESPACE();
namespace growpage::detail::HWY_NAMESPACE {

#if GROWPAGE_CPU_HAS_VECTORS

inline CpuKernels make_kernels() {
  return {"",
          {pack, pack, pack, pack},
          {dot<float>, dot<Float16>, dot<BFloat16>, dot<BFloat16>},
          {widen<float>, widen<Float16>, widen<BFloat16>},
          sanitize_max,
          exp_sum,
          mix,
          max_scaled,
          mass_at_least,
          gather,
          sum_w_log_w,
          {{update_summary<DType::f32, DType::f32>, update_summary<DType::f16, DType::f32>,
            update_summary<DType::bf16, DType::f32>},
           {update_summary<DType::f32, DType::f16>, update_summary<DType::f16, DType::f16>,
            update_summary<DType::bf16, DType::f16>}},
          sum_squares,
          order_keys,
          count_at_least,
          take,
          copy_rows};
}

inline const char* target_name() { return hwy::TargetName(HWY_TARGET); }

#else

inline CpuKernels make_kernels() { return scalar::kernels; }
inline const char* target_name() { return "scalar"; }

#endif

}  // namespace growpage::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
