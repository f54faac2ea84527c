// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/contract.hpp"
#include "growpage/core/cache_shape.hpp"
#include "growpage/core/kv_layout.hpp"
#include "growpage/core/status.hpp"
#include "growpage/core/stream.hpp"

namespace growpage::cuda {

/// Copies pages of all layers, K and V, within the cache, as if one after the other: a target may
/// be a later source.
struct PageCopyBatch {
  CacheShape shape;
  KvView kv;
  const PageCopy* copies = nullptr;  ///< [count], device; a negative page = padding, skipped
  std::int32_t count = 0;
};
[[nodiscard]] Status copy_pages(const PageCopyBatch& batch, StreamView stream);

/// Moves pages between the cache and host memory that the device can address (cudaHostAlloc,
/// cudaHostRegister, managed), packed as `PageTransfer` says. The kernel itself reads and writes
/// the host's memory: no staging, one launch for any number of rows.
struct PageTransferBatch {
  CacheShape shape;
  KvView kv;
  const PageTransfer* transfers = nullptr;  ///< [count], device; a negative page = padding, skipped
  std::int32_t count = 0;
  void* host = nullptr;  ///< page h at host + h · page_bytes(shape, kv); only read by from_host
};
[[nodiscard]] Status pages_to_host(const PageTransferBatch& batch, StreamView stream);
[[nodiscard]] Status pages_from_host(const PageTransferBatch& batch, StreamView stream);

}  // namespace growpage::cuda
