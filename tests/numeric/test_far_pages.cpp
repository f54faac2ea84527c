// SPDX-License-Identifier: Apache-2.0
// Pages whose offset passes 2^31 elements (and 2^32 bytes). The address range is reserved without
// memory; only the pages the test uses are backed, so a kernel that computes an offset in 32 bits
// faults or answers wrong.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "support/catch.hpp"
#include "support/reference_keep.hpp"

namespace growpage {
namespace {

using test::OwnedKeepSet;
using test::Random;
using test::Row;
using test::Rows;
using test::Workspace;
using Isa = CpuBackend::Isa;

constexpr CacheShape shape{
    .layers = 2, .query_heads = 4, .kv_heads = 2, .head_dim = 32, .page_size = 16};
constexpr std::int64_t page_elements = 16 * 2 * 32;
constexpr std::int64_t pages = (std::int64_t{1} << 31) / page_elements + 64;

/// K or V `[layer, page, head, token, dim]` in bf16 over `pages` pages, backed where asked for.
class SparseTensor {
 public:
  SparseTensor()
      : size_(static_cast<std::size_t>(shape.layers * pages * page_elements * 2)),
        memory_(::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                       0)) {}
  ~SparseTensor() {
    if (reserved()) ::munmap(memory_, size_);
  }
  SparseTensor(const SparseTensor&) = delete;
  SparseTensor& operator=(const SparseTensor&) = delete;

  [[nodiscard]] bool reserved() const { return memory_ != MAP_FAILED; }
  [[nodiscard]] KvTensor view() const {
    KvTensor t;
    t.base = memory_;
    t.layout = KvLayout::hnd(shape, pages, 32);
    t.dtype = DType::bf16;
    return t;
  }
  /// Memory for a page in every layer.
  [[nodiscard]] bool back(PageId page) const {
    const auto granule = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (std::int32_t l = 0; l < shape.layers; ++l) {
      const auto begin = reinterpret_cast<std::uintptr_t>(memory_) +
                         static_cast<std::uintptr_t>((l * pages + page.value) * page_elements * 2);
      const std::uintptr_t first = begin / granule * granule;
      const std::uintptr_t bytes = begin + page_elements * 2 - first;
      if (::mprotect(reinterpret_cast<void*>(first), bytes, PROT_READ | PROT_WRITE) != 0) {
        return false;
      }
    }
    return true;
  }

 private:
  std::size_t size_;
  void* memory_;
};

TEST_CASE("pages beyond 2^31 elements: every kernel answers as it does on a small cache") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CAPTURE(static_cast<int>(isa));
  CpuBackend backend({}, isa);
  SparseTensor far_k, far_v;
  REQUIRE(far_k.reserved());
  REQUIRE(far_v.reserved());

  // The same request twice: densely packed, and on pages near both ends of a huge pool.
  const auto last = static_cast<std::int32_t>(pages - 1);
  std::vector<PageId> table{{last - 3}, {2}, {last}, {last - 1}, {7}};
  const PageId extra{last - 2};
  std::vector<PageId> touched = table;
  touched.push_back(extra);
  for (const PageId p : touched) {
    REQUIRE(far_k.back(p));
    REQUIRE(far_v.back(p));
  }
  REQUIRE(std::int64_t{last} * page_elements > std::int64_t{1} << 31);
  const KvView far{far_k.view(), far_v.view()};

  test::Scene::Options options;
  options.shape = shape;
  options.cache = {.slots = 80, .spare_pages = 1, .dtype = DType::bf16, .seed = 91};
  options.rotary_dim = 32;
  test::Scene scene(backend, options);
  const KvView near = scene.cache.view();

  // append_kv fills both from one source.
  for (std::int32_t l = 0; l < shape.layers; ++l) {
    std::vector<BFloat16> k, v;
    std::vector<std::int64_t> mapping;
    for (std::int32_t s = 0; s < 80; ++s) {
      mapping.push_back(table[std::size_t(s / 16)].offset() * 16 + s % 16);
      for (std::int32_t h = 0; h < 2; ++h) {
        for (const double x : scene.cache.key(l, h, s)) {
          k.push_back(BFloat16::from_float(static_cast<float>(x)));
        }
        for (const double x : scene.cache.value(l, h, s)) {
          v.push_back(BFloat16::from_float(static_cast<float>(x)));
        }
      }
    }
    AppendKv append;
    append.shape = shape;
    append.kv = far;
    append.layer = l;
    append.slot_mapping = mapping.data();
    append.tokens = 80;
    append.k = k.data();
    append.v = v.data();
    backend.append_kv(append);
  }

