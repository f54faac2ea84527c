// SPDX-License-Identifier: Apache-2.0
// config.json and safetensors: what is read, and that a refusal names the field.
#include "config.hpp"
#include "model.hpp"
#include "says.hpp"
#include "support/catch.hpp"
#include "tiny_checkpoint.hpp"

using namespace growpage;           // NOLINT(google-build-using-namespace)
using namespace growpage::runtime;  // NOLINT(google-build-using-namespace)
using namespace growpage::test;     // NOLINT(google-build-using-namespace)
using nlohmann::json;

namespace {

std::string refusal(const json& config) {
  const auto parsed = ModelConfig::parse(config.dump());
  return parsed.ok() ? "none" : parsed.status().message();
}

std::string load_refusal(const Folder& folder) {
  const auto model = Model::load(folder.path());
  return model.ok() ? "none" : model.status().message();
}

}  // namespace

TEST_CASE("a config's fields and defaults") {
  json config = tiny_checkpoint("qwen3").config;
  config["sliding_window"] = 4096;  // as Qwen writes it, unused
  config["use_sliding_window"] = false;
  const auto qwen = ModelConfig::parse(config.dump());
  REQUIRE(qwen.ok());
  CHECK(qwen->architecture == Architecture::qwen3);
  CHECK(qwen->hidden_size == 48);
  CHECK(qwen->intermediate_size == 80);
  CHECK(qwen->layers == 2);
  CHECK(qwen->query_heads == 6);
  CHECK(qwen->kv_heads == 2);
  CHECK(qwen->head_dim == 16);
  CHECK(qwen->vocab_size == 101);
  CHECK(qwen->max_position == 1024);
  CHECK(double{qwen->rms_norm_eps} == Approx(1e-5));
  CHECK(qwen->tied_embeddings);
  CHECK(qwen->eos_tokens == std::vector<TokenId>{100});
  CHECK(qwen->rope_scaling.kind == RopeScalingKind::none);

  json llama = tiny_checkpoint("llama").config;
  llama["hidden_size"] = 96;
  llama["eos_token_id"] = 7;
  for (const char* field : {"head_dim", "num_key_value_heads", "rope_theta"}) llama.erase(field);
  llama["rope_parameters"] = {
      {"rope_type", "llama3"},   {"rope_theta", 500000.0},
      {"factor", 32.0},          {"low_freq_factor", 1.0},
      {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 8192}};
  const auto parsed = ModelConfig::parse(llama.dump());
  REQUIRE(parsed.ok());
  CHECK(parsed->kv_heads == 6);
  CHECK(parsed->head_dim == 16);
  CHECK_FALSE(parsed->tied_embeddings);
  CHECK(parsed->eos_tokens == std::vector<TokenId>{7});
  CHECK(parsed->rope_theta == Approx(500000));
  CHECK(parsed->rope_scaling.kind == RopeScalingKind::llama3);
  CHECK(parsed->rope_scaling.factor == Approx(32));
}

TEST_CASE("a config that cannot be run names the field") {
  const auto with = [](const char* field, const json& value) {
    json config = tiny_checkpoint("llama").config;
    config[field] = value;
    return refusal(config);
  };
  CHECK_THAT(with("model_type", "gpt2"), says("model_type is \"gpt2\"; allowed: llama or qwen3"));
  CHECK_THAT(with("sliding_window", 4096),
             says("unsupported: config.json: sliding_window is 4096"));
  CHECK_THAT(with("layer_types", {"full_attention", "sliding_attention"}), says("layer_types"));
  CHECK_THAT(with("attention_bias", true), says("attention_bias is true"));
  CHECK_THAT(with("mlp_bias", true), says("mlp_bias is true"));
  CHECK_THAT(with("hidden_act", "gelu"), says("hidden_act is \"gelu\""));
  CHECK_THAT(with("partial_rotary_factor", 0.5), says("partial_rotary_factor is 0.5"));
  CHECK_THAT(with("hidden_size", nullptr), says("hidden_size is missing"));
  CHECK_THAT(with("num_hidden_layers", 0), says("num_hidden_layers is 0"));
  CHECK_THAT(with("num_hidden_layers", "2"), says("num_hidden_layers is \"2\""));
  CHECK_THAT(with("vocab_size", 1e30), says("vocab_size"));
  CHECK_THAT(with("num_key_value_heads", 4), says("num_key_value_heads is 4; allowed: a divisor"));
  CHECK_THAT(with("head_dim", 24), says("head_dim is 24; allowed: a multiple of 16"));
  CHECK_THAT(with("rms_norm_eps", -1), says("rms_norm_eps is -1"));
  CHECK_THAT(with("tie_word_embeddings", 1), says("tie_word_embeddings is 1"));
  CHECK_THAT(with("eos_token_id", "x"), says("eos_token_id"));
  CHECK_THAT(with("rope_scaling", {{"type", "yarn"}, {"factor", 2.0}}),
             says("rope_scaling.type is \"yarn\"; allowed: default, linear or llama3"));
  CHECK_THAT(with("rope_scaling", {{"rope_type", "linear"}}),
             says("rope_scaling.factor is missing"));
  CHECK_THAT(with("rope_scaling", {{"rope_type", "llama3"}, {"factor", 2.0}}),
             says("rope_scaling.low_freq_factor is missing"));
  CHECK_THAT(with("rope_scaling", 3), says("rope_scaling is 3"));
  CHECK_FALSE(ModelConfig::parse("{").ok());
  CHECK_FALSE(ModelConfig::read("/nonexistent").ok());
}

