// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "growpage/core/dtype.hpp"

namespace growpage::test {

/// A folder that is gone with the test.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("growpage-test-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void write(const char* name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
  }

 private:
  std::filesystem::path path_;
};

struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<float> data;
};
using Tensors = std::map<std::string, Tensor>;

/// A random model of a few ten thousand parameters: its config.json and its weights.
struct TinyCheckpoint {
  nlohmann::json config;
  Tensors tensors;

  [[nodiscard]] std::int64_t integer(const char* field) const {
    return config.at(field).get<std::int64_t>();
  }
};

inline TinyCheckpoint tiny_checkpoint(const std::string& type, std::uint32_t seed = 1) {
  const bool qwen = type == "qwen3";
  TinyCheckpoint tiny;
  tiny.config = {{"model_type", type},
                 {"hidden_size", 48},
                 {"intermediate_size", 80},
                 {"num_hidden_layers", 2},
                 {"num_attention_heads", 6},
                 {"num_key_value_heads", 2},
                 {"head_dim", 16},
                 {"vocab_size", 101},
                 {"rms_norm_eps", 1e-5},
                 {"rope_theta", 10000.0},
                 {"hidden_act", "silu"},
                 {"max_position_embeddings", 1024},
                 {"tie_word_embeddings", qwen},
                 {"eos_token_id", {100}}};
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, float mean,
                       float deviation) {
    Tensor tensor{std::move(shape), {}};
    std::int64_t size = 1;
    for (const std::int64_t extent : tensor.shape) size *= extent;
    for (std::int64_t i = 0; i < size; ++i) {
      tensor.data.push_back(mean + deviation * normal(generator));
    }
    tiny.tensors.emplace(name, std::move(tensor));
  };
  const std::int64_t hidden = 48, mid = 80, q = 96, kv = 32, vocab = 101;
  add("model.embed_tokens.weight", {vocab, hidden}, 0, 1);
  for (int l = 0; l < 2; ++l) {
    const std::string layer = "model.layers." + std::to_string(l) + ".";
    const auto matrix = [&](const char* name, std::int64_t out, std::int64_t in) {
      add(layer + name, {out, in}, 0, 1.5F / std::sqrt(static_cast<float>(in)));
    };
    add(layer + "input_layernorm.weight", {hidden}, 1, 0.2F);
    matrix("self_attn.q_proj.weight", q, hidden);
    matrix("self_attn.k_proj.weight", kv, hidden);
    matrix("self_attn.v_proj.weight", kv, hidden);
    matrix("self_attn.o_proj.weight", hidden, q);
    if (qwen) {
      add(layer + "self_attn.q_norm.weight", {16}, 1.5F, 0.3F);
      add(layer + "self_attn.k_norm.weight", {16}, 1.5F, 0.3F);
    }
    add(layer + "post_attention_layernorm.weight", {hidden}, 1, 0.2F);
    matrix("mlp.gate_proj.weight", mid, hidden);
    matrix("mlp.up_proj.weight", mid, hidden);
    matrix("mlp.down_proj.weight", hidden, mid);
  }
  add("model.norm.weight", {hidden}, 1, 0.2F);
  if (!qwen) add("lm_head.weight", {vocab, hidden}, 0, 0.3F);
  return tiny;
}

/// The bytes of a safetensors file. 16-bit dtypes round `tensors` in place, so that they hold what
/// a reader finds.
inline std::string safetensors(Tensors& tensors, DType dtype) {
  const std::map<DType, const char*> names{
      {DType::f32, "F32"}, {DType::f16, "F16"}, {DType::bf16, "BF16"}};
  nlohmann::json header;
  std::string data;
  for (auto& [name, tensor] : tensors) {
    const std::size_t begin = data.size();
    const std::size_t bytes = tensor.data.size() * dtype_bytes(dtype);
    std::vector<std::byte> stored(bytes);
    for (std::size_t i = 0; i < tensor.data.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      store_element(stored.data(), dtype, at, tensor.data[i]);
      tensor.data[i] = load_element(stored.data(), dtype, at);
    }
    data.append(reinterpret_cast<const char*>(stored.data()), bytes);
    header[name] = {{"dtype", names.at(dtype)},
                    {"shape", tensor.shape},
                    {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  std::string file(sizeof size, '\0');
  std::memcpy(file.data(), &size, sizeof size);
  return file + text + data;
}

/// Writes the checkpoint as a Hugging Face folder.
inline void write_checkpoint(const Folder& folder, TinyCheckpoint& tiny, DType dtype) {
  folder.write("config.json", tiny.config.dump());
  folder.write("model.safetensors", safetensors(tiny.tensors, dtype));
}

/// A prompt of any length: tokens below the end of text.
inline std::vector<std::int32_t> random_prompt(std::size_t length, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<std::int32_t> prompt;
  for (std::size_t i = 0; i < length; ++i) {
    prompt.push_back(static_cast<std::int32_t>(generator() % 100));
  }
  return prompt;
}

}  // namespace growpage::test
