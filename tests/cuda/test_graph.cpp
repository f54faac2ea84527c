// SPDX-License-Identifier: Apache-2.0
// Everything an engine enqueues around a capacity boundary, captured once in a CUDA graph and
// replayed with other requests: the same bits as launched one by one.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/device_array.hpp"
#include "growpage/backend/cuda/append.hpp"
#include "growpage/backend/cuda/attention.hpp"
#include "growpage/backend/cuda/boundary.hpp"
#include "growpage/backend/cuda/compaction.hpp"
#include "growpage/backend/cuda/pages.hpp"
#include "growpage/backend/cuda/selection.hpp"
#include "growpage/backend/cuda/summary.hpp"
#include "support/catch.hpp"
#include "support/random_cache.hpp"

namespace growpage::test {
namespace {

constexpr CacheShape shape{
    .layers = 2, .query_heads = 4, .kv_heads = 2, .head_dim = 64, .value_dim = 0, .page_size = 16};
constexpr std::int32_t requests = 2, max_pages = 4, max_slots = max_pages * 16, pool = 12;
constexpr std::int32_t rows = shape.layers * shape.kv_heads;
constexpr std::int32_t query_size = shape.query_heads * shape.head_dim;
constexpr std::int32_t row_size = shape.kv_heads * shape.head_dim;

std::vector<float> normals(std::uint64_t seed, std::int32_t n) {
  Random random(seed);
  std::vector<float> values;
  for (std::int32_t i = 0; i < n; ++i) values.push_back(static_cast<float>(random.normal()));
  return values;
}

/// What differs between two steps: all of it in device memory, at fixed places.
struct Step {
  std::vector<SummaryEntry> entries;
  std::vector<cuda::BoundaryRequest> boundary;
  std::vector<cuda::RetentionRequest> retention;
  std::vector<std::int32_t> table;  // [request, max_pages]
  std::vector<std::int64_t> slots;  // where the new tokens' rows go
  std::vector<std::int32_t> lengths;
  std::uint64_t seed = 0;
};

/// The state of a small engine on the device, and its step.
class Device {
 public:
  /// Not capturable: copies from the host.
  void set(const Step& step) {
    entries_.upload(step.entries);
    boundary_.upload(step.boundary);
    retention_.upload(step.retention);
    table_.upload(step.table);
    slots_.upload(step.slots);
    lengths_.upload(step.lengths);
    q_.upload(normals(step.seed, shape.layers * requests * query_size));
    rows_.upload(normals(step.seed + 1, requests * row_size));
  }

  void enqueue(cudaStream_t stream) {
    const StreamView view{stream};
    const KvLayout layout = KvLayout::hnd(shape, pool, shape.head_dim);
    const KvView kv{{k_.get(), nullptr, layout, DType::f32},
                    {v_.get(), nullptr, layout, DType::f32}};
    const SummaryView state{summaries_.get(),
                            rms_.get(),
                            nullptr,
                            steps_.get(),
                            SummaryOptions::Storage::f32,
                            shape.layers,
                            requests,
                            shape.query_heads,
                            shape.head_dim,
                            0};

    for (std::int32_t layer = 0; layer < shape.layers; ++layer) {
      check(cuda::append_kv({shape, kv, layer, slots_.get(), requests, rows_.get(), rows_.get()},
                            view));
    }
    cuda::SummaryBatch summary;
    summary.state = state;
    summary.options.beta_long = 0.999F;
    summary.entries = entries_.get();
    summary.requests = requests;
    summary.layers = shape.layers;
    summary.q = q_.get();
    summary.q_layer_stride = requests * query_size;
    summary.q_request_stride = query_size;
    summary.q_head_stride = shape.head_dim;
    check(cuda::summary_update(summary, view));

    cuda::BoundaryBatch pass;
    pass.shape = shape;
    pass.kv = kv;
    pass.summaries = state;
    pass.demand.p = 0.7F;
    pass.requests = requests;
    pass.max_slots = max_slots;
    pass.inputs = boundary_.get();
    pass.block_table = table_.get();
    pass.block_table_stride = max_pages;
    pass.scores = scores_.get();
    pass.score_stride = max_slots;
    pass.score_request_stride = rows * max_slots;
    pass.sums = sums_.get();
    check(cuda::boundary_pass(pass, workspace_.get(), view));
    check(cuda::demand_delta(sums_.get(), rows, delta_.get(), requests, view));

    cuda::SelectionBatch selection;
    selection.shape = shape;
    selection.retention.recent = 4;
    selection.requests = requests;
    selection.max_slots = max_slots;
    selection.inputs = retention_.get();
    selection.scores = scores_.get();
    selection.score_stride = max_slots;
    selection.score_request_stride = rows * max_slots;
    selection.marks = marks_.get();
    selection.mark_stride = max_pages;
    selection.bits = bits_.get();
    selection.words = 1;
    selection.page_kept = page_kept_.get();
    selection.page_kept_stride = max_pages;
    check(cuda::select(selection, view));
    check(cuda::plan_compaction(
        {shape.page_size, CompactionStrategy::fill_holes, requests, retention_.get(), marks_.get(),
         max_pages, page_kept_.get(), max_pages, plans_.get()},
        view));
    cuda::CompactionBatch compaction;
    compaction.shape = shape;
    compaction.kv = kv;
    compaction.requests = requests;
    compaction.inputs = retention_.get();
    compaction.plans = plans_.get();
    compaction.block_table = table_.get();
    compaction.block_table_stride = max_pages;
    compaction.marks = marks_.get();
    compaction.mark_stride = max_pages;
    compaction.bits = bits_.get();
    compaction.words = 1;
    check(cuda::compact(compaction, view));
    check(cuda::copy_pages({shape, kv, copies_.get(), 1}, view));
    check(cuda::paged_attention({shape, kv, 1, requests, table_.get(), max_pages, lengths_.get(), 0,
                                 q_.get(), out_.get(), 0.0F},
                                max_slots, workspace_.get(), view));
  }

