// SPDX-License-Identifier: Apache-2.0
// Requests under every policy and under pressure; sampling; what an engine refuses.
#include <sstream>

#include "options.hpp"
#include "request_file.hpp"
#include "says.hpp"
#include "serving.hpp"

using namespace growpage;           // NOLINT(google-build-using-namespace)
using namespace growpage::runtime;  // NOLINT(google-build-using-namespace)
using namespace growpage::test;     // NOLINT(google-build-using-namespace)

namespace {

/// A tiny model on disk and in memory.
struct Tiny {
  Folder folder;
  Model model;
  explicit Tiny(const std::string& type)
      : folder("serving-" + type), model(write_and_load(folder, type)) {}

 private:
  static Model write_and_load(const Folder& to, const std::string& type) {
    TinyCheckpoint tiny = tiny_checkpoint(type);
    write_checkpoint(to, tiny, DType::bf16);
    return load(to);
  }
};

}  // namespace

TEST_CASE("every policy serves to the exact length under pressure and returns all pages") {
  const std::string policy = GENERATE(as<std::string>{}, "full", "fixed", "zipage", "growpage",
                                      "random", "inverse", "shrink");
  const std::string type = GENERATE(as<std::string>{}, "llama", "qwen3");
  const Preemption preemption = GENERATE(Preemption::recompute, Preemption::swap);
  const bool library_attention = GENERATE(false, true);
  CAPTURE(policy, type, static_cast<int>(preemption), library_attention);
  const Tiny tiny(type);
  RunOptions options;
  options.policy = policy;
  options.budget = 80;
  options.initial_pages = 4;
  options.engine.page_size = 16;
  options.engine.pages = 30;  // six requests would take 80
  options.engine.host_pages = preemption == Preemption::swap ? 60 : 0;
  options.engine.kv_dtype = DType::bf16;
  options.engine.library_attention = library_attention;
  options.engine.scheduling.preemption = preemption;
  options.engine.scheduling.overcommit = true;
  options.engine.scheduling.max_prefill_chunk = 20;
  Result<AnyPolicy> made = make_policy(options);
  REQUIRE(made.ok());
  options.engine.policy = *made;
  const auto engine = open(tiny.model, options.engine);
  const auto requests = requests_of_many_lengths(6, 150, /*shared_prefix=*/20);
  const Served served = serve(*engine, requests);
  REQUIRE(served.tokens.size() == 6);
  for (const GenerationRequest& request : requests) {
    CHECK(served.tokens.at(request.tag).size() == static_cast<std::size_t>(request.max_new_tokens));
  }
  if (policy == "full") {
    CHECK(served.counters.compact == 0);
    CHECK(served.counters.preempt > 0);
  } else {
    CHECK(served.counters.compact + served.counters.shrink > 0);
  }
  check_all_returned(*engine);
}

TEST_CASE("sampling repeats with its seed, in any company") {
  const Tiny tiny("qwen3");
  auto requests = requests_of_many_lengths(6, 40);
  for (GenerationRequest& request : requests) request.sampling = {1.0, 0.9, 11};
  EngineOptions options;
  options.page_size = 16;
  const auto together = serve(*open(tiny.model, options), requests).tokens;
  CHECK(serve(*open(tiny.model, options), requests).tokens == together);
  CHECK(serve(*open(tiny.model, options), requests, /*one_by_one=*/true).tokens == together);
  for (GenerationRequest& request : requests) request.sampling.seed = 12;
  CHECK(serve(*open(tiny.model, options), requests).tokens != together);
}

