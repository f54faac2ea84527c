// SPDX-License-Identifier: Apache-2.0
// The SIMD kernels of the CPU backend, compiled once per Highway target and chosen at run time.
// Targets with vectors of run-time length are left out: the kernels want them at compile time, and
// an Arm machine with SVE has NEON too.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3)

#include <cstdio>
#include <type_traits>

#include "growpage/detail/cpu_kernels.hpp"

// Relative to the include directory, which is the one path every build has.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../src/cpu_simd.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, once per target.
#include "cpu_simd-inl.hpp"

#if HWY_ONCE
namespace growpage::detail {

HWY_EXPORT(make_kernels);
HWY_EXPORT(target_name);

namespace {

/// The table and the text its name points to.
struct SimdKernels {
  char name[32] = {};
  CpuKernels table;

  SimdKernels() noexcept : table(HWY_DYNAMIC_DISPATCH(make_kernels)()) {
    const bool bf16 = use_avx512(table);
    std::snprintf(name, sizeof name, "cpu-%s%s", HWY_DYNAMIC_DISPATCH(target_name)(),
                  bf16 ? "+BF16" : "");
    table.name = name;
  }
};

}  // namespace

const CpuKernels& simd_kernels() noexcept {
  static const SimdKernels kernels;
  return kernels.table;
}

}  // namespace growpage::detail
#endif
