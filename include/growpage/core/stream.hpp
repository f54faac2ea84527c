// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace growpage {

/// A device stream as the engine's runtime knows it (a `cudaStream_t`), without cuda.h. Null is the
/// default stream; the CPU backend runs every call to its end and ignores it. Non-owning.
struct StreamView {
  void* handle = nullptr;
};

}  // namespace growpage
