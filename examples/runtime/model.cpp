// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>

#include "safetensors.hpp"

namespace growpage::runtime {
namespace {

/// Reads tensors one after the other and remembers the first that fails.
class Reader {
 public:
  explicit Reader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  [[nodiscard]] const Status& status() const noexcept { return status_; }

  std::vector<float> vector(const std::string& name, std::int64_t size) {
    std::vector<float> out(static_cast<std::size_t>(size));
    const std::int64_t shape[] = {size};
    if (status_.ok()) status_ = checkpoint_.read(name, shape, out);
    return out;
  }
  struct Part {
    const char* name;
    std::int64_t rows;
  };
  /// The named matrices below each other.
  Matrix matrix(const std::string& prefix, std::initializer_list<Part> parts, std::int64_t in) {
    std::int64_t rows = 0;
    for (const Part& part : parts) rows += part.rows;
    Matrix matrix(rows, in);
    std::int64_t row = 0;
    for (const Part& part : parts) {
      const std::int64_t shape[] = {part.rows, in};
      const std::span<float> out(matrix.row(row), static_cast<std::size_t>(part.rows * in));
      if (status_.ok()) status_ = checkpoint_.read(prefix + part.name, shape, out);
      row += part.rows;
    }
    return matrix;
  }

 private:
  const Checkpoint& checkpoint_;
  Status status_;
};

LayerWeights read_layer(Reader& reader, const ModelConfig& c, std::int32_t layer) {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const std::string attention = prefix + "self_attn.";
  LayerWeights w;
  w.input_norm = reader.vector(prefix + "input_layernorm.weight", c.hidden_size);
  w.qkv = reader.matrix(attention,
                        {{"q_proj.weight", c.query_dim()},
                         {"k_proj.weight", c.kv_dim()},
                         {"v_proj.weight", c.kv_dim()}},
                        c.hidden_size);
  if (c.architecture == Architecture::qwen3) {
    w.q_norm = reader.vector(attention + "q_norm.weight", c.head_dim);
    w.k_norm = reader.vector(attention + "k_norm.weight", c.head_dim);
  }
  w.output = reader.matrix(attention, {{"o_proj.weight", c.hidden_size}}, c.query_dim());
  w.mlp_norm = reader.vector(prefix + "post_attention_layernorm.weight", c.hidden_size);
  w.gate_up = reader.matrix(
      prefix + "mlp.",
      {{"gate_proj.weight", c.intermediate_size}, {"up_proj.weight", c.intermediate_size}},
      c.hidden_size);
  w.down =
      reader.matrix(prefix + "mlp.", {{"down_proj.weight", c.hidden_size}}, c.intermediate_size);
  return w;
}

}  // namespace

Result<Model> Model::load(const std::filesystem::path& folder) {
  Result<ModelConfig> config = ModelConfig::read(folder);
  if (!config.ok()) return config.status();
  const Result<Checkpoint> checkpoint = Checkpoint::open(folder);
  if (!checkpoint.ok()) return checkpoint.status();
  Model model;
  model.config_ = std::move(*config);
  const ModelConfig& c = model.config_;
  Reader reader(*checkpoint);
  model.embedding_ =
      reader.matrix("model.", {{"embed_tokens.weight", c.vocab_size}}, c.hidden_size);
  for (std::int32_t l = 0; l < c.layers && reader.status().ok(); ++l) {
    model.layers_.push_back(read_layer(reader, c, l));
  }
  model.final_norm_ = reader.vector("model.norm.weight", c.hidden_size);
  if (!c.tied_embeddings) {
    model.head_ = reader.matrix("", {{"lm_head.weight", c.vocab_size}}, c.hidden_size);
  }
  if (!reader.status().ok()) return reader.status();
  return model;
}

std::int64_t Model::parameters() const noexcept {
  std::size_t count = embedding_.data.size() + final_norm_.size() + head_.data.size();
  for (const LayerWeights& w : layers_) {
    count += w.input_norm.size() + w.qkv.data.size() + w.q_norm.size() + w.k_norm.size() +
             w.output.data.size() + w.mlp_norm.size() + w.gate_up.data.size() + w.down.data.size();
  }
  return static_cast<std::int64_t>(count);
}

}  // namespace growpage::runtime
