// SPDX-License-Identifier: Apache-2.0
#include "config.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace growpage::runtime {
namespace {

using nlohmann::json;

constexpr std::int64_t int32_max = std::numeric_limits<std::int32_t>::max();

/// Takes fields out of a JSON object and remembers the first one that is wrong.
class Fields {
 public:
  Fields(const json& object, std::string path) : object_(object), path_(std::move(path)) {}

  [[nodiscard]] const Status& status() const noexcept { return status_; }
  [[nodiscard]] std::string name(const char* field) const { return path_ + field; }
  [[nodiscard]] bool has(const char* field) const {
    const auto at = object_.find(field);
    return at != object_.end() && !at->is_null();
  }
  [[nodiscard]] const json& operator[](const char* field) const { return object_.at(field); }

  void refuse(StatusCode code, const char* field, const std::string& allowed) {
    if (!status_.ok()) return;
    const std::string value = has(field) ? object_.at(field).dump() : "missing";
    status_ = Status::error(code, name(field), value, allowed);
  }
  std::int64_t integer(const char* field, std::int64_t low = 1, std::int64_t high = int32_max) {
    const bool good = has(field) && object_.at(field).is_number_integer();
    const std::int64_t value = good ? object_.at(field).get<std::int64_t>() : low;
    if (!good || value < low || value > high) {
      refuse(StatusCode::invalid_argument, field,
             fmt::format("an integer from {} to {}", low, high));
    }
    return value;
  }
  std::int32_t size(const char* field) { return static_cast<std::int32_t>(integer(field)); }
  std::int32_t size_or(const char* field, std::int32_t otherwise) {
    return has(field) ? size(field) : otherwise;
  }
  double positive(const char* field) {
    const bool good = has(field) && object_.at(field).is_number();
    const double value = good ? object_.at(field).get<double>() : 0.0;
    if (!(value > 0)) refuse(StatusCode::invalid_argument, field, "a number above 0");
    return value;
  }
  double positive_or(const char* field, double otherwise) {
    return has(field) ? positive(field) : otherwise;
  }
  bool flag_or(const char* field, bool otherwise) {
    if (!has(field)) return otherwise;
    if (!object_.at(field).is_boolean()) {
      refuse(StatusCode::invalid_argument, field, "true or false");
      return otherwise;
    }
    return object_.at(field).get<bool>();
  }
  std::string text_or(const char* field, const std::string& otherwise) {
    if (!has(field)) return otherwise;
    if (!object_.at(field).is_string()) {
      refuse(StatusCode::invalid_argument, field, "a string");
      return otherwise;
    }
    return object_.at(field).get<std::string>();
  }

