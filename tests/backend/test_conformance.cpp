// SPDX-License-Identifier: Apache-2.0
#include "backend/conformance_memory.hpp"
#include "backend/cpu_backends.hpp"

namespace growpage::test {

TEMPLATE_TEST_CASE("the CPU backend conforms", "[backend][conformance]", ScalarCpu, SimdCpu,
                   TwoWorkers) {
  conformance::everything<TestType>();
}

}  // namespace growpage::test
