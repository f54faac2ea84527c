// SPDX-License-Identifier: Apache-2.0
#include "pages.cuh"

#include <algorithm>
#include <cstdint>
#include <span>

#include "listed.hpp"
#include "status.cuh"

namespace growpage::cuda {
namespace {

/// Everything of a launch but its pairs.
struct PageLaunch {
  PageLaunch(const CacheShape& cache_shape, const KvView& view, void* host)
      : shape(cache_shape),
        kv(view),
        pages{static_cast<char*>(host), page_bytes(shape, kv),
              kv.v_in_k() ? 0 : page_bytes(shape, KvView{kv.k, {}})} {
    resolve(shape, kv);
    // Enough threads for 16-byte units; where rows are less aligned each takes several places.
    const std::int64_t places = row_units(shape, kv) * shape.page_size * shape.kv_heads;
    const std::int64_t blocks =
        std::min<std::int64_t>((places + page_threads - 1) / page_threads, 1 << 30);
    grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(shape.layers),
                kv.v.null() ? 1U : 2U);
  }

  CacheShape shape;
  KvView kv;
  HostPages pages;
  dim3 grid;
};

template <PageMotion motion, class Pair>
Status launch_pages(const PageLaunch& l, const Pair* pairs, std::int32_t count, const char* what,
                    StreamView stream) {
  if (count <= 0) return {};
  return device_status(launch(pages_kernel<motion, Pair>, l.grid, page_threads, 0, to_cuda(stream),
                              l.shape, l.kv, l.pages, pairs, count),
                       what);
}

template <PageMotion motion, class Pair>
Status launch_pages(const PageLaunch& l, std::span<const Pair> pairs, const char* what,
                    StreamView stream) {
  for (std::size_t taken = 0; !pairs.empty();) {
    const auto list = ParameterList<Pair>::take(pairs, taken);
    Status s = device_status(
        launch(pages_listed_kernel<motion, Pair>, l.grid, page_threads, 0, to_cuda(stream), l.shape,
               l.kv, l.pages, list, static_cast<std::int32_t>(taken)),
        what);
    if (!s.ok()) return s;
  }
  return {};
}

constexpr const char* copying = "launch of copy_pages";
constexpr const char* leaving = "launch of pages_to_host";
constexpr const char* returning = "launch of pages_from_host";

}  // namespace

Status copy_pages(const PageCopyBatch& batch, StreamView stream) {
  return launch_pages<PageMotion::within_cache>({batch.shape, batch.kv, nullptr}, batch.copies,
                                                batch.count, copying, stream);
}

Status copy_pages(const PageCopyBatch& batch, std::span<const PageCopy> copies, StreamView stream) {
  return launch_pages<PageMotion::within_cache>({batch.shape, batch.kv, nullptr}, copies, copying,
                                                stream);
}

Status pages_to_host(const PageTransferBatch& batch, StreamView stream) {
  return launch_pages<PageMotion::to_host>({batch.shape, batch.kv, batch.host}, batch.transfers,
                                           batch.count, leaving, stream);
}

Status pages_to_host(const PageTransferBatch& batch, std::span<const PageTransfer> transfers,
                     StreamView stream) {
  return launch_pages<PageMotion::to_host>({batch.shape, batch.kv, batch.host}, transfers, leaving,
                                           stream);
}

Status pages_from_host(const PageTransferBatch& batch, StreamView stream) {
  return launch_pages<PageMotion::from_host>({batch.shape, batch.kv, batch.host}, batch.transfers,
                                             batch.count, returning, stream);
}

Status pages_from_host(const PageTransferBatch& batch, std::span<const PageTransfer> transfers,
                       StreamView stream) {
  return launch_pages<PageMotion::from_host>({batch.shape, batch.kv, batch.host}, transfers,
                                             returning, stream);
}

}  // namespace growpage::cuda