  // boundary_pass
  Workspace workspace(backend.workspace_bytes(shape, 80));
  std::vector<float> scores(4 * 80), far_scores(4 * 80);
  Demand demand, far_demand;
  BoundaryPass pass;
  pass.shape = shape;
  pass.kv = near;
  pass.summaries = scene.state.view;
  pass.rope = scene.rope;
  pass.input = {scene.cache.table.data(), 80, 64, test::Scene::summary_slot, 79};
  pass.scores = scores.data();
  pass.score_stride = 80;
  pass.result = &demand;
  backend.boundary_pass(pass, workspace.data());
  pass.kv = far;
  pass.input.pages = table.data();
  pass.scores = far_scores.data();
  pass.result = &far_demand;
  backend.boundary_pass(pass, workspace.data());
  CHECK(scores == far_scores);
  CHECK(demand.short_sum == far_demand.short_sum);
  CHECK(demand.long_sum == far_demand.long_sum);

  // copy_pages and a way over the host
  const std::vector<PageCopy> copies{{table[2], extra}};
  backend.copy_pages(shape, far, copies);
  std::vector<std::byte> host(static_cast<std::size_t>(page_bytes(shape, far)) * 2);
  const std::vector<PageTransfer> out{{extra, PageId{0}}, {table[2], PageId{1}}};
  backend.pages_to_host(shape, far, out, host.data());
  const auto middle = host.begin() + page_bytes(shape, far);
  CHECK(std::equal(host.begin(), middle, middle));
  std::vector<std::byte> near_host(static_cast<std::size_t>(page_bytes(shape, near)));
  const std::vector<PageTransfer> near_out{{scene.cache.table[2], PageId{0}}};
  backend.pages_to_host(shape, near, near_out, near_host.data());
  CHECK(std::equal(host.begin(), middle, near_host.begin()));
  const std::vector<PageTransfer> in{{table[2], PageId{0}}};
  backend.pages_from_host(shape, far, in, host.data());

  // compact
  const std::vector<std::uint8_t> marks(5, page_private);
  OwnedKeepSet keep(shape, 80);
  Random random(92);
  random_keep(random, shape, marks, 64, keep);
  for (const auto strategy : {CompactionStrategy::fill_holes, CompactionStrategy::in_order}) {
    const auto planned = plan_compaction(marks, keep.page_kept(), 1, strategy);
    REQUIRE(planned.ok());
    CompactionMove move;
    move.shape = shape;
    move.marks = marks.data();
    move.plan = *planned;
    move.keep = keep.view;
    move.kv = near;
    move.pages = scene.cache.table.data();
    backend.compact(move);
    move.kv = far;
    move.pages = table.data();
    backend.compact(move);

    // paged_attention, on what the compaction left
    std::vector<std::int32_t> near_table, far_table;
    for (const std::int32_t p : reference::page_order(5, *planned)) {
      near_table.push_back(scene.cache.table[std::size_t(p)].value);
      far_table.push_back(table[std::size_t(p)].value);
    }
    std::vector<float> q;
    for (int i = 0; i < 4 * 32; ++i) q.push_back(static_cast<float>(random.normal()));
    std::vector<float> near_out_rows(4 * 32), far_out_rows(4 * 32);
    const std::int32_t length = 64;
    PagedAttention a;
    a.shape = shape;
    a.layer = 1;
    a.requests = 1;
    a.block_table_stride = 5;
    a.kv_lengths = &length;
    a.q = q.data();
    a.kv = near;
    a.block_table = near_table.data();
    a.out = near_out_rows.data();
    backend.paged_attention(a, workspace.data());
    a.kv = far;
    a.block_table = far_table.data();
    a.out = far_out_rows.data();
    backend.paged_attention(a, workspace.data());
    CHECK(near_out_rows == far_out_rows);
  }
}

}  // namespace
}  // namespace growpage
