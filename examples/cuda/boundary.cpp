// SPDX-License-Identifier: Apache-2.0
// A paged cache on CUDA: one request is filled up to its capacity boundary, its demand is measured,
// and it is compacted in the pages it has. K, V and queries are device memory, as a model leaves
// them; everything enqueues on the engine's stream.
#include <cuda_runtime.h>
#include <fmt/core.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "growpage/backend/cuda.hpp"
#include "growpage/cache/paged_kv_cache.hpp"

namespace gp = growpage;

void check(const gp::Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "{}\n", status.message());
  std::exit(1);
}
void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fmt::print(stderr, "{}\n", cudaGetErrorString(error));
  std::exit(1);
}

/// Stands for what a model's projections leave on the device.
class Projection {
 public:
  explicit Projection(int size) : host_(static_cast<std::size_t>(size)) {
    check(cudaMalloc(&device_, host_.size() * sizeof(float)));
  }
  ~Projection() { (void)cudaFree(device_); }
  Projection(const Projection&) = delete;
  Projection& operator=(const Projection&) = delete;

  const void* next(std::mt19937& random) {
    std::normal_distribution<float> normal;
    for (float& x : host_) x = normal(random);
    check(cudaMemcpy(device_, host_.data(), host_.size() * sizeof(float), cudaMemcpyHostToDevice));
    return device_;
  }

 private:
  std::vector<float> host_;
  void* device_ = nullptr;
};

int main() {
  gp::PagedKVCacheOptions options;
  options.shape = {1, /*query_heads=*/4, /*kv_heads=*/2, /*head_dim=*/64, 0, /*page_size=*/16};
  options.pages.pages = 8;
  options.dtype = gp::DType::f32;
  options.summary.slots = 4;
  auto cache = gp::PagedKVCache<gp::CudaBackend>::create(options);
  check(cache.status());

  cudaStream_t engine_stream = nullptr;
  check(cudaStreamCreate(&engine_stream));
  const gp::StreamView stream{engine_stream};
  const gp::CacheShape& s = cache->shape();
  Projection q(s.query_heads * s.head_dim), k(s.kv_heads * s.head_dim), v(s.kv_heads * s.head_dim);
  std::int64_t* slot_mapping = nullptr;  // device memory, as a model's kernels want it
  check(cudaMalloc(&slot_mapping, sizeof *slot_mapping));

  const gp::SequenceId id = cache->admit({})->sequence;
  const gp::SummarySlot summary{0};
  std::vector<gp::PageCopy> copies;
  std::mt19937 random(1);
  constexpr int length = 4 * 16;  // four full pages: the boundary
  for (int position = 0; position < length; ++position) {
    check(cache->reserve(id, 1));
    check(cache->append(id, 1, nullptr, copies));
    const std::int64_t slot = cache->physical_slot(id, position);
    check(cudaMemcpy(slot_mapping, &slot, sizeof slot, cudaMemcpyHostToDevice));
    check(cache->append_kv(0, {slot_mapping, 1}, k.next(random), v.next(random), stream));
    const gp::SummaryEntry entry{summary.value, position == 0 ? 1 : 0};
    check(cache->update_summaries({&entry, 1}, {q.next(random)}, 0, 1, stream));
    check(cudaStreamSynchronize(engine_stream));  // the projections are about to be overwritten
    check(cache->mark_computed(id, position + 1));
  }

  gp::Demand demand;
  check(cache->measure_demand(id, summary, length - 1, demand, stream));
  const auto ticket = cache->begin_compaction(id, 1, gp::CompactionStrategy::fill_holes,
                                              gp::SharedPages::keep, copies);
  check(ticket.status());
  check(cache->compact(*ticket, summary, length - 1, 0, stream));
  check(cudaStreamSynchronize(engine_stream));
  check(cache->complete_fence(ticket->fence));

  const auto view = cache->view(id);
  fmt::print("Δ = {:+.4f}; {} tokens in {} slots, {} pages\n", demand.delta(), view->length,
             view->slots, view->pages.size());
  check(cudaFree(slot_mapping));
  check(cudaStreamDestroy(engine_stream));
  return demand.count == 2 && view->length == length && view->slots == length - 16 ? 0 : 1;
}
