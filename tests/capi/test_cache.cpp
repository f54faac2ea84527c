// SPDX-License-Identifier: Apache-2.0
// The cache calls do what PageManager does; here is what the boundary adds or could get wrong.
#include <array>
#include <numeric>
#include <vector>

#include "capi/engine.hpp"
#include "growpage/growpage.h"
#include "support/catch.hpp"

namespace growpage::test {
namespace {

constexpr std::int32_t b = 16;

class Pages {
 public:
  explicit Pages(std::int64_t pages = 8, std::int64_t host_pages = 4) {
    growpage_cache_options options;
    growpage_cache_options_init(&options, sizeof options);
    options.pages = pages;
    options.host_pages = host_pages;
    options.page_size = b;
    options.event_capacity = 8;
    REQUIRE(growpage_cache_create(&options, nullptr, &cache) == GROWPAGE_OK);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    CHECK(growpage_cache_check_invariants(cache) == GROWPAGE_OK);
    CHECK(growpage_cache_destroy(cache) == GROWPAGE_OK);
  }

  /// A sequence with `count` computed tokens 0, 1, 2, ….
  std::uint64_t filled(std::int32_t count) const {
    std::uint64_t id = 0;
    REQUIRE(growpage_cache_admit(cache, nullptr, 0, nullptr, &id, nullptr) == GROWPAGE_OK);
    REQUIRE(growpage_cache_reserve(cache, id, count) == GROWPAGE_OK);
    const std::vector<std::int32_t> tokens = numbers(count);
    growpage_page_copy copy{};
    REQUIRE(growpage_cache_append(cache, id, count, tokens.data(), &copy) == GROWPAGE_OK);
    CHECK(copy.source == -1);
    REQUIRE(growpage_cache_mark_computed(cache, id, count) == GROWPAGE_OK);
    return id;
  }
  static std::vector<std::int32_t> numbers(std::int32_t count) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), 0);
    return tokens;
  }
  growpage_sequence view(std::uint64_t id) const {
    growpage_sequence view{};
    view.struct_size = sizeof view;
    REQUIRE(growpage_cache_get_sequence(cache, id, &view) == GROWPAGE_OK);
    return view;
  }
  growpage_cache_info info() const {
    growpage_cache_info info{};
    info.struct_size = sizeof info;
    REQUIRE(growpage_cache_get_info(cache, &info) == GROWPAGE_OK);
    return info;
  }

  growpage_cache* cache = nullptr;
};

}  // namespace

TEST_CASE("C: admission matches published pages and says how much", "[capi]") {
  const Pages pages;
  const std::uint64_t first = pages.filled(40);
  const std::vector<std::int32_t> prompt = Pages::numbers(40);
  std::int64_t matched = -1;
  CHECK(growpage_cache_match_length(pages.cache, prompt.data(), 40, nullptr, &matched) ==
        GROWPAGE_OK);
  CHECK(matched == 32);
  std::uint64_t second = 0;
  REQUIRE(growpage_cache_admit(pages.cache, prompt.data(), 40, nullptr, &second, &matched) ==
          GROWPAGE_OK);
  CHECK(matched == 32);
  CHECK(pages.view(second).length == 32);
  CHECK(pages.view(second).pages[0] == pages.view(first).pages[0]);
  CHECK(pages.view(first).private_pages == 1);

  growpage_key key;
  growpage_key_init(&key, sizeof key);
  key.salt = "tenant";
  key.salt_size = 6;
  CHECK(growpage_cache_match_length(pages.cache, prompt.data(), 40, &key, &matched) == GROWPAGE_OK);
  CHECK(matched == 0);

  std::array<growpage_kv_event, 8> events{};
  std::size_t count = 0;
  std::int64_t dropped = -1;
  REQUIRE(growpage_cache_drain_events(pages.cache, nullptr, 0, &count, &dropped) == GROWPAGE_OK);
  CHECK(count == 2);
  CHECK(dropped == 0);
  REQUIRE(growpage_cache_drain_events(pages.cache, events.data(), 8, &count, nullptr) ==
          GROWPAGE_OK);
  REQUIRE(count == 2);
  growpage_prefix_link root{};
  REQUIRE(growpage_prefix_root(nullptr, &root) == GROWPAGE_OK);
  growpage_hash hash{};
  REQUIRE(growpage_hash_page(&root.hash, prompt.data(), b, &hash) == GROWPAGE_OK);
  CHECK(events[0].kind == GROWPAGE_EVENT_STORED);
  CHECK(events[0].tokens == b);
  CHECK(events[0].hash.low == hash.low);
  CHECK(events[0].hash.high == hash.high);
  CHECK(events[1].parent.low == hash.low);
}

