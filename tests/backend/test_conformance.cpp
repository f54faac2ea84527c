// SPDX-License-Identifier: Apache-2.0
#include "backend/conformance_memory.hpp"
#include "backend/cpu_backends.hpp"
#include "growpage/backend/any_backend.hpp"

namespace growpage::test {

/// Chosen at run time.
struct Erased : AnyBackend {
  Erased() : AnyBackend(CpuBackend()) {}
};

TEMPLATE_TEST_CASE("the CPU backend conforms", "[backend][conformance]", ScalarCpu, SimdCpu,
                   TwoWorkers, Erased) {
  conformance::everything<TestType>();
}

}  // namespace growpage::test
