// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "contiguous_memory.hpp"
#include "engine.hpp"
#include "support/catch.hpp"
#include "tiny_checkpoint.hpp"

namespace growpage::test {

/// What a model gave: the logits of every output token by (request, index), and the texts.
struct Served {
  std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<float>> logits;
  std::map<std::uint64_t, std::vector<TokenId>> tokens;
  Counters counters;
};

/// Whether two runs gave the same bits; how many logit rows differ otherwise.
inline int differing_rows(const Served& a, const Served& b) {
  if (a.logits.size() != b.logits.size() || a.tokens != b.tokens) return -1;
  int differing = 0;
  for (const auto& [key, row] : a.logits) {
    const auto at = b.logits.find(key);
    if (at == b.logits.end()) return -1;
    if (std::memcmp(row.data(), at->second.data(), row.size() * sizeof(float)) != 0) ++differing;
  }
  return differing;
}

inline runtime::Model load(const Folder& folder) {
  Result<runtime::Model> model = runtime::Model::load(folder.path());
  INFO(model.status().message());
  REQUIRE(model.ok());
  return std::move(*model);
}

/// Requests one after the other: no cache, no scheduler, no batching, the prompt in one pass.
inline Served serve_contiguous(const runtime::Model& model, DType kv_dtype,
                               std::span<const runtime::GenerationRequest> requests) {
  Served served;
  const runtime::RopeTables rope(model.config(), model.config().max_position);
  runtime::ForwardPass forward(model, rope, {});
  runtime::Sampler sampler;
  for (const runtime::GenerationRequest& request : requests) {
    ContiguousMemory memory(model.config(), kv_dtype);
    std::vector<TokenId> input = request.prompt;
    std::vector<TokenId>& output = served.tokens[request.tag];
    std::int64_t position = 0;
    for (std::int64_t index = 0; index < request.max_new_tokens; ++index) {
      std::vector<std::int64_t> positions;
      for (std::size_t i = 0; i < input.size(); ++i) positions.push_back(position++);
      const std::int32_t last[] = {static_cast<std::int32_t>(input.size()) - 1};
      memory.begin(static_cast<std::int32_t>(input.size()));
      REQUIRE(forward.run({input, positions, last}, memory).ok());
      const std::span<const float> logits = forward.logits(0);
      served.logits[{request.tag, index}].assign(logits.begin(), logits.end());
      output.push_back(sampler.sample(logits, request.sampling, request.tag, index));
      input = {output.back()};
    }
  }
  return served;
}

inline std::unique_ptr<runtime::Engine> open(const runtime::Model& model,
                                             const runtime::EngineOptions& options) {
  Result<std::unique_ptr<runtime::Engine>> engine = runtime::Engine::create(model, options);
  INFO(engine.status().message());
  REQUIRE(engine.ok());
  return std::move(*engine);
}

/// All requests through an engine; submitted at once, or each when the one before has finished.
inline Served serve(runtime::Engine& engine, std::span<const runtime::GenerationRequest> requests,
                    bool one_by_one = false) {
  Served served;
  engine.set_token_hook([&](std::uint64_t tag, std::int64_t index, std::span<const float> logits) {
    const bool fresh =
        served.logits.emplace(std::pair(tag, index), std::vector(logits.begin(), logits.end()))
            .second;
    CHECK(fresh);
    return std::nullopt;
  });
  const auto run = [&] {
    while (!engine.idle()) {
      const Status s = engine.step();
      INFO(s.message());
      REQUIRE(s.ok());
      for (runtime::Generation& done : engine.take_finished()) {
        CHECK(served.tokens.emplace(done.tag, std::move(done.tokens)).second);
      }
    }
  };
  for (const runtime::GenerationRequest& request : requests) {
    const Status s = engine.submit(request);
    INFO(s.message());
    REQUIRE(s.ok());
    if (one_by_one) run();
  }
  run();
  served.counters = engine.counters();
  return served;
}

/// Every page is free again, and the bookkeeping adds up.
inline void check_all_returned(runtime::Engine& engine) {
  CHECK(engine.cache().check_invariants().ok());
  engine.cache().clear_prefix_cache();
  CHECK(engine.cache().counts().free == engine.cache().counts().total);
  CHECK(engine.cache().host_counts().free == engine.cache().host_counts().total);
}

/// `count` requests of different lengths, the ends of their texts fixed.
inline std::vector<runtime::GenerationRequest> requests_of_many_lengths(
    std::uint64_t count, std::int64_t new_tokens, std::size_t shared_prefix = 0) {
  const std::vector<TokenId> prefix = random_prompt(shared_prefix, 7);
  std::vector<runtime::GenerationRequest> requests;
  for (std::uint64_t tag = 0; tag < count; ++tag) {
    runtime::GenerationRequest request;
    request.tag = tag;
    request.prompt = prefix;
    const auto own = random_prompt(3 + 13 * tag, static_cast<std::uint32_t>(100 + tag));
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    request.max_new_tokens = new_tokens + static_cast<std::int64_t>(tag);
    request.sampling.temperature = tag % 2 == 0 ? 0 : 0.8;
    request.sampling.seed = 5;
    request.ignore_eos = true;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace growpage::test
