// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include "tiny_checkpoint.hpp"

namespace growpage::test {

/// The models' formulas written down once more: one token after the other, in double, straight from
/// the tensors. Shares no code with the runtime.
class NaiveModel {
 public:
  explicit NaiveModel(const TinyCheckpoint& tiny) : tiny_(tiny) {}

  using Vec = std::vector<double>;

  /// Logits `[token][vocab]` of a text. With `queries`: those of the last layer, after q-norm and
  /// before RoPE, `[token][q_head · head_dim]`.
  [[nodiscard]] std::vector<Vec> logits(std::span<const std::int32_t> text,
                                        std::vector<Vec>* queries = nullptr) const {
    const auto layers = static_cast<std::size_t>(tiny_.integer("num_hidden_layers"));
    std::vector<std::vector<Vec>> keys(layers), values(layers);  // [layer][position]
    std::vector<Vec> result;
    for (std::size_t p = 0; p < text.size(); ++p) {
      Vec x = row("model.embed_tokens.weight", text[p]);
      for (std::size_t l = 0; l < layers; ++l) {
        const std::string layer = "model.layers." + std::to_string(l) + ".";
        if (queries != nullptr && l + 1 == layers) {
          queries->push_back(plain_queries(layer, norm(x, layer + "input_layernorm.weight")));
        }
        add(x, attention(layer, norm(x, layer + "input_layernorm.weight"), p, keys[l], values[l]));
        const Vec h = norm(x, layer + "post_attention_layernorm.weight");
        const Vec gate = times(layer + "mlp.gate_proj.weight", h);
        Vec mid = times(layer + "mlp.up_proj.weight", h);
        for (std::size_t i = 0; i < mid.size(); ++i) mid[i] *= gate[i] / (1 + std::exp(-gate[i]));
        add(x, times(layer + "mlp.down_proj.weight", mid));
      }
      const bool tied = tiny_.config.at("tie_word_embeddings").get<bool>();
      result.push_back(times(tied ? "model.embed_tokens.weight" : "lm_head.weight",
                             norm(x, "model.norm.weight")));
    }
    return result;
  }

 private:
  [[nodiscard]] Vec row(const std::string& name, std::int64_t r) const {
    const Tensor& t = tiny_.tensors.at(name);
    const auto first = t.data.begin() + r * t.shape[1];
    return {first, first + t.shape[1]};
  }
  static void add(Vec& x, const Vec& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  [[nodiscard]] Vec times(const std::string& name, const Vec& x) const {
    Vec y;
    for (std::int64_t r = 0; r < tiny_.tensors.at(name).shape[0]; ++r) {
      const Vec w = row(name, r);
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += w[i] * x[i];
      y.push_back(sum);
    }
    return y;
  }
  [[nodiscard]] Vec norm(Vec x, const std::string& name) const {
    const Tensor& weight = tiny_.tensors.at(name);
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double eps = tiny_.config.at("rms_norm_eps").get<double>();
    const double root = std::sqrt(squares / static_cast<double>(x.size()) + eps);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= double{weight.data[i]} / root;
    return x;
  }
  [[nodiscard]] double frequency(std::size_t i) const {
    const double dim = static_cast<double>(tiny_.integer("head_dim"));
    const double base =
        1 / std::pow(tiny_.config.at("rope_theta").get<double>(), 2 * static_cast<double>(i) / dim);
    if (!tiny_.config.contains("rope_scaling")) return base;
    const nlohmann::json& s = tiny_.config.at("rope_scaling");
    const double factor = s.at("factor").get<double>();
    if (s.at("rope_type") == "linear") return base / factor;
    const double original = s.at("original_max_position_embeddings").get<double>();
    const double low = s.at("low_freq_factor").get<double>();
    const double high = s.at("high_freq_factor").get<double>();
    const double wavelength = 2 * std::numbers::pi / base;
    if (wavelength < original / high) return base;
    if (wavelength > original / low) return base / factor;
    const double smooth = (original / wavelength - low) / (high - low);
    return (1 - smooth) * base / factor + smooth * base;
  }
  /// Head `h` of a projection, normed where the model does, turned to position `p`.
  [[nodiscard]] Vec head(const Vec& all, std::size_t h, const std::string& norm_name,
                         std::size_t p) const {
    const auto dim = static_cast<std::size_t>(tiny_.integer("head_dim"));
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(h * dim);
    Vec x(first, first + static_cast<std::ptrdiff_t>(dim));
    if (tiny_.tensors.contains(norm_name)) x = norm(x, norm_name);
    Vec turned(dim);
    for (std::size_t i = 0; i < dim / 2; ++i) {
      const double angle = static_cast<double>(p) * frequency(i);
      const double a = x[i], b = x[i + dim / 2];
      turned[i] = a * std::cos(angle) - b * std::sin(angle);
      turned[i + dim / 2] = a * std::sin(angle) + b * std::cos(angle);
    }
    return turned;
  }
  [[nodiscard]] Vec plain_queries(const std::string& layer, const Vec& x) const {
    const Vec all = times(layer + "self_attn.q_proj.weight", x);
    const auto heads = static_cast<std::size_t>(tiny_.integer("num_attention_heads"));
    Vec queries;
    for (std::size_t h = 0; h < heads; ++h) {
      const Vec one = head(all, h, layer + "self_attn.q_norm.weight", 0);  // position 0: no turn
      queries.insert(queries.end(), one.begin(), one.end());
    }
    return queries;
  }
  [[nodiscard]] Vec attention(const std::string& layer, const Vec& x, std::size_t p,
                              std::vector<Vec>& keys, std::vector<Vec>& values) const {
    const std::string self = layer + "self_attn.";
    const auto dim = static_cast<std::size_t>(tiny_.integer("head_dim"));
    const auto heads = static_cast<std::size_t>(tiny_.integer("num_attention_heads"));
    const auto kv_heads = static_cast<std::size_t>(tiny_.integer("num_key_value_heads"));
    const Vec q = times(self + "q_proj.weight", x);
    const Vec k = times(self + "k_proj.weight", x);
    Vec turned_keys;
    for (std::size_t h = 0; h < kv_heads; ++h) {
      const Vec one = head(k, h, self + "k_norm.weight", p);
      turned_keys.insert(turned_keys.end(), one.begin(), one.end());
    }
    keys.push_back(turned_keys);
    values.push_back(times(self + "v_proj.weight", x));
    Vec out(heads * dim, 0.0);
    for (std::size_t h = 0; h < heads; ++h) {
      const Vec query = head(q, h, self + "q_norm.weight", p);
      const std::size_t from = h / (heads / kv_heads) * dim;
      Vec weights;
      double total = 0;
      for (const Vec& key : keys) {
        double logit = 0;
        for (std::size_t i = 0; i < dim; ++i) logit += query[i] * key[from + i];
        weights.push_back(std::exp(logit / std::sqrt(static_cast<double>(dim))));
        total += weights.back();
      }
      for (std::size_t s = 0; s < weights.size(); ++s) {
        for (std::size_t i = 0; i < dim; ++i) {
          out[h * dim + i] += weights[s] / total * values[s][from + i];
        }
      }
    }
    return times(self + "o_proj.weight", out);
  }

  const TinyCheckpoint& tiny_;
};

}  // namespace growpage::test