TEST_CASE("a request ends at its end of text unless it ignores it") {
  const Tiny tiny("llama");
  EngineOptions options;
  options.page_size = 16;
  GenerationRequest request;
  request.prompt = {1, 2, 3};
  request.max_new_tokens = 9;
  request.ignore_eos = GENERATE(false, true);
  const auto engine = open(tiny.model, options);
  engine->set_token_hook([](std::uint64_t, std::int64_t index, std::span<const float>) {
    return index == 4 ? std::optional<TokenId>(100) : std::nullopt;
  });
  REQUIRE(engine->submit(request).ok());
  while (!engine->idle()) REQUIRE(engine->step().ok());
  const std::vector<Generation> finished = engine->take_finished();
  REQUIRE(finished.size() == 1);
  CHECK(finished[0].stopped == !request.ignore_eos);
  CHECK(finished[0].tokens.size() == (request.ignore_eos ? 9U : 5U));
  CHECK(finished[0].tokens[4] == 100);
  CHECK(engine->take_finished().empty());
}

TEST_CASE("what an engine refuses") {
  const Tiny tiny("llama");
  EngineOptions options;
  options.page_size = 16;
  options.pages = 8;
  GenerationRequest request;
  request.prompt = {1, 101};
  request.max_new_tokens = 4;
  const auto engine = open(tiny.model, options);
  const auto refusal = [&] { return engine->submit(request).message(); };
  CHECK_THAT(refusal(), says("prompt token is 101; allowed: 0 to 100"));
  request.prompt = {1};
  request.max_new_tokens = 1024;
  CHECK_THAT(refusal(), says("at most 1024 tokens"));
  request.max_new_tokens = 500;
  CHECK(engine->submit(request) == StatusCode::request_too_large);
  request.max_new_tokens = 5;
  request.sampling.top_p = 0;
  CHECK_THAT(refusal(), says("top_p is 0"));
  CHECK(engine->idle());
  options.max_length = 1025;
  CHECK(Engine::create(tiny.model, options).code() == StatusCode::invalid_argument);
}

TEST_CASE("request files") {
  GenerationRequest defaults;
  defaults.max_new_tokens = 64;
  defaults.sampling.seed = 3;
  std::istringstream good(
      "{\"prompt\": [1, 2]}\n\n{\"prompt\": [3], \"tag\": 9, \"max_new_tokens\": 5, "
      "\"temperature\": 0.5, \"top_p\": 0.9, \"seed\": 4}\n");
  const auto requests = read_requests(good, defaults);
  REQUIRE(requests.ok());
  REQUIRE(requests->size() == 2);
  CHECK((*requests)[0].tag == 0);
  CHECK((*requests)[0].prompt == std::vector<TokenId>{1, 2});
  CHECK((*requests)[0].max_new_tokens == 64);
  CHECK((*requests)[0].sampling.seed == 3);
  CHECK((*requests)[1].tag == 9);
  CHECK((*requests)[1].max_new_tokens == 5);
  CHECK((*requests)[1].sampling.temperature == Approx(0.5));
  CHECK((*requests)[1].sampling.top_p == Approx(0.9));
  CHECK((*requests)[1].sampling.seed == 4);

  const auto refusal = [&](const char* text) {
    std::istringstream in(text);
    return read_requests(in, defaults).status().message();
  };
  CHECK_THAT(refusal("[1]"), says("line 1"));
  CHECK_THAT(refusal("{\"prompt\": [1]}\n{}"), says("line 2: prompt is missing"));
  CHECK_THAT(refusal("{\"prompt\": [\"a\"]}"), says("line 1: prompt"));
  CHECK_THAT(refusal("{\"prompt\": [4294967297]}"), says("line 1: prompt"));
  CHECK_THAT(refusal("{\"prompt\": [1], \"tag\": 1}\n{\"prompt\": [1]}"), says("line 2: tag is 1"));
  CHECK_THAT(refusal("{\"prompt\": [1], \"seed\": 0.5}"), says("line 1: seed is 0.5"));

  CHECK(*parse_tokens("1,22,3") == std::vector<TokenId>{1, 22, 3});
  for (const char* bad : {"", "1,", "1 2", "x", "1,,2"}) CHECK_FALSE(parse_tokens(bad).ok());
  CHECK(to_jsonl({3, {1, 2}, true}) == "{\"tag\":3,\"tokens\":[1,2],\"finish\":\"stop\"}\n");
}
