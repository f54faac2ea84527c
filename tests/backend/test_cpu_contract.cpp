// SPDX-License-Identifier: Apache-2.0
// Promises of the CPU backend beside its numbers: kernels allocate nothing, V as a view of K moves
// once, small workspaces of the right size are enough.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <set>
#include <vector>

#include "backend/cpu_backends.hpp"
#include "backend/scene.hpp"
#include "support/catch.hpp"

namespace {
std::atomic<std::int64_t> allocations{0};
}

// Every form that libstdc++ uses, so that no other replacement's memory ends here; not inlined, or
// g++ takes malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  ++allocations;
  return std::malloc(size > 0 ? size : 1);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}

namespace growpage::test {

TEMPLATE_TEST_CASE("kernels allocate nothing", "[backend]", ScalarCpu, SimdCpu) {
  TestType backend;
  SceneSpec spec;
  spec.slots = 128;
  Scene<TestType> scene(backend, spec);
  std::vector<float> scores(static_cast<std::size_t>(scene.rows() * spec.slots));
  std::vector<std::uint64_t> bits(static_cast<std::size_t>(scene.rows() * scene.words()));
  std::vector<std::int32_t> kept(8);
  const std::vector<std::uint8_t> marks(8, page_private);
  Demand demand;
  BoundaryPass pass;
  pass.shape = spec.shape;
  pass.kv = scene.kv();
  pass.summaries = scene.summaries();
  pass.retention.max_pool = 5;
  pass.retention.redundancy_weight = 0.5F;
  pass.input = {scene.pages.data(), 128, 112, 1, 300};
  pass.scores = scores.data();
  pass.score_stride = 128;
  pass.result = &demand;
  Selection selection;
  selection.shape = spec.shape;
  selection.scores = scores.data();
  selection.score_stride = 128;
  selection.marks = marks.data();
  selection.keep = 112;
  selection.out = scene.keep_set(bits.data(), kept.data());
  CompactionMove move;
  move.shape = spec.shape;
  move.kv = scene.kv();
  move.pages = scene.pages.data();
  move.marks = marks.data();
  move.plan.victims = 1;
  move.plan.victim[0] = 3;
  move.keep = selection.out;
  const std::int64_t before = allocations;
  backend.boundary_pass(pass, scene.workspace());
  backend.select(selection, scene.workspace());
  backend.compact(move);
  CHECK(allocations == before);
  CHECK(demand.count == scene.rows());
}

TEST_CASE("V as a view of K moves once", "[backend]") {
  ScalarCpu backend;
  SceneSpec spec;
  spec.v_in_k = true;
  spec.slots = 64;
  Scene<ScalarCpu> scene(backend, spec);
  const Scene<ScalarCpu> before(backend, spec);
  const std::vector<std::uint8_t> marks(4, page_private);
  Random random(2);
  std::vector<float> scores(static_cast<std::size_t>(scene.rows() * spec.slots));
  for (float& x : scores) x = static_cast<float>(random.uniform());
  RetentionOptions options;
  options.recent = 2;
  const SelectOutcome selected = scene.select(scores, options, marks, 48);
  const auto plan = plan_compaction(marks, selected.page_kept, 1, CompactionStrategy::fill_holes);
  REQUIRE(plan.ok());
  scene.compact(selected, *plan, marks, scores);
  scene.download();
  CHECK(scene.v_host == before.v_host);  // the separate V memory is not touched
  KeepSet keep = scene.keep_set(const_cast<std::uint64_t*>(selected.bits.data()), nullptr);
  std::multiset<std::vector<float>> want;
  std::multiset<std::vector<float>> have;
  for (std::int32_t s = 0; s < 64; ++s) {
    if (keep.kept(1, 1, s)) want.insert(before.k_row(1, 1, s));
    if (s / 16 != plan->victim[0]) have.insert(scene.k_row(1, 1, s));
  }
  CHECK(have == want);
  CHECK(page_bytes(spec.shape, scene.kv()) == 2 * 2 * 16 * 64 * 4);
}

TEST_CASE("the workspace grows with the slots and the workers", "[backend]") {
  const CacheShape shape{
      .layers = 2, .query_heads = 14, .kv_heads = 2, .head_dim = 80, .page_size = 16};
  const CpuBackend one({}, CpuBackend::Isa::scalar);
  const CpuBackend two(two_workers(), CpuBackend::Isa::scalar);
  CHECK(one.workspace_bytes(shape, 100) <= one.workspace_bytes(shape, 101));
  CHECK(one.workspace_bytes(shape, 100) < one.workspace_bytes(shape, 4096));
  const std::int64_t extra = two.workspace_bytes(shape, 512) - one.workspace_bytes(shape, 512);
  // Room for the logits of 2·G = 14 queries, at least, for the second worker.
  CHECK(extra >= 14 * 512 * 4);
}

TEST_CASE("large blocks are zero and aligned", "[backend]") {
  CpuBackend backend;
  constexpr std::int64_t bytes = std::int64_t{20} << 20;
  auto* memory = static_cast<char*>(backend.allocate(bytes));
  REQUIRE(memory != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
  CHECK(memory[0] == 0);
  memory[bytes - 1] = 'x';
  backend.deallocate(memory, bytes);
  CHECK(backend.allocate(-1) == nullptr);
}

}  // namespace growpage::test
