// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/backend/contract.hpp"
#include "growpage/core/status.hpp"
#include "growpage/core/stream.hpp"

namespace growpage::cuda {

/// Writes the K and V rows of new tokens into their slots; all pointers are device memory. Tokens
/// with a negative slot are skipped, so that a captured graph serves fewer. Slots are distinct.
/// Enqueues only.
[[nodiscard]] Status append_kv(const AppendKv& append, StreamView stream);

}  // namespace growpage::cuda