 private:
  const json& object_;
  std::string path_;
  Status status_;
};

/// What would change the computation and is not here. Silence would give wrong text, not an error.
void refuse_unsupported(Fields& fields) {
  constexpr auto no = StatusCode::unsupported;
  if (fields.flag_or("attention_bias", false)) fields.refuse(no, "attention_bias", "false");
  if (fields.flag_or("mlp_bias", false)) fields.refuse(no, "mlp_bias", "false");
  if (fields.text_or("hidden_act", "silu") != "silu") fields.refuse(no, "hidden_act", "silu");
  if (fields.positive_or("partial_rotary_factor", 1) != 1) {
    fields.refuse(no, "partial_rotary_factor", "1");
  }
  // Qwen writes a window into configs that do not use it.
  if (fields.has("sliding_window") && fields.flag_or("use_sliding_window", true)) {
    fields.refuse(no, "sliding_window",
                  "null: attention over a sliding window already bounds the cache");
  }
  if (fields.has("layer_types")) {
    for (const json& type : fields["layer_types"]) {
      if (type != "full_attention") fields.refuse(no, "layer_types", "full_attention everywhere");
    }
  }
}

RopeScaling read_scaling(Fields& fields) {
  RopeScaling scaling;
  const char* key = fields.has("rope_type") ? "rope_type" : "type";  // older configs: type
  const std::string kind = fields.text_or(key, "default");
  if (kind == "default") return scaling;
  scaling.factor = fields.positive("factor");
  if (kind == "linear") {
    scaling.kind = RopeScalingKind::linear;
  } else if (kind == "llama3") {
    scaling.kind = RopeScalingKind::llama3;
    scaling.low_freq_factor = fields.positive("low_freq_factor");
    scaling.high_freq_factor = fields.positive("high_freq_factor");
    scaling.original_max_position = fields.positive("original_max_position_embeddings");
    if (scaling.high_freq_factor <= scaling.low_freq_factor) {
      fields.refuse(StatusCode::invalid_argument, "high_freq_factor", "above low_freq_factor");
    }
  } else {
    fields.refuse(StatusCode::unsupported, key, "default, linear or llama3");
  }
  return scaling;
}

/// rope_theta and rope_scaling, or both in rope_parameters as transformers 5 writes them.
Status read_rope(Fields& fields, ModelConfig& config) {
  const char* key = fields.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  config.rope_theta = fields.positive_or("rope_theta", config.rope_theta);
  if (!fields.has(key)) return fields.status();
  if (!fields[key].is_object()) {
    fields.refuse(StatusCode::invalid_argument, key, "an object or null");
    return fields.status();
  }
  Fields rope(fields[key], fields.name(key) + ".");
  config.rope_theta = rope.positive_or("rope_theta", config.rope_theta);
  config.rope_scaling = read_scaling(rope);
  return fields.status().ok() ? rope.status() : fields.status();
}

void read_eos(Fields& fields, ModelConfig& config) {
  if (!fields.has("eos_token_id")) return;
  const json& eos = fields["eos_token_id"];
  for (const json& token : eos.is_array() ? eos : json::array({eos})) {
    if (!token.is_number_integer()) {
      fields.refuse(StatusCode::invalid_argument, "eos_token_id", "an integer or several");
      return;
    }
    config.eos_tokens.push_back(token.get<TokenId>());
  }
}

}  // namespace

Result<ModelConfig> ModelConfig::parse(std::string_view text) {
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) {
    return Status::invalid("config.json", "not a JSON object", "a model's config.json");
  }
  Fields fields(root, "config.json: ");
  ModelConfig config;
  const std::string type = fields.text_or("model_type", "");
  if (type == "qwen3") {
    config.architecture = Architecture::qwen3;
  } else if (type != "llama") {
    fields.refuse(StatusCode::unsupported, "model_type", "llama or qwen3");
  }
  refuse_unsupported(fields);
  config.hidden_size = fields.size("hidden_size");
  config.intermediate_size = fields.size("intermediate_size");
  config.layers = fields.size("num_hidden_layers");
  config.query_heads = fields.size("num_attention_heads");
  config.kv_heads = fields.size_or("num_key_value_heads", config.query_heads);
  config.head_dim = fields.size_or("head_dim", config.hidden_size / config.query_heads);
  config.vocab_size = fields.size("vocab_size");
  config.max_position = fields.integer("max_position_embeddings");
  config.rms_norm_eps = static_cast<float>(fields.positive_or("rms_norm_eps", 1e-6));
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  if (config.query_heads % config.kv_heads != 0) {
    fields.refuse(StatusCode::invalid_argument, "num_key_value_heads",
                  fmt::format("a divisor of num_attention_heads ({})", config.query_heads));
  }
  if (config.head_dim % 16 != 0 || config.head_dim == 0) {
    fields.refuse(StatusCode::unsupported, "head_dim",
                  fmt::format("a multiple of 16; it is {}", config.head_dim));
  }
  read_eos(fields, config);
  if (Status s = read_rope(fields, config); !s.ok()) return s;
  return config;
}

Result<ModelConfig> ModelConfig::read(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  std::ifstream in(path);
  if (!in) return Status::invalid("model folder", folder.string(), "one with a config.json");
  return parse(std::string{std::istreambuf_iterator<char>(in), {}});
}

}  // namespace growpage::runtime
