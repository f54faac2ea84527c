// SPDX-License-Identifier: Apache-2.0
// What PagedKVCache refuses, by which name, and that nothing has changed then.
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/solo.hpp"

namespace growpage::test {
namespace {

TEST_CASE("what must stay has to fit: the compaction is given up and the sequence usable") {
  PagedKVCacheOptions options = tiny_options();
  auto cache = CpuCache::create(options).value();
  Solo a(cache);
  a.decode(48);
  const CompactionTicket ticket = a.begin();
  CHECK(cache.compact(ticket, a.slot, 47, /*protected_slots=*/30).code() ==
        StatusCode::at_capacity);
  CHECK_FALSE(cache.view(a.id)->busy);
  CHECK(cache.view(a.id)->slots == 48);
  CHECK(cache.complete_fence(ticket.fence).code() == StatusCode::stale_id);
  a.held.check_rows(a.model, a.id);
  CHECK(cache.check_invariants().ok());
}

TEST_CASE("measure_demand: refusals, and nothing to measure on one page") {
  PagedKVCacheOptions options = tiny_options();
  options.pages.host_pages = 8;
  auto cache = CpuCache::create(options).value();
  Solo a(cache);
  a.decode(16);
  Demand demand;
  CHECK(cache.measure_demand(a.id, a.slot, 15, demand).ok());
  CHECK(demand.count == 0);
  a.decode(32);
  CHECK(cache.measure_demand(SequenceId{}, a.slot, 47, demand).code() == StatusCode::stale_id);
  CHECK(cache.measure_demand(a.id, SummarySlot{}, 47, demand).code() ==
        StatusCode::invalid_argument);
  CHECK(cache.measure_demand(a.id, SummarySlot{8}, 47, demand).code() ==
        StatusCode::invalid_argument);
  CHECK(cache.measure_demand(a.id, a.slot, 48, demand).code() == StatusCode::invalid_argument);
  CHECK(cache.measure_demand(a.id, a.slot, -1, demand).code() == StatusCode::invalid_argument);
  const CompactionTicket ticket = a.begin();
  CHECK(cache.measure_demand(a.id, a.slot, 47, demand).code() == StatusCode::busy);
  CHECK(cache.cancel_compaction(ticket).ok());
  a.swap_out();
  CHECK(cache.measure_demand(a.id, a.slot, 47, demand).code() == StatusCode::busy);
  CHECK(demand.count == 0);
}

TEST_CASE("compact: refusals leave the compaction begun") {
  auto cache = CpuCache::create(tiny_options()).value();
  Solo a(cache);
  a.decode(48);
  CompactionTicket ticket{a.id, FenceId{}, 1, CompactionStrategy::fill_holes};
  CHECK(cache.compact(ticket, a.slot, 47).code() == StatusCode::protocol_error);
  a.held.check_rows(a.model, a.id);
  ticket = a.begin();
  CHECK(cache.compact(ticket, SummarySlot{9}, 47).code() == StatusCode::invalid_argument);
  CHECK(cache.compact(ticket, a.slot, 48).code() == StatusCode::invalid_argument);
  CompactionTicket stale = ticket;
  stale.sequence.generation += 1;
  CHECK(cache.compact(stale, a.slot, 47).code() == StatusCode::stale_id);
  CHECK(cache.view(a.id)->busy);
  CHECK(cache.compact(ticket, a.slot, 47).ok());
  CHECK(cache.compact(ticket, a.slot, 47).code() == StatusCode::protocol_error);
}

TEST_CASE("append_kv, update_summaries and attention name what they refuse") {
  auto cache = CpuCache::create(tiny_options(4)).value();
  std::vector<float> data(4096);
  const auto refuses = [](const Status& status, const std::string& argument) {
    CHECK(status.code() == StatusCode::invalid_argument);
    REQUIRE(status.detail() != nullptr);
    CHECK(status.detail()->argument == argument);
  };
  const std::vector<std::int64_t> slots = {0, 1};
  refuses(cache.append_kv(2, slots, data.data(), data.data()), "layer");
  refuses(cache.append_kv(-1, slots, data.data(), data.data()), "layer");
  refuses(cache.append_kv(0, slots, nullptr, data.data()), "k");
  refuses(cache.append_kv(0, slots, data.data(), nullptr), "v");
  const std::vector<std::int64_t> beyond = {0, 64};
  refuses(cache.append_kv(0, beyond, data.data(), data.data()), "slot_mapping");
  const std::vector<std::int64_t> padded = {-1, 63};
  CHECK(cache.append_kv(0, padded, data.data(), data.data()).ok());
  CHECK(cache.append_kv(0, {}, nullptr, nullptr).ok());

  const std::vector<SummaryEntry> entries = {{0, 1}};
  const std::vector<SummaryEntry> bad = {{8, 1}};
  refuses(cache.update_summaries(entries, {nullptr}, 0, 2), "QueryView::data");
  refuses(cache.update_summaries(entries, {data.data()}, 2, 1), "first_layer");
  refuses(cache.update_summaries(entries, {data.data()}, 1, 2), "layers");
  refuses(cache.update_summaries(bad, {data.data()}, 0, 2), "SummaryEntry::slot");
  CHECK(cache.update_summaries({}, {}, 0, 2).ok());

  const std::vector<std::int32_t> table = {0, 1};
  const std::vector<std::int32_t> lengths = {32};
  const std::vector<std::int32_t> too_long = {33};
  refuses(cache.attention(2, table, 2, lengths, data.data(), data.data()), "layer");
  refuses(cache.attention(0, table, 3, lengths, data.data(), data.data()), "block_table.size()");
  refuses(cache.attention(0, table, 2, lengths, nullptr, data.data()), "q");
  refuses(cache.attention(0, table, 2, lengths, data.data(), nullptr), "out");
  refuses(cache.attention(0, table, 2, too_long, data.data(), data.data()), "kv_lengths");
  CHECK(cache.attention(0, {}, 2, {}, nullptr, nullptr).ok());
}

TEST_CASE("attention over nothing is zero") {
  auto cache = CpuCache::create(tiny_options(4)).value();
  const std::vector<std::int32_t> table = {0, 0};
  const std::vector<std::int32_t> lengths = {0, 0};
  const std::vector<float> q(2 * 4 * 16, 1.0F);
  std::vector<float> out(2 * 4 * 16, 5.0F);
  REQUIRE(cache.attention(0, table, 1, lengths, q.data(), out.data()).ok());
  CHECK(out == std::vector<float>(2 * 4 * 16, 0.0F));
}

TEST_CASE("create() names the option it refuses") {
  const auto refuses = [](auto&& change, const std::string& argument) {
    PagedKVCacheOptions options = tiny_options();
    change(options);
    const auto cache = CpuCache::create(options);
    CHECK(cache.code() == StatusCode::invalid_argument);
    REQUIRE(cache.status().detail() != nullptr);
    CHECK(cache.status().detail()->argument == argument);
  };
  using Options = PagedKVCacheOptions;
  refuses([](Options& o) { o.shape.kv_heads = 3; }, "CacheShape::query_heads");
  refuses([](Options& o) { o.pages.pages = 0; }, "PageManagerOptions::pages");
  refuses([](Options& o) { o.pages.max_pages_per_sequence = 0x7fffffff / 16; },
          "max_pages_per_sequence * page_size");
  refuses([](Options& o) { o.summary.storage = SummaryOptions::Storage::bf16; },
          "SummaryOptions::storage");
  refuses([](Options& o) { o.summary.beta_short = 0.99F; }, "SummaryOptions::beta_long");
  refuses([](Options& o) { o.rope.rotary_dim = 17; }, "RopeParams::rotary_dim");
  refuses([](Options& o) { o.demand.p = 0; }, "DemandOptions::p");
  refuses([](Options& o) { o.retention.recent = 17; }, "RetentionOptions::recent");
  refuses([](Options& o) { o.retention.score = ScoreKind::window; }, "SummaryOptions::window");
  refuses([](Options& o) { o.softmax_scale = -1; }, "PagedKVCacheOptions::softmax_scale");
  refuses([](Options& o) { o.score_buffers = 0; }, "PagedKVCacheOptions::score_buffers");
  std::vector<float> memory(16);
  PagedKVCacheOptions overlapping = tiny_options();
  overlapping.kv.k = {memory.data(), nullptr, {}, DType::f32};
  const auto cache = CpuCache::create(overlapping);
  CHECK(cache.code() == StatusCode::invalid_argument);
  CHECK(cache.status().detail()->argument.starts_with("KvView::k"));
}

TEST_CASE("rope tables bound the positions that can be measured") {
  PagedKVCacheOptions options = tiny_options();
  const std::vector<float> table(40 * 4, 0.5F);
  options.rope.inv_freq = nullptr;
  options.rope.cos_table = options.rope.sin_table = table.data();
  options.rope.max_position = 40;
  auto cache = CpuCache::create(options).value();
  Solo a(cache);
  a.decode(41);
  Demand demand;
  const Status status = cache.measure_demand(a.id, a.slot, 40, demand);
  CHECK(status.code() == StatusCode::invalid_argument);
  CHECK(status.detail()->argument == "position");
  CHECK(cache.measure_demand(a.id, a.slot, 39, demand).ok());
}

}  // namespace
}  // namespace growpage::test
