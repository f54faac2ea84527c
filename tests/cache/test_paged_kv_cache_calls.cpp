// SPDX-License-Identifier: Apache-2.0
// PagedKVCache's calls one by one: swap is exact, what a boundary reads, zipage's history,
// refusals.
#include <cstring>
#include <utility>

#include "growpage/policy/zipage.hpp"
#include "support/catch.hpp"
#include "support/solo.hpp"

namespace growpage::test {
namespace {

/// Every byte of a summary row.
std::vector<std::byte> summary_row(const CpuCache& cache, SummarySlot slot) {
  const SummaryView& view = cache.summaries();
  std::vector<std::byte> out;
  const auto add = [&out](const void* data, std::int64_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    out.insert(out.end(), from, from + bytes);
  };
  for (std::int32_t l = 0; l < view.layers; ++l) {
    const std::int64_t element = view.storage == SummaryOptions::Storage::f32 ? 4 : 2;
    add(static_cast<const char*>(view.summaries) + view.index(l, slot.value, 0, 0) * element,
        std::int64_t{2} * view.query_heads * view.head_dim * element);
    add(view.query_rms + view.row(l, slot.value) * view.query_heads,
        std::int64_t{view.query_heads} * 4);
    add(view.steps + view.row(l, slot.value), 8);
    if (view.window != nullptr) {
      const std::int64_t floats = std::int64_t{view.window_size} * view.query_heads * view.head_dim;
      add(view.window + view.row(l, slot.value) * floats, floats * 4);
    }
  }
  return out;
}

TEST_CASE("swap out and in is exact, whatever ran in between") {
  PagedKVCacheOptions options = tiny_options(8);
  options.pages.host_pages = 8;
  options.summary.window = GENERATE(0, 16);
  options.summary.storage =
      GENERATE(SummaryOptions::Storage::f32, SummaryOptions::Storage::f16_stochastic);
  options.dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  auto cache = CpuCache::create(options).value();
  Solo a(cache, 0);
  a.decode(64);
  const auto summaries = summary_row(cache, a.slot);
  const Demand before = a.measure();
  a.swap_out();
  CHECK(cache.allocatable() == 8);
  // Somebody else takes all its pages and its summary slot.
  Solo b(cache, 0, 1000);
  b.decode(16 * 8);
  REQUIRE(cache.release(b.id).ok());
  cache.clear_prefix_cache();
  a.swap_in(3);
  CHECK(summary_row(cache, a.slot) == summaries);
  a.held.check_rows(a.model, a.id);
  const Demand after = a.measure();
  CHECK(after.short_sum == before.short_sum);
  CHECK(after.long_sum == before.long_sum);
  CHECK(after.count == before.count);
  if (options.dtype == DType::f32 && options.summary.window == 0 &&
      options.summary.storage == SummaryOptions::Storage::f32) {
    a.compact();
  }
  a.held.check_attention(a.model, a.id, a.position());
  CHECK(cache.view(a.id)->length == 64);
}

TEST_CASE("the long summary is as slow as pages are long, or as it is told") {
  PagedKVCacheOptions options = tiny_options();
  const auto [set, used] = GENERATE(std::pair{0.0F, 0.984F}, std::pair{0.95F, 0.95F});
  options.summary.beta_long = set;
  auto cache = CpuCache::create(options).value();
  CHECK(cache.cache_options().summary.beta_long == used);
  const std::vector<float> ones(std::size_t{2} * 4 * 16, 1.0F), twos(ones.size(), 2.0F);
  REQUIRE(cache.update_summaries(std::vector<SummaryEntry>{{3, 1}}, {ones.data()}, 0, 2).ok());
  REQUIRE(cache.update_summaries(std::vector<SummaryEntry>{{3, 0}}, {twos.data()}, 0, 2).ok());
  const SummaryView& view = cache.summaries();
  const auto* summaries = static_cast<const float*>(view.summaries);
  CHECK(double{summaries[view.index(1, 3, 0, 2)]} == Approx(1.1).epsilon(1e-6));
  CHECK(double{summaries[view.index(1, 3, 1, 2)]} == Approx(2 - double{used}).epsilon(1e-6));
}

TEST_CASE("K is read once at a boundary, and again only when it changed") {
  auto cache = CpuCache::create(tiny_options()).value();
  Solo a(cache);
  a.decode(48);
  const std::int64_t once = std::int64_t{2} * 2 * 48 * 16 * 4;
  (void)a.measure();
  CHECK(cache.k_bytes_read() == once);
  a.compact();
  CHECK(cache.k_bytes_read() == once);
  a.decode(16);
  a.compact();  // not measured before: its own pass
  CHECK(cache.k_bytes_read() == 2 * once);
}

TEST_CASE("zipage: scores of the past count, decayed, and survive a swap") {
  PagedKVCacheOptions options = tiny_options(12);
  options.retention = ZipagePolicy::defaults();
  options.retention.recent = 4;
  options.retention.window = 8;
  options.summary.window = 8;
  options.pages.host_pages = 12;
  options.retention.redundancy_weight = GENERATE(0.0F, 0.8F);
  // The same text three ways: with history; with a swap between the compactions; without history.
  std::vector<std::vector<reference::Row>> kept;
  for (const int way : {0, 1, 2}) {
    options.retention.global_decay = way == 2 ? 0.0F : 0.95F;
    auto cache = CpuCache::create(options).value();
    Solo a(cache, 1);
    a.decode(64);
    a.compact();
    if (way == 1) {
      a.swap_out();
      // Its slot has a history of its own meanwhile.
      Solo other(cache, 1, 2000);
      other.decode(48);
      other.compact();
      REQUIRE(cache.release(other.id).ok());
      a.swap_in(5);
    }
    a.decode(16);
    a.compact();
    a.decode(16);
    a.compact();
    kept.push_back(a.rows());
  }
  CHECK((kept[0] == kept[1]));
  if (options.retention.redundancy_weight == 0) CHECK((kept[0] != kept[2]));
}

TEST_CASE("a sequence that takes a used summary slot does not inherit its history") {
  PagedKVCacheOptions options = tiny_options(12);
  options.retention = ZipagePolicy::defaults();
  options.retention.window = 8;
  options.summary.window = 8;
  std::vector<std::vector<reference::Row>> kept;
  for (const bool used : {false, true}) {
    auto cache = CpuCache::create(options).value();
    if (used) {
      Solo other(cache, 0, 2000);
      other.decode(48);
      other.compact();
      REQUIRE(cache.release(other.id).ok());
    }
    Solo a(cache, 0);
    a.decode(48);
    a.compact();
    kept.push_back(a.rows());
  }
  CHECK((kept[0] == kept[1]));
}

TEST_CASE("fork shares pages until one of them writes") {
  auto cache = CpuCache::create(tiny_options()).value();
  Solo a(cache);
  a.decode(20);
  Solo b = a;
  b.id = cache.fork(a.id).value();
  b.slot.value = 1;
  b.copies.clear();
  b.held.text.push_back(777);
  REQUIRE(cache.append(b.id, 1, &b.held.text.back(), b.copies).ok());
  REQUIRE(b.copies.size() == 1);
  REQUIRE(cache.run_copies(b.copies).ok());
  b.model.append(b.id, {&b.held.text.back(), 1}, 20, 20);
  b.held.append(20);
  a.decode(1);
  a.held.check_rows(a.model, a.id);
  b.held.check_rows(b.model, b.id);
}

}  // namespace
}  // namespace growpage::test
