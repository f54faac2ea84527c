// SPDX-License-Identifier: Apache-2.0
#include "summary.cuh"

#include <cstdint>

#include "listed.hpp"
#include "status.cuh"

namespace growpage::cuda {
namespace {

using Entries = ParameterList<SummaryEntry>;

/// `entries`: by value; null = the batch's own.
template <class Query, class Storage>
Status launch_summary(const SummaryBatch& batch, const Entries* entries, StreamView stream) {
  // Four elements at a time when every access is then aligned.
  constexpr int n = 4;
  const auto aligned = [](const void* p, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(p) % bytes == 0;
  };
  const SummaryView& state = batch.state;
  const bool packed = state.head_dim % n == 0 && batch.q_layer_stride % n == 0 &&
                      batch.q_request_stride % n == 0 && batch.q_head_stride % n == 0 &&
                      aligned(batch.q, sizeof(Query) * n) &&
                      aligned(state.summaries, sizeof(typename Storage::Element) * n) &&
                      aligned(state.window, sizeof(float) * n);
  const dim3 grid(static_cast<unsigned>(batch.requests), static_cast<unsigned>(batch.layers));
  cudaError_t error{};
  if (entries == nullptr) {
    const auto kernel =
        packed ? summary_kernel<Query, Storage, n> : summary_kernel<Query, Storage, 1>;
    error = launch(kernel, grid, summary_threads, 0, to_cuda(stream), batch);
  } else {
    const auto kernel = packed ? summary_listed_kernel<Query, Storage, n>
                               : summary_listed_kernel<Query, Storage, 1>;
    error = launch(kernel, grid, summary_threads, 0, to_cuda(stream), batch, *entries);
  }
  return device_status(error, "launch of summary_update");
}

template <class Query>
Status launch_storage(const SummaryBatch& batch, const Entries* entries, StreamView stream) {
  return batch.state.storage == SummaryOptions::Storage::f32
             ? launch_summary<Query, FloatSummary>(batch, entries, stream)
             : launch_summary<Query, HalfSummary>(batch, entries, stream);
}

Status launch_dtype(const SummaryBatch& batch, const Entries* entries, StreamView stream) {
  if (batch.requests <= 0 || batch.layers <= 0) return {};
  if (batch.state.storage == SummaryOptions::Storage::bf16) {
    return Status::error(StatusCode::unsupported, "SummaryBatch::state.storage", "bf16",
                         "f32 or f16_stochastic");
  }
  if (!(batch.options.beta_long > 0.0F)) {  // 0 asks for a page size, which is not known here
    return Status::invalid("SummaryBatch::options.beta_long", double{batch.options.beta_long},
                           "beta_short < beta_long < 1, as SummaryOptions::for_page_size gives it");
  }
  switch (batch.q_dtype) {
    case DType::f16:
      return launch_storage<__half>(batch, entries, stream);
    case DType::bf16:
      return launch_storage<__nv_bfloat16>(batch, entries, stream);
    case DType::f32:
      break;
  }
  return launch_storage<float>(batch, entries, stream);
}

}  // namespace

Status summary_update(const SummaryBatch& batch, StreamView stream) {
  return launch_dtype(batch, nullptr, stream);
}

Status summary_update(const SummaryBatch& batch, std::span<const SummaryEntry> entries,
                      StreamView stream) {
  SummaryBatch part = batch;
  const auto query_bytes = static_cast<std::int64_t>(dtype_bytes(batch.q_dtype));
  for (std::size_t taken = 0; !entries.empty();) {
    const Entries list = Entries::take(entries, taken);
    part.requests = static_cast<std::int32_t>(taken);
    if (Status s = launch_dtype(part, &list, stream); !s.ok()) return s;
    part.q =
        static_cast<const char*>(part.q) + part.requests * batch.q_request_stride * query_bytes;
  }
  return {};
}

}  // namespace growpage::cuda