TEST_CASE("tensors of every dtype, in one file or several") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const bool sharded = GENERATE(false, true);
  const Folder folder("checkpoint");
  TinyCheckpoint tiny = tiny_checkpoint("qwen3");
  write_checkpoint(folder, tiny, dtype);
  if (sharded) {
    Tensors first, second;
    json map;
    for (const auto& [name, tensor] : tiny.tensors) {
      const bool in_first = first.size() <= second.size();
      (in_first ? first : second).emplace(name, tensor);
      map[name] = in_first ? "a.safetensors" : "b.safetensors";
    }
    folder.write("a.safetensors", safetensors(first, dtype));
    folder.write("b.safetensors", safetensors(second, dtype));
    folder.write("model.safetensors.index.json", json{{"weight_map", map}}.dump());
    std::filesystem::remove(folder.path() / "model.safetensors");
  }
  const auto model = Model::load(folder.path());
  INFO(model.status().message());
  REQUIRE(model.ok());
  CHECK(model->embedding().data == tiny.tensors.at("model.embed_tokens.weight").data);
  CHECK(&model->head() == &model->embedding());
  const auto& down = tiny.tensors.at("model.layers.1.mlp.down_proj.weight").data;
  CHECK(model->layers()[1].down.data == down);
  const auto& k = tiny.tensors.at("model.layers.0.self_attn.k_proj.weight").data;
  const float* stored = model->layers()[0].qkv.row(96);
  CHECK(std::vector<float>(stored, stored + k.size()) == k);
  std::int64_t parameters = 0;
  for (const auto& [name, tensor] : tiny.tensors)
    parameters += static_cast<std::int64_t>(tensor.data.size());
  CHECK(model->parameters() == parameters);
  CHECK(parameters < 100000);
}

TEST_CASE("weights that cannot be used name the tensor") {
  const Folder folder("checkpoint-bad");
  TinyCheckpoint tiny = tiny_checkpoint("llama");
  write_checkpoint(folder, tiny, DType::f32);
  REQUIRE(load_refusal(folder) == "none");
  const std::string good = safetensors(tiny.tensors, DType::f32);

  SECTION("missing") {
    tiny.tensors.erase("model.layers.1.mlp.up_proj.weight");
    write_checkpoint(folder, tiny, DType::f32);
    CHECK_THAT(load_refusal(folder), says("model.layers.1.mlp.up_proj.weight is missing"));
  }
  SECTION("another shape than the config's") {
    tiny.config["intermediate_size"] = 96;
    write_checkpoint(folder, tiny, DType::f32);
    CHECK_THAT(load_refusal(folder),
               says("mlp.gate_proj.weight.shape is [80, 48]; allowed: [96, 48]"));
  }
  SECTION("no file") {
    std::filesystem::remove(folder.path() / "model.safetensors");
    CHECK_THAT(load_refusal(folder), says("model.safetensors"));
  }
  SECTION("cut off") {
    folder.write("model.safetensors", good.substr(0, good.size() - 1));
    CHECK_THAT(load_refusal(folder), says("data_offsets"));
    folder.write("model.safetensors", good.substr(0, 5));
    CHECK_THAT(load_refusal(folder), says("header size"));
    folder.write("model.safetensors", good.substr(0, 100));
    CHECK_THAT(load_refusal(folder), says("header size"));
  }
  SECTION("headers") {
    const auto with_entry = [&](const json& entry) {
      const std::string text = json{{"x", entry}}.dump();
      const std::uint64_t size = text.size();
      std::string file(8, '\0');
      std::memcpy(file.data(), &size, 8);
      folder.write("model.safetensors", file + text + std::string(64, '\0'));
      return load_refusal(folder);
    };
    CHECK_THAT(with_entry(3), says("x.dtype"));
    CHECK_THAT(with_entry({{"dtype", "I8"}}), says("x.dtype is \"I8\""));
    CHECK_THAT(with_entry({{"dtype", "F32"}, {"shape", {-1}}}), says("x.shape is [-1]"));
    CHECK_THAT(with_entry({{"dtype", "F32"}, {"shape", {1ULL << 40, 1ULL << 40}}}),
               says("x.shape"));
    CHECK_THAT(with_entry({{"dtype", "F32"}, {"shape", {4}}, {"data_offsets", {0}}}),
               says("x.data_offsets is [0]; allowed: two offsets"));
    CHECK_THAT(with_entry({{"dtype", "F32"}, {"shape", {4}}, {"data_offsets", {60, 76}}}),
               says("x.data_offsets is [60,76]; allowed: 16 bytes"));
    CHECK_THAT(with_entry({{"dtype", "F32"}, {"shape", {4}}, {"data_offsets", {16, 0}}}),
               says("x.data_offsets"));
    // Its data begins at an odd address: read all the same.
    CHECK_THAT(with_entry({{"dtype", "F32"}, {"shape", {4}}, {"data_offsets", {1, 17}}}),
               says("model.embed_tokens.weight is missing"));
  }
  SECTION("an index that leads out of the folder") {
    folder.write("model.safetensors.index.json", R"({"weight_map": {"x": "../y.safetensors"}})");
    CHECK_THAT(load_refusal(folder), says("weight_map.x"));
  }
}
