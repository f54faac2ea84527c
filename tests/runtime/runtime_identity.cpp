// SPDX-License-Identifier: Apache-2.0
// Policy full through the pages gives, bit for bit, what the runtime gives without them: whatever
// the batch, the chunks, the sharing and the preemptions.
#include "serving.hpp"

using namespace growpage;           // NOLINT(google-build-using-namespace)
using namespace growpage::runtime;  // NOLINT(google-build-using-namespace)
using namespace growpage::test;     // NOLINT(google-build-using-namespace)

namespace {

EngineOptions small_pages(DType kv_dtype) {
  EngineOptions options;
  options.page_size = 16;
  options.pages = 200;
  options.kv_dtype = kv_dtype;
  return options;
}

}  // namespace

TEST_CASE("paged and batched is bit-identical to contiguous and alone") {
  const std::string type = GENERATE(as<std::string>{}, "llama", "qwen3");
  const DType kv_dtype = GENERATE(DType::f32, DType::bf16);
  CAPTURE(type, static_cast<int>(kv_dtype));
  const Folder folder("identity");
  TinyCheckpoint tiny = tiny_checkpoint(type);
  write_checkpoint(folder, tiny, DType::f32);
  const Model model = load(folder);
  const auto requests = requests_of_many_lengths(7, 40, /*shared_prefix=*/50);
  const Served expected = serve_contiguous(model, kv_dtype, requests);
  EngineOptions options = small_pages(kv_dtype);

  SECTION("all at once") {
    const auto engine = open(model, options);
    const Served served = serve(*engine, requests);
    CHECK(differing_rows(served, expected) == 0);
    CHECK(served.counters.steps < 70);  // it did batch
    check_all_returned(*engine);
  }
  SECTION("with chunked prefill beside decodes") {
    options.scheduling.max_batched_tokens = 24;
    options.scheduling.max_prefill_chunk = 11;
    const auto engine = open(model, options);
    CHECK(differing_rows(serve(*engine, requests), expected) == 0);
  }
  SECTION("on two threads") {
    options.threads = 2;
    const auto engine = open(model, options);
    CHECK(differing_rows(serve(*engine, requests), expected) == 0);
  }
  SECTION("with a prefix that others computed") {
    const auto engine = open(model, options);
    const Served served = serve(*engine, requests, /*one_by_one=*/true);
    CHECK(differing_rows(served, expected) == 0);
    CHECK(served.counters.prefix_hit_tokens >= 6 * 48);
    check_all_returned(*engine);
  }
  SECTION("preempted and computed again") {
    options.pages = 24;
    options.scheduling.overcommit = true;
    const auto engine = open(model, options);
    const Served served = serve(*engine, requests);
    CHECK(differing_rows(served, expected) == 0);
    CHECK(served.counters.recompute > 0);
    check_all_returned(*engine);
  }
  SECTION("preempted and swapped") {
    options.pages = 24;
    options.host_pages = 100;
    options.scheduling.overcommit = true;
    options.scheduling.preemption = Preemption::swap;
    const auto engine = open(model, options);
    const Served served = serve(*engine, requests);
    CHECK(differing_rows(served, expected) == 0);
    CHECK(served.counters.swap_in > 0);
    check_all_returned(*engine);
  }
}

TEST_CASE("a compaction does change the logits: the comparison can fail") {
  const Folder folder("identity-compacted");
  TinyCheckpoint tiny = tiny_checkpoint("llama");
  write_checkpoint(folder, tiny, DType::f32);
  const Model model = load(folder);
  const auto requests = requests_of_many_lengths(2, 100);
  EngineOptions options = small_pages(DType::f32);
  FixedPolicy fixed;
  fixed.budget_tokens = 48;
  options.policy = AnyPolicy(fixed);
  const auto engine = open(model, options);
  const Served served = serve(*engine, requests);
  CHECK(served.counters.compact > 0);
  CHECK(differing_rows(served, serve_contiguous(model, DType::f32, requests)) != 0);
}
