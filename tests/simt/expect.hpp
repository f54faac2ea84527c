// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "simt/settings.hpp"
#include "support/catch.hpp"

namespace simt {

/// All that was enqueued has run and nothing failed.
inline void expect_clean() {
  const cudaError_t error = cudaDeviceSynchronize();
  INFO("seed " << settings().seed << ": " << last_error_text());
  CHECK(error == cudaSuccess);
  CHECK(cudaGetLastError() == cudaSuccess);
}

/// A kernel has failed; what it said. The device works again afterwards.
inline std::string expect_failure() {
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  std::string text = last_error_text();
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  return text;
}

/// The call was refused with `error`, which does not stay.
inline std::string expect_refusal(cudaError_t call, cudaError_t error) {
  CHECK(call == error);
  std::string text = last_error_text();
  CHECK(cudaGetLastError() == error);
  return text;
}

/// Runs a test's body under all orders and some seeds; back to the environment's settings after it.
template <class F>
void for_each_schedule(F body) {
  const Settings environment = settings();
  for (const Order order : {Order::mix, Order::forward, Order::reverse, Order::uniform,
                            Order::priority, Order::warp_priority, Order::starved}) {
    for (std::uint64_t seed = environment.seed; seed < environment.seed + 3; ++seed) {
      configure({seed, order, environment.streams, environment.grid_races});
      INFO("order " << static_cast<int>(order) << ", seed " << seed);
      body();
      expect_clean();
    }
  }
  configure(environment);
}

}  // namespace simt