TEST_CASE("C: copy-on-write after a fork tells the copy", "[capi]") {
  const Pages pages;
  const std::uint64_t first = pages.filled(20);
  std::uint64_t fork = 0;
  REQUIRE(growpage_cache_fork(pages.cache, first, &fork) == GROWPAGE_OK);
  const std::int32_t token = 7;
  growpage_page_copy copy{};
  REQUIRE(growpage_cache_append(pages.cache, fork, 1, &token, &copy) == GROWPAGE_OK);
  CHECK(copy.source == pages.view(first).pages[1]);
  CHECK(copy.target == pages.view(fork).pages[1]);
  CHECK(growpage_cache_append(pages.cache, fork, 100, nullptr, &copy) == GROWPAGE_AT_CAPACITY);
  CHECK(growpage_cache_append(pages.cache, fork, 1, &token, nullptr) == GROWPAGE_INVALID_ARGUMENT);
  REQUIRE(growpage_cache_truncate(pages.cache, fork, 10) == GROWPAGE_OK);
  CHECK(pages.view(fork).length == 10);
  REQUIRE(growpage_cache_release(pages.cache, fork) == GROWPAGE_OK);
  CHECK(growpage_cache_release(pages.cache, fork) == GROWPAGE_STALE_ID);
  CHECK(growpage_cache_grow(pages.cache, fork) == GROWPAGE_STALE_ID);
}

TEST_CASE("C: a step's tokens in one call, until one sequence is full", "[capi]") {
  const Pages pages;
  const std::uint64_t first = pages.filled(20);
  std::uint64_t fork = 0;
  REQUIRE(growpage_cache_fork(pages.cache, first, &fork) == GROWPAGE_OK);
  const std::uint64_t full = pages.filled(16);
  const std::uint64_t ids[] = {first, fork, full, first};
  const std::int32_t tokens[] = {1, 2, 3, 4};
  growpage_page_copy copies[4] = {};
  std::size_t count = 9;
  std::size_t done = 9;
  CHECK(growpage_cache_append_batch(pages.cache, ids, tokens, 4, copies, &count, &done) ==
        GROWPAGE_AT_CAPACITY);
  CHECK(done == 2);
  REQUIRE(count == 1);  // the first one to write to the shared page
  CHECK(copies[0].source == pages.view(fork).pages[1]);
  CHECK(copies[0].target == pages.view(first).pages[1]);
  CHECK(pages.view(first).length == 21);
  CHECK(pages.view(fork).length == 21);
  REQUIRE(growpage_cache_append_batch(pages.cache, ids, nullptr, 2, copies, &count, &done) ==
          GROWPAGE_OK);
  CHECK(done == 2);
  CHECK(count == 0);
  CHECK(growpage_cache_append_batch(pages.cache, nullptr, nullptr, 2, copies, &count, &done) ==
        GROWPAGE_INVALID_ARGUMENT);
}

TEST_CASE("C: a full pool is retryable and changes nothing", "[capi]") {
  const Pages pages(2);
  const std::uint64_t id = pages.filled(32);
  CHECK(growpage_cache_grow(pages.cache, id) == GROWPAGE_OUT_OF_PAGES);
  CHECK(pages.view(id).page_count == 2);
  growpage_error error{};
  growpage_last_error(&error, sizeof error);
  CHECK(error.status == GROWPAGE_OUT_OF_PAGES);
}

