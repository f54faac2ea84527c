// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "growpage/backend/cuda/pages.hpp"
#include "growpage/backend/cuda/summary.hpp"

/// The launchers whose list the host has, for CudaBackend: the list travels inside the kernels'
/// parameters, as many launches as it takes. The batch's own list is ignored.
namespace growpage::cuda {

[[nodiscard]] Status summary_update(const SummaryBatch& batch,
                                    std::span<const SummaryEntry> entries, StreamView stream);
[[nodiscard]] Status copy_pages(const PageCopyBatch& batch, std::span<const PageCopy> copies,
                                StreamView stream);
[[nodiscard]] Status pages_to_host(const PageTransferBatch& batch,
                                   std::span<const PageTransfer> transfers, StreamView stream);
[[nodiscard]] Status pages_from_host(const PageTransferBatch& batch,
                                     std::span<const PageTransfer> transfers, StreamView stream);

}  // namespace growpage::cuda
