// SPDX-License-Identifier: Apache-2.0
#include "backend/conformance_memory.hpp"
#include "growpage/backend/cuda.hpp"
#include "growpage/backend/cuda/tensor_parallel.hpp"

namespace growpage::test {

TEMPLATE_TEST_CASE("the CUDA backend conforms", "[cuda][conformance]", CudaBackend) {
  conformance::everything<TestType>();
}

TEST_CASE("cuda: more entries than a launch takes", "[cuda]") {
  CudaBackend backend;
  const std::int32_t slots = 500, heads = 1, dim = 4;
  const auto rows = static_cast<std::size_t>(slots);
  DeviceArray<CudaBackend, float> summaries(backend, std::vector<float>(rows * 2 * dim, 9.0F));
  DeviceArray<CudaBackend, float> rms(backend, std::vector<float>(rows, 9.0F));
  DeviceArray<CudaBackend, std::int64_t> steps(backend, std::vector<std::int64_t>(rows, 7));
  std::vector<float> q(rows * dim);
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = static_cast<float>(i);
  DeviceArray<CudaBackend, float> queries(backend, q);
  std::vector<SummaryEntry> entries;
  for (std::int32_t r = 0; r < slots; ++r) entries.push_back({slots - 1 - r, 1});
  SummaryUpdate update;
  update.state = {
      summaries.get(), rms.get(), nullptr, steps.get(), SummaryOptions::Storage::f32, 1, slots,
      heads,           dim,       0};
  update.options.beta_long = 0.999F;
  update.entries = entries.data();
  update.requests = slots;
  update.q = queries.get();
  update.q_request_stride = dim;
  update.q_head_stride = dim;
  backend.summary_update(update);
  entries.assign(rows, {-1, 0});  // read before the call returned
  const std::vector<float> got = summaries.download();
  for (std::int32_t r = 0; r < slots; ++r) {
    const auto row = static_cast<std::size_t>(slots - 1 - r);
    REQUIRE(got[row * 2 * dim + 3] == static_cast<float>(r * dim + 3));
  }
  CHECK(backend.take_status().ok());
}

TEST_CASE("cuda: what a device refuses is told once", "[cuda]") {
  CudaBackend backend;
  SceneSpec spec;
  const Scene<CudaBackend> scene(backend, spec);
  std::vector<std::byte> ordinary(static_cast<std::size_t>(page_bytes(spec.shape, scene.kv())));
  const PageTransfer transfer[] = {{scene.pages[0], PageId{0}}};
  backend.pages_to_host(spec.shape, scene.kv(), transfer, ordinary.data());
  const Status status = backend.take_status();
  CHECK(status.code() == StatusCode::unsupported);
  CHECK(status.message() ==
        "unsupported: host is ordinary host memory; allowed: memory of allocate_host, or "
        "registered with CUDA");
  CHECK(backend.take_status().ok());
  CHECK(ordinary == std::vector<std::byte>(ordinary.size()));
}

TEST_CASE("cuda: memory that is not to be had is null, and no later call fails for it", "[cuda]") {
  CudaBackend backend;
  CHECK(backend.allocate(std::int64_t{1} << 60) == nullptr);
  CHECK(backend.allocate(-1) == nullptr);
  void* memory = backend.allocate(16);
  REQUIRE(memory != nullptr);
  backend.deallocate(memory, 16);
  CHECK(backend.take_status().ok());
}

#ifndef GROWPAGE_HAS_NCCL
TEST_CASE("cuda: without NCCL the reduction over ranks says so", "[cuda]") {
  const Status status = cuda::reduce_demand(nullptr, 1, nullptr, {});
  CHECK(status.code() == StatusCode::unsupported);
  CHECK(cuda::reduce_demand(nullptr, 0, nullptr, {}).ok());
}
#endif

}  // namespace growpage::test
