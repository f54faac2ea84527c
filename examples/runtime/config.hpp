// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "growpage/core/ids.hpp"
#include "growpage/core/status.hpp"

namespace growpage::runtime {

enum class Architecture : std::int32_t {
  llama,  ///< Llama 2 and 3, SmolLM2
  qwen3,  ///< as llama, with RMSNorm on each head's query and key
};

enum class RopeScalingKind : std::int32_t { none, linear, llama3 };

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1;
  // llama3 only: wavelengths beyond original/low are scaled, those below original/high are not, and
  // between the two the change is gradual.
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original_max_position = 8192;
};

/// What a model's config.json says, as far as this runtime needs it.
struct ModelConfig {
  Architecture architecture = Architecture::llama;
  std::int32_t hidden_size = 0;
  std::int32_t intermediate_size = 0;
  std::int32_t layers = 0;
  std::int32_t query_heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;  ///< a multiple of 16, the widest vector of attention.cpp
  std::int32_t vocab_size = 0;
  std::int64_t max_position = 0;
  float rms_norm_eps = 1e-6F;
  double rope_theta = 10000;
  RopeScaling rope_scaling;
  bool tied_embeddings = false;
  std::vector<TokenId> eos_tokens;  ///< may be empty

  /// Reads the text of a config.json. A field that is missing, malformed or asks for what this
  /// runtime does not compute (another architecture, sliding windows, biases, …) is named in the
  /// answer: invalid_argument, or unsupported.
  [[nodiscard]] static Result<ModelConfig> parse(std::string_view json);
  /// `folder`/config.json.
  [[nodiscard]] static Result<ModelConfig> read(const std::filesystem::path& folder);

  [[nodiscard]] std::int32_t query_dim() const noexcept { return query_heads * head_dim; }
  [[nodiscard]] std::int32_t kv_dim() const noexcept { return kv_heads * head_dim; }
};

}  // namespace growpage::runtime