TEST_CASE("C: batch tables in all shapes, with their sizes asked first", "[capi]") {
  const Pages pages;
  const std::uint64_t ids[] = {pages.filled(20), pages.filled(5)};
  std::int64_t stride = 0;
  REQUIRE(growpage_cache_padded_tables(pages.cache, ids, 2, &stride, nullptr, 0, 0, nullptr) ==
          GROWPAGE_OK);
  REQUIRE(stride == 2);
  std::int32_t table[4] = {};
  std::int32_t lengths[2] = {};
  REQUIRE(growpage_cache_padded_tables(pages.cache, ids, 2, &stride, table, 4, -9, lengths) ==
          GROWPAGE_OK);
  CHECK(table[1] == pages.view(ids[0]).pages[1]);
  CHECK(table[2] == pages.view(ids[1]).pages[0]);
  CHECK(table[3] == -9);
  CHECK(lengths[0] == 20);
  CHECK(lengths[1] == 5);
  CHECK(growpage_cache_padded_tables(pages.cache, ids, 2, &stride, table, 3, 0, nullptr) ==
        GROWPAGE_INVALID_ARGUMENT);

  std::size_t count = 0;
  REQUIRE(growpage_cache_compressed_tables(pages.cache, ids, 2, nullptr, nullptr, 0, &count,
                                           nullptr) == GROWPAGE_OK);
  REQUIRE(count == 3);
  std::int32_t indptr[3] = {};
  std::int32_t last[2] = {};
  REQUIRE(growpage_cache_compressed_tables(pages.cache, ids, 2, indptr, table, 3, &count, last) ==
          GROWPAGE_OK);
  CHECK(indptr[1] == 2);
  CHECK(indptr[2] == 3);
  CHECK(last[0] == 4);
  CHECK(last[1] == 5);

  const std::int32_t counts[] = {2, 1};
  std::int64_t slots[3] = {};
  std::int64_t positions[3] = {};
  REQUIRE(growpage_cache_token_tables(pages.cache, ids, 2, counts, nullptr, nullptr, 0, &count) ==
          GROWPAGE_OK);
  REQUIRE(count == 3);
  REQUIRE(growpage_cache_token_tables(pages.cache, ids, 2, counts, slots, positions, 3, &count) ==
          GROWPAGE_OK);
  CHECK(positions[0] == 18);
  CHECK(positions[2] == 4);
  std::int64_t physical = 0;
  REQUIRE(growpage_cache_physical_slot(pages.cache, ids[0], 18, &physical) == GROWPAGE_OK);
  CHECK(slots[0] == physical);
  CHECK(growpage_cache_token_tables(pages.cache, ids, 2, counts, slots, nullptr, 2, &count) ==
        GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_cache_physical_slot(pages.cache, ids[0], 32, &physical) ==
        GROWPAGE_INVALID_ARGUMENT);
}

TEST_CASE("C: a compaction with the engine's own kernels", "[capi]") {
  const Pages pages;
  const std::uint64_t id = pages.filled(48);
  growpage_ticket ticket{};
  std::size_t copies = 9;
  REQUIRE(growpage_cache_begin_compaction(pages.cache, id, 1, GROWPAGE_FILL_HOLES,
                                          GROWPAGE_SHARED_KEEP, nullptr, 0, &copies,
                                          &ticket) == GROWPAGE_OK);
  CHECK(copies == 0);
  CHECK(pages.view(id).busy == 1);
  CHECK(growpage_cache_grow(pages.cache, id) == GROWPAGE_BUSY);
  std::uint8_t marks[3] = {};
  REQUIRE(growpage_cache_page_marks(pages.cache, id, 1, marks, 3) == GROWPAGE_OK);
  CHECK(marks[0] == (GROWPAGE_PAGE_PRIVATE | GROWPAGE_PAGE_PROTECTED));
  CHECK(marks[1] == GROWPAGE_PAGE_PRIVATE);
  const std::int32_t kept[] = {16, 4, 12};
  growpage_compaction_plan plan{};
  REQUIRE(growpage_plan_compaction(marks, kept, 3, 1, GROWPAGE_FILL_HOLES, &plan) == GROWPAGE_OK);
  CHECK(plan.victim[0] == 1);
  const std::int32_t victim = pages.view(id).pages[1];
  REQUIRE(growpage_cache_apply_compaction(pages.cache, &ticket, &plan, kept, 3, b) == GROWPAGE_OK);
  CHECK(growpage_cache_apply_compaction(pages.cache, &ticket, &plan, kept, 3, b) ==
        GROWPAGE_PROTOCOL_ERROR);
  REQUIRE(growpage_cache_complete_fence(pages.cache, ticket.fence) == GROWPAGE_OK);
  CHECK(growpage_cache_complete_fence(pages.cache, ticket.fence) == GROWPAGE_STALE_ID);
  const growpage_sequence view = pages.view(id);
  CHECK(view.busy == 0);
  CHECK(view.slots == 32);
  CHECK(view.length == 48);
  CHECK(view.compactions == 1);
  CHECK(view.pages[2] == victim);
  CHECK(growpage_cache_truncate(pages.cache, id, 40) == GROWPAGE_BEHIND_COMPACTION);
}

