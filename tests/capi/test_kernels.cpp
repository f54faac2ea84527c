// SPDX-License-Identifier: Apache-2.0
// Kernels on the engine's own memory: the same numbers as through the cache, and nothing wrong gets
// to them.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capi/engine.hpp"
#include "growpage/growpage.h"
#include "support/catch.hpp"

namespace growpage::test {
namespace {

constexpr std::int32_t layers = scenario_layers, heads = scenario_kv_heads,
                       query_heads = scenario_query_heads, dim = scenario_dim, b = scenario_page,
                       sequence_pages = 4, slots = sequence_pages * b;
constexpr std::int64_t memory_pages = 6, words = 1;

/// An engine's own memory with one full request in it, and the kernel arguments over it.
struct Own {
  std::vector<float> k_memory, v_memory, scores;
  std::vector<float> summaries, rms;
  std::vector<std::int64_t> steps;
  std::vector<char> workspace;
  std::vector<std::int32_t> table = {3, 0, 5, 2};
  growpage_tensor k{}, v{};
  growpage_summary_options summary{};
  growpage_summary_state state{};
  growpage_kernel kernel{};
  growpage_query query{};

  Own() {
    const std::size_t elements = std::size_t{layers} * memory_pages * heads * b * dim;
    k_memory.resize(elements);
    v_memory.resize(elements);
    scores.resize(std::size_t{layers} * heads * slots);
    const auto tensor = [](growpage_tensor& t, std::vector<float>& data) {
      growpage_tensor_init(&t, sizeof t);
      t.data = data.data();
      t.ndim = 5;
      const std::int64_t shape[] = {layers, memory_pages, heads, b, dim};
      std::copy(std::begin(shape), std::end(shape), t.shape);
    };
    tensor(k, k_memory);
    tensor(v, v_memory);
    growpage_kernel_init(&kernel, sizeof kernel);
    kernel.layers = layers;
    kernel.query_heads = query_heads;
    kernel.kv_heads = heads;
    kernel.head_dim = dim;
    kernel.page_size = b;
    kernel.isa = GROWPAGE_ISA_SCALAR;
    kernel.slots = slots;
    kernel.block_table = table.data();
    kernel.pages = table.size();
    kernel.k = &k;
    kernel.v = &v;
    std::size_t bytes = 0;
    REQUIRE(growpage_workspace_size(&kernel, slots, &bytes) == GROWPAGE_OK);
    workspace.resize(bytes);
    kernel.workspace = workspace.data();
    kernel.workspace_bytes = bytes;
    growpage_summary_options_init(&summary, sizeof summary);
    summary.slots = scenario_slots;
    growpage_summary_sizes sizes{};
    sizes.struct_size = sizeof sizes;
    REQUIRE(growpage_summary_get_sizes(&kernel, &summary, &sizes) == GROWPAGE_OK);
    CHECK(sizes.window == 0);
    summaries.resize(sizes.summaries / 4);
    rms.resize(sizes.query_rms / 4);
    steps.resize(sizes.steps / 8);
    state = {sizeof state, summaries.data(), rms.data(), nullptr, steps.data()};
    growpage_query_init(&query, sizeof query);
    query.summary = &summary;
    query.state = &state;
    query.summary_slot = 3;
    query.position = slots - 1;
  }
  float* row(std::vector<float>& memory, std::int32_t layer, std::int32_t page, std::int32_t head,
             std::int32_t token) const {
    return memory.data() +
           (((std::int64_t{layer} * memory_pages + page) * heads + head) * b + token) * dim;
  }
};

growpage_tensor queries_of(Projected& p) {
  growpage_tensor q;
  growpage_tensor_init(&q, sizeof q);
  q.data = p.q.data();
  q.ndim = 4;
  const std::int64_t shape[] = {layers, 1, query_heads, dim};
  std::copy(std::begin(shape), std::end(shape), q.shape);
  return q;
}

}  // namespace

TEST_CASE("C: kernels on own memory give what the cache gives", "[capi]") {
  // The same tokens in a cache and in memory of our own.
  EngineOptions options;
  growpage_cache* cache = nullptr;
  REQUIRE(growpage_cache_create(&options.cache, nullptr, &cache) == GROWPAGE_OK);
  std::uint64_t id = 0;
  growpage_page_copy copy{};
  REQUIRE(growpage_cache_admit(cache, nullptr, 0, nullptr, &id, nullptr) == GROWPAGE_OK);
  REQUIRE(growpage_cache_reserve(cache, id, slots) == GROWPAGE_OK);
  REQUIRE(growpage_cache_append(cache, id, slots, nullptr, &copy) == GROWPAGE_OK);
  REQUIRE(growpage_cache_mark_computed(cache, id, slots) == GROWPAGE_OK);
  Own own;
  own.summary.beta_long = 0.984F;  // what the cache takes for pages of 16 tokens
  const growpage_summary_entry first = {3, 1};
  const growpage_summary_entry later = {3, 0};
  for (std::int32_t t = 0; t < slots; ++t) {
    Projected p(t % 7, t);
    std::int64_t slot = 0;
    REQUIRE(growpage_cache_physical_slot(cache, id, t, &slot) == GROWPAGE_OK);
    for (std::int32_t l = 0; l < layers; ++l) {
      REQUIRE(growpage_cache_append_kv(cache, l, &slot, 1, p.keys(l), p.values(l), nullptr) ==
              GROWPAGE_OK);
      for (std::int32_t h = 0; h < heads; ++h) {
        const std::int32_t page = own.table[static_cast<std::size_t>(t / b)];
        std::copy_n(p.keys(l) + h * dim, dim, own.row(own.k_memory, l, page, h, t % b));
        std::copy_n(p.values(l) + h * dim, dim, own.row(own.v_memory, l, page, h, t % b));
      }
    }
    const growpage_tensor q = queries_of(p);
    const growpage_summary_entry* entry = t == 0 ? &first : &later;
    REQUIRE(growpage_cache_update_summaries(cache, entry, 1, &q, 0, layers, nullptr) ==
            GROWPAGE_OK);
    REQUIRE(growpage_update_summaries(&own.kernel, &own.summary, &own.state, entry, 1, &q, 0,
                                      layers) == GROWPAGE_OK);
  }

  growpage_demand of_cache{};
  growpage_demand of_own{};
  growpage_demand with_scores{};
  REQUIRE(growpage_cache_measure_demand(cache, id, 3, slots - 1, &of_cache, nullptr) ==
          GROWPAGE_OK);
  REQUIRE(growpage_measure_demand(&own.kernel, &own.query, &of_own) == GROWPAGE_OK);
  REQUIRE(growpage_score(&own.kernel, &own.query, 0, own.scores.data(), slots, &with_scores) ==
          GROWPAGE_OK);
  CHECK(of_cache.count == layers * heads);
  CHECK(of_own.short_sum == of_cache.short_sum);
  CHECK(of_own.long_sum == of_cache.long_sum);
  CHECK(with_scores.long_sum == of_cache.long_sum);
  CHECK(growpage_demand_delta(&of_own) == growpage_demand_delta(&of_cache));

  // Compact both; then the rows of both, page by page in table order, are the same.
  growpage_ticket ticket{};
  std::size_t count = 0;
  REQUIRE(growpage_cache_begin_compaction(cache, id, 1, GROWPAGE_FILL_HOLES, GROWPAGE_SHARED_KEEP,
                                          nullptr, 0, &count, &ticket) == GROWPAGE_OK);
  REQUIRE(growpage_cache_compact(cache, &ticket, 3, slots - 1, 0, nullptr) == GROWPAGE_OK);
  CHECK(growpage_cache_compact(cache, &ticket, 3, slots - 1, 0, nullptr) ==
        GROWPAGE_PROTOCOL_ERROR);
  REQUIRE(growpage_cache_complete_fence(cache, ticket.fence) == GROWPAGE_OK);

  const std::vector<std::uint8_t> marks(sequence_pages, GROWPAGE_PAGE_PRIVATE);
  std::vector<std::uint64_t> bits(std::size_t{layers} * heads * words);
  std::vector<std::int32_t> kept(sequence_pages);
  REQUIRE(growpage_select(&own.kernel, nullptr, own.scores.data(), slots, marks.data(), 0,
                          slots - b, bits.data(), words, kept.data()) == GROWPAGE_OK);
  std::int64_t total = 0;
  for (const std::int32_t rows : kept) total += rows;
  CHECK(total == std::int64_t{layers} * heads * (slots - b));
  growpage_compaction_plan plan{};
  REQUIRE(growpage_plan_compaction(marks.data(), kept.data(), sequence_pages, 1,
                                   GROWPAGE_FILL_HOLES, &plan) == GROWPAGE_OK);
  REQUIRE(growpage_compact(&own.kernel, marks.data(), &plan, bits.data(), words, nullptr, 0) ==
          GROWPAGE_OK);
  std::vector<std::int32_t> after = own.table;
  after.erase(after.begin() + plan.victim[0]);

  growpage_sequence view{};
  view.struct_size = sizeof view;
  REQUIRE(growpage_cache_get_sequence(cache, id, &view) == GROWPAGE_OK);
  REQUIRE(view.slots == slots - b);
  growpage_tensor k;
  growpage_tensor_init(&k, sizeof k);
  growpage_tensor v = k;
  REQUIRE(growpage_cache_get_kv(cache, &k, &v) == GROWPAGE_OK);
  REQUIRE(k.shape[1] == 24);
  for (std::int32_t l = 0; l < layers; ++l) {
    for (std::int32_t h = 0; h < heads; ++h) {
      for (std::int32_t s = 0; s < view.slots; ++s) {
        const std::int64_t offset = l * k.strides[0] + view.pages[s / b] * k.strides[1] +
                                    h * k.strides[2] + s % b * k.strides[3];
        const std::int32_t page = after[static_cast<std::size_t>(s / b)];
        REQUIRE(std::memcmp(static_cast<float*>(k.data) + offset,
                            own.row(own.k_memory, l, page, h, s % b), dim * sizeof(float)) == 0);
        REQUIRE(std::memcmp(static_cast<float*>(v.data) + offset,
                            own.row(own.v_memory, l, page, h, s % b), dim * sizeof(float)) == 0);
      }
    }
  }
  REQUIRE(growpage_cache_destroy(cache) == GROWPAGE_OK);
}

TEST_CASE("C: the long summary's weight is by the page size, or as it is given", "[capi]") {
  const auto [set, used] = GENERATE(std::pair{0.0F, 0.984}, std::pair{0.95F, 0.95});
  Own own;
  own.summary.beta_long = set;
  Projected p(1, 1);
  for (const std::int32_t first : {1, 0}) {
    p.q.assign(p.q.size(), first != 0 ? 1.0F : 2.0F);
    const growpage_tensor q = queries_of(p);
    const growpage_summary_entry entry = {3, first};
    REQUIRE(growpage_update_summaries(&own.kernel, &own.summary, &own.state, &entry, 1, &q, 0,
                                      layers) == GROWPAGE_OK);
  }
  const std::size_t row = (std::size_t{3} * 2 + 1) * query_heads * dim;  // [layer 0, slot 3, long]
  CHECK(double{own.summaries[row]} == Approx(2 - used).epsilon(1e-6));

  // 0.99 is too slow a short summary for the 0.984 of these pages.
  EngineOptions options;
  options.summary.beta_short = own.summary.beta_short = 0.99F;
  own.summary.beta_long = 0;
  const auto refused = [](growpage_status status) {
    CHECK(status == GROWPAGE_INVALID_ARGUMENT);
    growpage_error error{};
    growpage_last_error(&error, sizeof error);
    CHECK(std::string(error.argument) == "SummaryOptions::beta_long");
  };
  growpage_demand demand{};
  refused(growpage_measure_demand(&own.kernel, &own.query, &demand));
  growpage_cache* cache = nullptr;
  refused(growpage_cache_create(&options.cache, nullptr, &cache));
}

TEST_CASE("C: a kernel gets nothing that is out of range", "[capi]") {
  Own own;
  growpage_demand demand{};
  const auto refused = [&] {
    return growpage_measure_demand(&own.kernel, &own.query, &demand) == GROWPAGE_INVALID_ARGUMENT;
  };
  REQUIRE(growpage_measure_demand(&own.kernel, &own.query, &demand) == GROWPAGE_OK);
  own.table[1] = memory_pages;
  CHECK(refused());
  own.table[1] = 0;
  own.kernel.slots = slots + 1;  // one page more than the table has
  CHECK(refused());
  own.kernel.slots = slots;
  --own.kernel.workspace_bytes;
  CHECK(refused());
  ++own.kernel.workspace_bytes;
  own.query.summary_slot = scenario_slots;
  CHECK(refused());
  own.query.summary_slot = 3;
  own.state.steps = nullptr;
  CHECK(refused());
  own.state.steps = own.steps.data();
  own.k.shape[2] = heads + 1;
  CHECK(refused());
  own.k.shape[2] = heads;
  own.k.strides[4] = 2;
  CHECK(refused());
  own.k.strides[4] = 0;
  growpage_retention_options window;
  growpage_retention_options_init(&window, sizeof window);
  window.score = GROWPAGE_SCORE_WINDOW;  // no window is kept
  own.query.retention = &window;
  CHECK(refused());
  own.query.retention = nullptr;
  CHECK(!refused());

  // More rows kept than the remaining pages hold.
  const std::vector<std::uint8_t> marks(sequence_pages, GROWPAGE_PAGE_PRIVATE);
  const std::vector<std::uint64_t> all(std::size_t{layers} * heads, ~std::uint64_t{0});
  growpage_compaction_plan plan = {GROWPAGE_FILL_HOLES, 1, {1, -1}};
  CHECK(growpage_compact(&own.kernel, marks.data(), &plan, all.data(), words, nullptr, 0) ==
        GROWPAGE_INVALID_ARGUMENT);
  plan.victim[0] = sequence_pages;
  CHECK(growpage_compact(&own.kernel, marks.data(), &plan, all.data(), words, nullptr, 0) ==
        GROWPAGE_INVALID_ARGUMENT);
  // Less kept than must be.
  std::vector<std::uint64_t> bits(all.size());
  std::vector<std::int32_t> kept(sequence_pages);
  CHECK(growpage_select(&own.kernel, nullptr, own.scores.data(), slots, marks.data(), 0, 15,
                        bits.data(), words, kept.data()) == GROWPAGE_INVALID_ARGUMENT);
}

TEST_CASE("C: the engine's own KV memory, one tensor or a pointer a layer", "[capi]") {
  // NHD memory [layer, page, token, head, dim], seen as [layer, page, head, token, dim].
  std::vector<float> memory(std::size_t{layers} * 24 * b * heads * dim);
  std::vector<float> values = memory;
  EngineOptions options;
  growpage_tensor k;
  growpage_tensor_init(&k, sizeof k);
  k.ndim = 5;
  const std::int64_t shape[] = {layers, 24, heads, b, dim};
  const std::int64_t page = std::int64_t{b} * heads * dim;
  const std::int64_t strides[] = {24 * page, page, dim, heads * dim, 1};
  std::copy(std::begin(shape), std::end(shape), k.shape);
  std::copy(std::begin(strides), std::end(strides), k.strides);
  growpage_tensor v = k;
  k.data = memory.data();
  v.data = values.data();
  options.cache.k = &k;
  options.cache.v = &v;
  {
    const Engine engine(options);
    engine.submit_all();
    while (engine.step()) {
    }
    CHECK(engine.stats().grow == 5);  // as in the scenario: where the rows lie changes nothing
    CHECK(engine.stats().compact == 42);
  }
  void* per_layer[] = {memory.data(), memory.data() + 24 * page};
  k.data = nullptr;
  k.layer_data = per_layer;
  k.strides[0] = 0;  // not read
  {
    const Engine engine(options);
    engine.submit_all();
    while (engine.step()) {
    }
    CHECK(engine.stats().compact == 42);
  }
  k.shape[1] = 23;  // fewer pages than the cache
  growpage_cache* cache = nullptr;
  CHECK(growpage_cache_create(&options.cache, nullptr, &cache) == GROWPAGE_INVALID_ARGUMENT);
  k.shape[1] = 24;
  k.strides[0] = strides[0];
  k.data = memory.data();  // both
  CHECK(growpage_cache_create(&options.cache, nullptr, &cache) == GROWPAGE_INVALID_ARGUMENT);
  k.layer_data = nullptr;
  k.strides[3] = 1;  // rows overlap
  CHECK(growpage_cache_create(&options.cache, nullptr, &cache) == GROWPAGE_INVALID_ARGUMENT);
}

TEST_CASE("C: DLPack tensors become strided views", "[capi]") {
  std::vector<std::uint16_t> data(std::size_t{2} * 6 * 16 * 3 * 8 + 4);
  std::int64_t shape[] = {2, 6, 16, 3, 8};
  growpage_dl_managed_tensor managed{};
  managed.tensor.data = data.data();
  managed.tensor.device.type = 1;
  managed.tensor.ndim = 5;
  managed.tensor.dtype.code = 4;
  managed.tensor.dtype.bits = 16;
  managed.tensor.dtype.lanes = 1;
  managed.tensor.shape = shape;
  managed.tensor.byte_offset = 8;
  growpage_tensor t;
  growpage_tensor_init(&t, sizeof t);
  REQUIRE(growpage_tensor_from_dlpack(&managed, "lpthd", "lphtd", &t) == GROWPAGE_OK);
  CHECK(t.data == data.data() + 4);
  CHECK(t.dtype == GROWPAGE_BF16);
  CHECK(t.ndim == 5);
  CHECK(t.shape[2] == 3);
  CHECK(t.shape[3] == 16);
  CHECK(t.strides[2] == 8);
  CHECK(t.strides[3] == 24);
  CHECK(t.strides[4] == 1);

  // One layer's tensor gets a layer axis of extent 1.
  managed.tensor.ndim = 4;
  managed.tensor.shape = shape + 1;
  REQUIRE(growpage_tensor_from_dlpack(&managed, "pthd", "lphtd", &t) == GROWPAGE_OK);
  CHECK(t.ndim == 5);
  CHECK(t.shape[0] == 1);
  CHECK(t.shape[1] == 6);

  CHECK(growpage_tensor_from_dlpack(&managed, "pthd", "lpht", &t) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_tensor_from_dlpack(&managed, "pttd", "lphtd", &t) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_tensor_from_dlpack(nullptr, "pthd", "lphtd", &t) == GROWPAGE_INVALID_ARGUMENT);
  managed.tensor.device.type = 2;
  CHECK(growpage_tensor_from_dlpack(&managed, "pthd", "lphtd", &t) == GROWPAGE_UNSUPPORTED);
  managed.tensor.device.type = 1;
  managed.tensor.dtype.code = 0;
  CHECK(growpage_tensor_from_dlpack(&managed, "pthd", "lphtd", &t) == GROWPAGE_UNSUPPORTED);

  growpage_dl_managed_tensor_versioned versioned{};
  versioned.version.major = 1;
  versioned.flags = 1;  // read only
  versioned.tensor = managed.tensor;
  versioned.tensor.dtype.code = 2;
  REQUIRE(growpage_tensor_from_dlpack_versioned(&versioned, "pthd", "phtd", 0, &t) == GROWPAGE_OK);
  CHECK(t.dtype == GROWPAGE_F16);
  CHECK(growpage_tensor_from_dlpack_versioned(&versioned, "pthd", "phtd", 1, &t) ==
        GROWPAGE_INVALID_ARGUMENT);
  versioned.version.major = 2;
  CHECK(growpage_tensor_from_dlpack_versioned(&versioned, "pthd", "phtd", 0, &t) ==
        GROWPAGE_UNSUPPORTED);
}

TEST_CASE("C: a prefix index for engines with a pool of their own", "[capi]") {
  growpage_prefix_index* index = nullptr;
  REQUIRE(growpage_prefix_index_create(4, 2, nullptr, &index) == GROWPAGE_OK);
  growpage_prefix_link root{};
  growpage_key key;
  growpage_key_init(&key, sizeof key);
  key.modality = "image";
  key.modality_size = 5;
  REQUIRE(growpage_prefix_root(&key, &root) == GROWPAGE_OK);
  growpage_prefix_link joined{};
  REQUIRE(growpage_prefix_join_modality(&root, &key, &joined) == GROWPAGE_OK);
  CHECK(joined.id != root.id);
  const std::int32_t tokens[] = {7, 8};
  growpage_prefix_link link{};
  std::int32_t first = -1;
  std::int32_t page = 9;
  REQUIRE(growpage_prefix_index_publish(index, 2, &root, tokens, &link, &first) == GROWPAGE_OK);
  CHECK(first == 1);
  CHECK(growpage_prefix_index_publish(index, 2, &root, tokens, &link, &first) ==
        GROWPAGE_INVALID_ARGUMENT);
  REQUIRE(growpage_prefix_index_publish(index, 3, &root, tokens, &link, &first) == GROWPAGE_OK);
  CHECK(first == 0);
  REQUIRE(growpage_prefix_index_lookup(index, &root, tokens, &page, &link) == GROWPAGE_OK);
  CHECK((page == 2 || page == 3));
  REQUIRE(growpage_prefix_index_lookup(index, &joined, tokens, &page, &link) == GROWPAGE_OK);
  CHECK(page == -1);
  REQUIRE(growpage_prefix_index_lru_push(index, 3) == GROWPAGE_OK);
  REQUIRE(growpage_prefix_index_lru_push(index, 2) == GROWPAGE_OK);
  REQUIRE(growpage_prefix_index_lru_push(index, 3) == GROWPAGE_OK);  // newest again
  REQUIRE(growpage_prefix_index_lru_oldest(index, &page) == GROWPAGE_OK);
  CHECK(page == 2);
  REQUIRE(growpage_prefix_index_lru_remove(index, 2) == GROWPAGE_OK);
  REQUIRE(growpage_prefix_index_lru_oldest(index, &page) == GROWPAGE_OK);
  CHECK(page == 3);
  growpage_hash hash{};
  std::int32_t last = -1;
  REQUIRE(growpage_prefix_index_withdraw(index, 2, &hash, &last) == GROWPAGE_OK);
  CHECK(last == 0);
  REQUIRE(growpage_prefix_index_withdraw(index, 3, &hash, &last) == GROWPAGE_OK);
  CHECK(last == 1);
  CHECK(hash.low == link.hash.low);
  CHECK(growpage_prefix_index_withdraw(index, 3, &hash, &last) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_prefix_index_lru_push(index, 4) == GROWPAGE_INVALID_ARGUMENT);
  REQUIRE(growpage_prefix_index_destroy(index) == GROWPAGE_OK);
}

}  // namespace growpage::test
