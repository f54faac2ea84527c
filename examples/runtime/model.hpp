// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "config.hpp"
#include "matmul.hpp"

namespace growpage::runtime {

/// Weights of one decoder layer. What multiplies the same input is one matrix.
struct LayerWeights {
  std::vector<float> input_norm;      // [hidden]
  Matrix qkv;                         // q, k and v rows
  std::vector<float> q_norm, k_norm;  // [head_dim]; empty without (Llama)
  Matrix output;                      // [hidden, q_head · head_dim]
  std::vector<float> mlp_norm;        // [hidden]
  Matrix gate_up;                     // gate rows, then up rows
  Matrix down;                        // [hidden, intermediate]
};

/// A model's configuration and weights, as f32. Immutable once loaded: engines share it.
class Model {
 public:
  /// Reads config.json and the safetensors of a Hugging Face folder. invalid_argument or
  /// unsupported, naming the field or tensor.
  [[nodiscard]] static Result<Model> load(const std::filesystem::path& folder);

  [[nodiscard]] const ModelConfig& config() const noexcept { return config_; }
  [[nodiscard]] const Matrix& embedding() const noexcept { return embedding_; }
  [[nodiscard]] const std::vector<LayerWeights>& layers() const noexcept { return layers_; }
  [[nodiscard]] const std::vector<float>& final_norm() const noexcept { return final_norm_; }
  [[nodiscard]] const Matrix& head() const noexcept {
    return config_.tied_embeddings ? embedding_ : head_;
  }
  [[nodiscard]] std::int64_t parameters() const noexcept;

 private:
  ModelConfig config_;
  Matrix embedding_;  // [vocab, hidden]
  std::vector<LayerWeights> layers_;
  std::vector<float> final_norm_;
  Matrix head_;  // [vocab, hidden]; empty with tied embeddings
};

}  // namespace growpage::runtime
