// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "growpage/backend/cpu.hpp"

namespace growpage::detail {

/// Calls copy(row, packed, bytes) for the rows of one page and layer of K or V in the order
/// [kv_head, token], `packed` the offset in bytes of the same row in packed memory; rows that
/// follow each other in memory come as one.
template <class Copy>
void for_page_rows(const CacheShape& shape, const KvTensor& tensor, std::int32_t dim,
                   std::int32_t layer, PageId page, Copy&& copy) {
  const auto row = static_cast<std::int64_t>(dtype_bytes(tensor.dtype)) * dim;
  const bool dense = tensor.layout.token_stride == dim;
  const std::int32_t calls = dense ? 1 : shape.page_size;
  const std::int64_t bytes = dense ? row * shape.page_size : row;
  std::int64_t packed = 0;
  for (std::int32_t head = 0; head < shape.kv_heads; ++head) {
    for (std::int32_t t = 0; t < calls; ++t, packed += bytes) {
      copy(static_cast<char*>(tensor.row(layer, page, head, t)), packed,
           static_cast<std::size_t>(bytes));
    }
  }
}

/// Calls copy(row, host offset in bytes, bytes) for every row of one layer of a page, in the host
/// format of `PageTransfer`.
template <class Copy>
void for_host_rows(const CacheShape& shape, const KvView& kv, std::int32_t layer, PageId page,
                   Copy&& copy) {
  const std::int64_t rows = std::int64_t{shape.kv_heads} * shape.page_size;
  const auto k = rows * shape.head_dim * static_cast<std::int64_t>(dtype_bytes(kv.k.dtype));
  for_page_rows(shape, kv.k, shape.head_dim, layer, page,
                [&](char* row, std::int64_t packed, std::size_t bytes) {
                  copy(row, layer * k + packed, bytes);
                });
  if (kv.v_in_k()) return;
  const auto v = rows * shape.v_dim() * static_cast<std::int64_t>(dtype_bytes(kv.v.dtype));
  for_page_rows(shape, kv.v, shape.v_dim(), layer, page,
                [&](char* row, std::int64_t packed, std::size_t bytes) {
                  copy(row, shape.layers * k + layer * v + packed, bytes);
                });
}

}  // namespace growpage::detail

namespace growpage {

GROWPAGE_INLINE void CpuBackend::copy_pages(const CacheShape& shape, const KvView& kv,
                                            std::span<const PageCopy> copies,
                                            StreamView /*stream*/) noexcept {
  // One task a layer: copies that follow each other (a target that is a later source) stay in
  // order.
  executor_.for_each(shape.layers, [&](std::int64_t task, std::int32_t /*worker*/) {
    const auto layer = static_cast<std::int32_t>(task);
    const auto element = [](const KvTensor& t) {
      return static_cast<std::int64_t>(dtype_bytes(t.dtype));
    };
    for (const PageCopy& copy : copies) {
      const std::int64_t pages = copy.target.offset() - copy.source.offset();
      const auto copy_tensor = [&](const KvTensor& t, std::int32_t dim) {
        const std::int64_t distance = pages * t.layout.page_stride * element(t);
        detail::for_page_rows(shape, t, dim, layer, copy.source,
                              [&](char* row, std::int64_t /*packed*/, std::size_t bytes) {
                                std::memmove(row + distance, row, bytes);
                              });
      };
      copy_tensor(kv.k, shape.head_dim);
      if (!kv.v_in_k()) copy_tensor(kv.v, shape.v_dim());
    }
  });
}

GROWPAGE_INLINE void CpuBackend::pages_to_host(const CacheShape& shape, const KvView& kv,
                                               std::span<const PageTransfer> transfers, void* host,
                                               StreamView /*stream*/) noexcept {
  const std::int64_t size = page_bytes(shape, kv);
  executor_.for_each(shape.layers, [&](std::int64_t layer, std::int32_t /*worker*/) {
    for (const PageTransfer& transfer : transfers) {
      char* packed = static_cast<char*>(host) + transfer.host.offset() * size;
      detail::for_host_rows(shape, kv, static_cast<std::int32_t>(layer), transfer.device,
                            [&](const char* row, std::int64_t offset, std::size_t bytes) {
                              std::memcpy(packed + offset, row, bytes);
                            });
    }
  });
}

GROWPAGE_INLINE void CpuBackend::pages_from_host(const CacheShape& shape, const KvView& kv,
                                                 std::span<const PageTransfer> transfers,
                                                 const void* host, StreamView /*stream*/) noexcept {
  const std::int64_t size = page_bytes(shape, kv);
  executor_.for_each(shape.layers, [&](std::int64_t layer, std::int32_t /*worker*/) {
    for (const PageTransfer& transfer : transfers) {
      const char* packed = static_cast<const char*>(host) + transfer.host.offset() * size;
      detail::for_host_rows(shape, kv, static_cast<std::int32_t>(layer), transfer.device,
                            [&](char* row, std::int64_t offset, std::size_t bytes) {
                              std::memcpy(row, packed + offset, bytes);
                            });
    }
  });
}

GROWPAGE_INLINE void CpuBackend::copy_to_host(void* host, const void* device, std::int64_t bytes,
                                              StreamView /*stream*/) noexcept {
  if (bytes > 0) std::memcpy(host, device, static_cast<std::size_t>(bytes));
}

GROWPAGE_INLINE void CpuBackend::copy_from_host(void* device, const void* host, std::int64_t bytes,
                                                StreamView /*stream*/) noexcept {
  if (bytes > 0) std::memcpy(device, host, static_cast<std::size_t>(bytes));
}

GROWPAGE_INLINE void CpuBackend::append_kv(const AppendKv& append, StreamView /*stream*/) noexcept {
  const CacheShape& shape = append.shape;
  const auto append_row = [&](const KvTensor& t, const void* rows, std::int32_t dim,
                              std::int64_t token) {
    const std::int64_t slot = append.slot_mapping[token];
    const PageId page{static_cast<std::int32_t>(slot / shape.page_size)};
    const auto offset = static_cast<std::int32_t>(slot % shape.page_size);
    const auto bytes = static_cast<std::int64_t>(dtype_bytes(t.dtype)) * dim;
    const char* source = static_cast<const char*>(rows) + token * shape.kv_heads * bytes;
    for (std::int32_t head = 0; head < shape.kv_heads; ++head) {
      std::memcpy(t.row(append.layer, page, head, offset), source + head * bytes,
                  static_cast<std::size_t>(bytes));
    }
  };
  for (std::int64_t token = 0; token < append.tokens; ++token) {
    if (append.slot_mapping[token] < 0) continue;
    append_row(append.kv.k, append.k, shape.head_dim, token);
    if (!append.kv.v_in_k()) append_row(append.kv.v, append.v, shape.v_dim(), token);
  }
}

}  // namespace growpage