  friend bool operator==(const Device& a, const Device& b) {
    return a.k_.download() == b.k_.download() && a.v_.download() == b.v_.download() &&
           a.summaries_.download() == b.summaries_.download() &&
           a.scores_.download() == b.scores_.download() &&
           a.sums_.download() == b.sums_.download() && a.delta_.download() == b.delta_.download() &&
           a.bits_.download() == b.bits_.download() && a.out_.download() == b.out_.download();
  }
  [[nodiscard]] std::vector<float> delta() const { return delta_.download(); }
  [[nodiscard]] std::vector<cuda::RequestPlan> plans() const { return plans_.download(); }

 private:
  static void check(const Status& status) {
    INFO(status.message());
    REQUIRE(status.ok());
  }
  static std::size_t workspace_size() {
    return static_cast<std::size_t>(
        std::max(cuda::boundary_workspace_bytes(shape, requests, max_slots, 0),
                 cuda::paged_attention_workspace_bytes(shape, requests, max_slots)));
  }

  DeviceArray<float> k_{normals(1, pool * 16 * shape.layers * row_size)};
  DeviceArray<float> v_{normals(2, pool * 16 * shape.layers * row_size)};
  DeviceArray<float> summaries_{normals(3, shape.layers* requests * 2 * query_size)};
  DeviceArray<float> rms_{std::vector<float>(shape.layers * requests * shape.query_heads, 1.0F)};
  DeviceArray<std::int64_t> steps_{std::vector<std::int64_t>(shape.layers * requests, 3)};
  DeviceArray<SummaryEntry> entries_{std::vector<SummaryEntry>(requests)};
  DeviceArray<cuda::BoundaryRequest> boundary_{std::vector<cuda::BoundaryRequest>(requests)};
  DeviceArray<cuda::RetentionRequest> retention_{std::vector<cuda::RetentionRequest>(requests)};
  DeviceArray<std::int32_t> table_{std::vector<std::int32_t>(requests * max_pages)};
  DeviceArray<std::int64_t> slots_{std::vector<std::int64_t>(requests)};
  DeviceArray<std::int32_t> lengths_{std::vector<std::int32_t>(requests)};
  DeviceArray<float> q_{std::vector<float>(shape.layers * requests * query_size)};
  DeviceArray<float> rows_{std::vector<float>(requests * row_size)};
  DeviceArray<std::uint8_t> marks_{std::vector<std::uint8_t>(requests * max_pages, page_private)};
  DeviceArray<PageCopy> copies_{{{PageId{10}, PageId{11}}}};
  DeviceArray<float> scores_{std::vector<float>(requests * rows * max_slots)};
  DeviceArray<std::uint64_t> sums_{std::vector<std::uint64_t>(requests * 2)};
  DeviceArray<float> delta_{std::vector<float>(requests)};
  DeviceArray<std::uint64_t> bits_{std::vector<std::uint64_t>(requests * rows)};
  DeviceArray<std::int32_t> page_kept_{std::vector<std::int32_t>(requests * max_pages)};
  DeviceArray<cuda::RequestPlan> plans_{std::vector<cuda::RequestPlan>(requests)};
  DeviceArray<float> out_{std::vector<float>(requests * query_size)};
  DeviceArray<std::byte> workspace_{std::vector<std::byte>(workspace_size())};
};

TEST_CASE("cuda: a captured graph serves other requests", "[cuda][graph]") {
  const Step first{{{0, 1}, {1, 0}},
                   {{48, 32, 0, 0, 90}, {64, 48, 1, 0, 70}},
                   {{48, 0, 32, 1}, {64, 0, 48, 1}},
                   {0, 1, 2, -1, 3, 4, 5, 6},
                   {2 * 16 + 15, 6 * 16 + 15},
                   {48, 64},
                   5};
  // One request fewer, the other longer, in other pages: padding takes the place of the first.
  const Step second{{{-1, 0}, {1, 0}},
                    {{0, 0, 0, 0, 0}, {64, 48, 1, 0, 300}},
                    {{0, 0, 0, 0}, {64, 0, 32, 2}},
                    {-1, -1, -1, -1, 8, 7, 3, 9},
                    {-1, 9 * 16 + 15},
                    {0, 64},
                    6};
  Device launched, replayed;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  replayed.enqueue(stream);
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);

  for (const Step& step : {first, second}) {
    launched.set(step);
    replayed.set(step);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    launched.enqueue(stream);
    REQUIRE(cudaGraphLaunch(executable, stream) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(launched == replayed);
  }
  CHECK(replayed.delta()[0] == 0.0F);
  CHECK(replayed.delta()[1] != 0.0F);
  CHECK(replayed.plans()[0].victims == 0);
  CHECK(replayed.plans()[1].victims == 2);
  CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

}  // namespace
}  // namespace growpage::test
