// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "capi/engine.hpp"
#include "growpage/growpage.h"
#include "support/catch.hpp"

namespace growpage::test {
namespace {

struct Memory {
  std::map<void*, std::size_t> live;
  std::size_t total = 0;
  int until_failure = -1;  // calls that succeed; -1 = all
  bool throws = false;
  std::vector<std::pair<std::int32_t, std::string>> log;

  growpage_hooks hooks() {
    growpage_hooks h;
    growpage_hooks_init(&h, sizeof h);
    h.allocate = [](void* self, std::size_t bytes, std::size_t alignment) -> void* {
      auto& m = *static_cast<Memory*>(self);
      if (m.throws) throw std::bad_alloc();
      if (m.until_failure == 0) return nullptr;
      if (m.until_failure > 0) --m.until_failure;
      void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
      m.live[memory] = bytes;
      m.total += bytes;
      return memory;
    };
    h.deallocate = [](void* self, void* memory, std::size_t bytes) {
      auto& m = *static_cast<Memory*>(self);
      if (m.live.at(memory) == bytes) m.live.erase(memory);
      std::free(memory);
    };
    h.allocator_context = this;
    h.log = [](void* self, std::int32_t level, const char* message) {
      static_cast<Memory*>(self)->log.emplace_back(level, message);
    };
    h.log_context = this;
    h.log_level = GROWPAGE_LOG_DEBUG;
    return h;
  }
};

}  // namespace

TEST_CASE("C: the allocator serves handles and KV memory, and gets all of it back", "[capi]") {
  Memory memory;
  const growpage_hooks hooks = memory.hooks();
  {
    const Engine engine(EngineOptions(), &hooks);
    engine.submit_all();
    for (int i = 0; i < 50; ++i) REQUIRE(engine.step());
    const std::size_t kv =
        std::size_t{24} * scenario_page * scenario_layers * scenario_kv_heads * scenario_dim * 4;
    CHECK(memory.total > 2 * kv);
    CHECK(memory.live.size() >= 6);
  }
  CHECK(memory.live.empty());
}

TEST_CASE("C: without memory a cache is not made, whichever piece is missing", "[capi]") {
  Memory memory;
  const growpage_hooks hooks = memory.hooks();
  const EngineOptions options;
  int pieces = 0;
  for (;; ++pieces) {
    REQUIRE(pieces < 32);
    memory.until_failure = pieces;
    growpage_cache* cache = nullptr;
    const growpage_status status = growpage_cache_create(&options.cache, &hooks, &cache);
    if (status == GROWPAGE_OK) {
      REQUIRE(growpage_cache_destroy(cache) == GROWPAGE_OK);
      break;
    }
    CHECK(status == GROWPAGE_OUT_OF_MEMORY);
    CHECK(cache == nullptr);
    CHECK(memory.live.empty());
  }
  CHECK(pieces >= 6);
  memory.throws = true;
  growpage_policy* policy = nullptr;
  CHECK(growpage_policy_create("full", &hooks, &policy) == GROWPAGE_OUT_OF_MEMORY);
}

TEST_CASE("C: refusals are logged, at their level, and nothing is printed", "[capi]") {
  Memory memory;
  growpage_hooks hooks = memory.hooks();
  const Engine engine(EngineOptions(), &hooks);
  memory.log.clear();
  CHECK(growpage_scheduler_abort(engine.scheduler, 12345) == GROWPAGE_STALE_ID);
  growpage_policy_info info{};
  info.struct_size = sizeof info;
  CHECK(growpage_policy_get_info(engine.policy, 17, &info) == GROWPAGE_INVALID_ARGUMENT);
  REQUIRE(memory.log.size() == 2);
  CHECK(memory.log[1].first == GROWPAGE_LOG_WARNING);
  CHECK(memory.log[1].second.find("page_size is 17") != std::string::npos);

  // Retryable answers are not worth a line.
  memory.log.clear();
  std::uint64_t id = 0;
  REQUIRE(growpage_cache_admit(engine.cache, nullptr, 0, nullptr, &id, nullptr) == GROWPAGE_OK);
  growpage_page_copy copy{};
  CHECK(growpage_cache_append(engine.cache, id, 1, nullptr, &copy) == GROWPAGE_AT_CAPACITY);
  CHECK(memory.log.empty());

  hooks.log_level = GROWPAGE_LOG_ERROR;
  growpage_policy* quiet = nullptr;
  REQUIRE(growpage_policy_create("full", &hooks, &quiet) == GROWPAGE_OK);
  CHECK(growpage_policy_validate(quiet, 17) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(memory.log.empty());
  REQUIRE(growpage_policy_destroy(quiet) == GROWPAGE_OK);

  hooks.deallocate = nullptr;
  CHECK(growpage_policy_create("full", &hooks, &quiet) == GROWPAGE_INVALID_ARGUMENT);
}

TEST_CASE("C: a preemption is worth a line at the debug level", "[capi]") {
  Memory memory;
  const growpage_hooks hooks = memory.hooks();
  growpage_policy* policy = nullptr;
  REQUIRE(growpage_policy_create("full", nullptr, &policy) == GROWPAGE_OK);
  EngineOptions options;
  options.cache.pages = 16;
  const Engine engine(options, &hooks, policy);
  engine.submit_all();
  while (engine.step()) {
  }
  CHECK(engine.stats().preempt > 0);
  bool told = false;
  for (const auto& [level, text] : memory.log) {
    told = told || (level == GROWPAGE_LOG_DEBUG && text.find("preempted") != std::string::npos);
  }
  CHECK(told);
}

}  // namespace growpage::test
