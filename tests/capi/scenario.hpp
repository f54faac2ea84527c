// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "growpage/core/ids.hpp"

/// The model of examples/bindings/scenario.md.
namespace growpage::test {

inline constexpr std::int32_t scenario_layers = 2, scenario_query_heads = 4, scenario_kv_heads = 2,
                              scenario_dim = 32, scenario_page = 16, scenario_slots = 8;

inline void project(float* out, TokenId token, std::int64_t position, std::int32_t role,
                    std::int32_t heads) {
  for (std::int32_t i = 0; i < heads * scenario_dim; ++i) {
    std::uint64_t z = static_cast<std::uint64_t>(token) * 0x9E3779B97F4A7C15U +
                      static_cast<std::uint64_t>(position) * 0xBF58476D1CE4E5B9U +
                      static_cast<std::uint64_t>(role) * 0x94D049BB133111EBU +
                      static_cast<std::uint64_t>(i);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    z ^= z >> 31;
    out[i] = static_cast<float>(static_cast<std::int64_t>(z >> 40) - (1 << 23)) / 8388608.0F;
  }
}

inline TokenId next_token(TokenId token, std::int64_t position) {
  return static_cast<TokenId>((std::int64_t{token} * 31 + position * 17 + 7) % 1000);
}

/// The projections of one token.
struct Projected {
  std::vector<float> q = std::vector<float>(scenario_layers * scenario_query_heads * scenario_dim);
  std::vector<float> k = std::vector<float>(scenario_layers * scenario_kv_heads * scenario_dim);
  std::vector<float> v = k;

  Projected(TokenId token, std::int64_t position) {
    for (std::int32_t l = 0; l < scenario_layers; ++l) {
      project(q.data() + l * scenario_query_heads * scenario_dim, token, position, 3 * l,
              scenario_query_heads);
      project(keys(l), token, position, 3 * l + 1, scenario_kv_heads);
      project(values(l), token, position, 3 * l + 2, scenario_kv_heads);
    }
  }
  float* keys(std::int32_t layer) { return k.data() + layer * scenario_kv_heads * scenario_dim; }
  float* values(std::int32_t layer) { return v.data() + layer * scenario_kv_heads * scenario_dim; }
};

inline std::vector<TokenId> scenario_prompt(std::int32_t tag) {
  return std::vector<TokenId>(static_cast<std::size_t>(20 + 7 * tag), tag + 1);
}

/// What a run prints.
struct ScenarioResult {
  std::int64_t tokens = 0, steps = 0, grow = 0, compact = 0;
  std::uint64_t entries = 0;
  std::uint64_t hash_low = 0, hash_high = 0;
  friend bool operator==(const ScenarioResult&, const ScenarioResult&) = default;
};

inline std::string scenario_text(const ScenarioResult& r) {
  const auto hex = [](std::uint64_t word) {
    std::string text(16, '0');
    for (std::size_t i = 16; i-- > 0; word >>= 4) text[i] = "0123456789abcdef"[word & 15];
    return text;
  };
  return std::to_string(r.tokens) + " tokens, " + std::to_string(r.steps) + " steps, " +
         std::to_string(r.grow) + " grow, " + std::to_string(r.compact) + " compact\n" +
         "decision log: " + std::to_string(r.entries) + " entries, hash " + hex(r.hash_high) +
         hex(r.hash_low) + "\n";
}

}  // namespace growpage::test