TEST_CASE("C: the copies of shared = copy need room before anything begins", "[capi]") {
  const Pages pages;
  const std::uint64_t id = pages.filled(48);
  std::uint64_t fork = 0;
  REQUIRE(growpage_cache_fork(pages.cache, id, &fork) == GROWPAGE_OK);
  growpage_ticket ticket{};
  growpage_page_copy copies[3] = {};
  std::size_t count = 0;
  CHECK(growpage_cache_begin_compaction(pages.cache, id, 1, 0, GROWPAGE_SHARED_KEEP, nullptr, 0,
                                        &count, &ticket) == GROWPAGE_AT_CAPACITY);
  CHECK(growpage_cache_begin_compaction(pages.cache, id, 1, 0, GROWPAGE_SHARED_COPY, copies, 2,
                                        &count, &ticket) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(pages.view(id).busy == 0);
  REQUIRE(growpage_cache_begin_compaction(pages.cache, id, 1, 0, GROWPAGE_SHARED_COPY, copies, 3,
                                          &count, &ticket) == GROWPAGE_OK);
  CHECK(count == 3);
  CHECK(copies[2].source == pages.view(fork).pages[2]);
  REQUIRE(growpage_cache_cancel_compaction(pages.cache, &ticket) == GROWPAGE_OK);
  CHECK(pages.view(id).busy == 0);
}

TEST_CASE("C: swap out and in", "[capi]") {
  const Pages pages;
  const std::uint64_t id = pages.filled(40);
  growpage_page_transfer transfers[3] = {};
  std::size_t count = 0;
  std::uint64_t fence = 0;
  CHECK(growpage_cache_swap_out(pages.cache, id, transfers, 2, &count, &fence) ==
        GROWPAGE_INVALID_ARGUMENT);
  REQUIRE(growpage_cache_swap_out(pages.cache, id, transfers, 3, &count, &fence) == GROWPAGE_OK);
  CHECK(count == 3);
  CHECK(pages.info().free_host_pages == 1);
  REQUIRE(growpage_cache_complete_fence(pages.cache, fence) == GROWPAGE_OK);
  CHECK(pages.view(id).swapped == 1);
  std::int64_t physical = 0;
  CHECK(growpage_cache_physical_slot(pages.cache, id, 0, &physical) == GROWPAGE_BUSY);
  REQUIRE(growpage_cache_swap_in(pages.cache, id, transfers, 3, &count, &fence) == GROWPAGE_OK);
  REQUIRE(growpage_cache_complete_fence(pages.cache, fence) == GROWPAGE_OK);
  CHECK(pages.view(id).swapped == 0);
  CHECK(pages.view(id).slots == 40);
}

TEST_CASE("C: a guard keeps pages from being reused", "[capi]") {
  const Pages pages;
  const std::uint64_t id = pages.filled(40);
  std::uint64_t fence = 0;
  REQUIRE(growpage_cache_guard(pages.cache, id, &fence) == GROWPAGE_OK);
  REQUIRE(growpage_cache_release(pages.cache, id) == GROWPAGE_OK);
  CHECK(pages.info().in_flight_pages == 3);
  REQUIRE(growpage_cache_complete_fence(pages.cache, fence) == GROWPAGE_OK);
  CHECK(pages.info().in_flight_pages == 0);
}

TEST_CASE("C: kernels need a backend, and CUDA a build with it", "[capi]") {
  const Pages pages;
  growpage_demand demand{};
  growpage_tensor k;
  growpage_tensor_init(&k, sizeof k);
  CHECK(growpage_cache_get_kv(pages.cache, &k, nullptr) == GROWPAGE_UNSUPPORTED);
  CHECK(growpage_cache_measure_demand(pages.cache, 1, 0, 0, &demand, nullptr) ==
        GROWPAGE_UNSUPPORTED);
  EngineOptions options;
  options.cache.backend = GROWPAGE_BACKEND_CUDA;
  growpage_cache* cache = nullptr;
  CHECK(growpage_cache_create(&options.cache, nullptr, &cache) == GROWPAGE_UNSUPPORTED);
  options.cache.backend = 3;
  CHECK(growpage_cache_create(&options.cache, nullptr, &cache) == GROWPAGE_INVALID_ARGUMENT);
  options.cache.backend = GROWPAGE_BACKEND_CPU;
  options.cache.pages = INT32_MAX;  // terabytes a page
  options.cache.layers = 4096;
  options.cache.kv_heads = options.cache.query_heads = 65536;
  options.cache.head_dim = 4096;
  CHECK(growpage_cache_create(&options.cache, nullptr, &cache) == GROWPAGE_OUT_OF_MEMORY);
}

TEST_CASE("C: sequences of a scheduler are not the caller's to change", "[capi]") {
  const Engine engine;
  engine.submit_all();
  growpage_plan plan{};
  plan.struct_size = sizeof plan;
  REQUIRE(growpage_scheduler_schedule(engine.scheduler, &plan) == GROWPAGE_OK);
  REQUIRE(plan.prefill_count > 0);
  const std::uint64_t id = plan.prefills[0].sequence;
  CHECK(growpage_cache_release(engine.cache, id) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_cache_grow(engine.cache, id) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_cache_truncate(engine.cache, id, 0) == GROWPAGE_INVALID_ARGUMENT);
  growpage_sequence view{};
  view.struct_size = sizeof view;
  CHECK(growpage_cache_get_sequence(engine.cache, id, &view) == GROWPAGE_OK);
}

TEST_CASE("C: the scheduler's protocol and its inputs are checked", "[capi]") {
  const Engine engine;
  const std::uint64_t id = engine.submit(0);
  growpage_step_result result;
  growpage_step_result_init(&result, sizeof result);
  CHECK(growpage_scheduler_complete(engine.scheduler, &result) == GROWPAGE_PROTOCOL_ERROR);
  const std::uint64_t* fences = nullptr;
  std::size_t count = 0;
  CHECK(growpage_scheduler_run_before_forward(engine.scheduler, nullptr, &fences, &count) ==
        GROWPAGE_PROTOCOL_ERROR);
  growpage_plan plan{};
  plan.struct_size = sizeof plan;
  REQUIRE(growpage_scheduler_schedule(engine.scheduler, &plan) == GROWPAGE_OK);
  CHECK(growpage_scheduler_schedule(engine.scheduler, &plan) == GROWPAGE_PROTOCOL_ERROR);
  REQUIRE(growpage_scheduler_run_before_forward(engine.scheduler, nullptr, &fences, &count) ==
          GROWPAGE_OK);
  CHECK(growpage_scheduler_run_before_forward(engine.scheduler, nullptr, &fences, &count) ==
        GROWPAGE_PROTOCOL_ERROR);
  growpage_sampled_token token = {id, 5, 2, {}};  // stop is 0 or 1
  result.tokens = &token;
  result.token_count = 1;
  CHECK(growpage_scheduler_complete(engine.scheduler, &result) == GROWPAGE_INVALID_ARGUMENT);
  token.stop = 1;
  REQUIRE(growpage_scheduler_complete(engine.scheduler, &result) == GROWPAGE_OK);
  const growpage_finished* finished = nullptr;
  std::size_t stride = 0;
  REQUIRE(growpage_scheduler_finished(engine.scheduler, &finished, &count, &stride) == GROWPAGE_OK);
  REQUIRE(count == 1);
  CHECK(finished->request == id);
  CHECK(finished->generated == 1);
  CHECK(finished->aborted == 0);
  std::int32_t state = -1;
  CHECK(growpage_scheduler_state(engine.scheduler, id, &state) == GROWPAGE_STALE_ID);
  growpage_request request;
  growpage_request_init(&request, sizeof request);
  const std::vector<std::int32_t> prompt(1000, 1);
  request.prompt = prompt.data();
  request.prompt_tokens = prompt.size();
  request.max_new_tokens = 1;
  std::uint64_t made = 0;
  CHECK(growpage_scheduler_submit(engine.scheduler, &request, &made) == GROWPAGE_REQUEST_TOO_LARGE);
}

TEST_CASE("C: the decision log as JSONL, its size asked first", "[capi]") {
  growpage_decision d{};
  d.request = (std::uint64_t{1} << 32) | 2;
  d.tag = 3;
  d.kind = GROWPAGE_DECISION_COMPACT;
  d.measured = 1;
  d.delta = -0.5;
  std::size_t size = 0;
  REQUIRE(growpage_decisions_to_jsonl(&d, 1, nullptr, 0, &size) == GROWPAGE_OK);
  std::string text(size, '\0');
  CHECK(growpage_decisions_to_jsonl(&d, 1, text.data(), size - 1, &size) ==
        GROWPAGE_INVALID_ARGUMENT);
  REQUIRE(growpage_decisions_to_jsonl(&d, 1, text.data(), size, &size) == GROWPAGE_OK);
  CHECK(text.find(R"("request":4294967298,"tag":3)") != std::string::npos);
  CHECK(text.find(R"("decision":"compact")") != std::string::npos);
  CHECK(text.find(R"("delta":-0.5)") != std::string::npos);
  CHECK(text.back() == '\n');
}

}  // namespace growpage::test
