// SPDX-License-Identifier: Apache-2.0
// An engine outside this repository: asks the library for something from its compiled part, from
// its templates and from its kernels, and checks the answers.
#include <string>

#include "growpage/backend/cpu.hpp"
#include "growpage/core/cache_shape.hpp"
#include "growpage/policy/growpage.hpp"

int main() {
  growpage::CacheShape shape;
  shape.layers = 1;
  shape.query_heads = 3;
  shape.kv_heads = 2;
  const growpage::Status refused = shape.validate();
  const bool status_ok = refused == growpage::StatusCode::invalid_argument &&
                         refused.message().find("query_heads is 3") != std::string::npos;

  const growpage::CpuBackend backend;
  const bool backend_ok = std::string(backend.name()).starts_with("cpu-");

  growpage::GrowPagePolicy policy;
  growpage::BoundaryContext context;
  context.measured = true;
  const bool policy_ok = policy.decide(context) == growpage::Decision::compact;
  return status_ok && backend_ok && policy_ok ? 0 : 1;
}
