// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/cuda/selection.hpp"

namespace growpage::cuda {

/// `select` with at most `key_bytes` of shared memory for a row's keys: longer rows are ranked from
/// global memory. Not public; tests make short rows take the way of long ones.
[[nodiscard]] Status select_within(const SelectionBatch& batch, std::int64_t key_bytes,
                                   StreamView stream);

}  // namespace growpage::cuda
