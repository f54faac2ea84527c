// SPDX-License-Identifier: Apache-2.0
#include "forward.hpp"

#include <algorithm>

#include "layers.hpp"

namespace growpage::runtime {
namespace {

void make_room(std::vector<float>& buffer, std::int64_t rows, std::int64_t size) {
  const auto needed = static_cast<std::size_t>(padded_rows(rows) * size);
  if (buffer.size() < needed) buffer.resize(needed);
}

}  // namespace

Status ForwardPass::run(const ForwardBatch& batch, KvMemory& memory) {
  tokens_ = static_cast<std::int64_t>(batch.tokens.size());
  const ModelConfig& c = model_.config();
  for (auto* buffer : {&hidden_, &normed_, &product_}) make_room(*buffer, tokens_, c.hidden_size);
  make_room(qkv_, tokens_, c.query_dim() + 2 * c.kv_dim());
  for (auto* buffer : {&q_, &attended_}) make_room(*buffer, tokens_, c.query_dim());
  for (auto* buffer : {&k_, &v_}) make_room(*buffer, tokens_, c.kv_dim());
  make_room(gate_up_, tokens_, 2 * std::int64_t{c.intermediate_size});
  make_room(activated_, tokens_, c.intermediate_size);

  embed(batch);
  for (std::int32_t layer = 0; layer < c.layers; ++layer) {
    if (Status s = attention(layer, batch, memory); !s.ok()) return s;
    mlp(model_.layers()[static_cast<std::size_t>(layer)]);
  }
  predict(batch);
  return {};
}

void ForwardPass::embed(const ForwardBatch& batch) {
  const std::int64_t size = model_.config().hidden_size;
  for (std::int64_t t = 0; t < tokens_; ++t) {
    const float* from = model_.embedding().row(batch.tokens[static_cast<std::size_t>(t)]);
    std::copy_n(from, size, row(hidden_, t, size));
  }
}

void ForwardPass::normalise(const std::vector<float>& weight) {
  const std::size_t size = weight.size();
  executor_.for_each(tokens_, [&](std::int64_t t, std::int32_t) {
    const auto at = static_cast<std::int64_t>(size);
    rms_norm({row(hidden_, t, at), size}, weight.data(), model_.config().rms_norm_eps,
             row(normed_, t, at));
  });
}

void ForwardPass::add_product(const Matrix& out, const std::vector<float>& x) {
  matmul(executor_, out, x.data(), tokens_, product_.data());
  add(hidden_.data(), product_.data(), tokens_ * out.out);
}

Status ForwardPass::attention(std::int32_t layer, const ForwardBatch& batch, KvMemory& memory) {
  const ModelConfig& c = model_.config();
  const LayerWeights& w = model_.layers()[static_cast<std::size_t>(layer)];
  normalise(w.input_norm);
  matmul(executor_, w.qkv, normed_.data(), tokens_, qkv_.data());
  if (!w.q_norm.empty()) {
    const auto dim = static_cast<std::size_t>(c.head_dim);
    executor_.for_each(tokens_, [&](std::int64_t t, std::int32_t) {
      float* head = row(qkv_, t, w.qkv.out);
      for (std::int32_t h = 0; h < c.query_heads + c.kv_heads; ++h, head += dim) {
        const std::vector<float>& weight = h < c.query_heads ? w.q_norm : w.k_norm;
        rms_norm({head, dim}, weight.data(), c.rms_norm_eps, head);
      }
    });
  }
  if (Status s = memory.observe(layer, qkv_.data(), w.qkv.out); !s.ok()) return s;
  executor_.for_each(tokens_, [&](std::int64_t t, std::int32_t) {
    const float* from = row(qkv_, t, w.qkv.out);
    const std::int64_t position = batch.positions[static_cast<std::size_t>(t)];
    rope_.rotate(from, c.query_heads, position, row(q_, t, c.query_dim()));
    from += c.query_dim();
    rope_.rotate(from, c.kv_heads, position, row(k_, t, c.kv_dim()));
    std::copy_n(from + c.kv_dim(), c.kv_dim(), row(v_, t, c.kv_dim()));
  });
  if (Status s = memory.append(layer, k_.data(), v_.data()); !s.ok()) return s;
  if (Status s = memory.attend(layer, q_.data(), attended_.data()); !s.ok()) return s;
  add_product(w.output, attended_);
  return {};
}

void ForwardPass::mlp(const LayerWeights& w) {
  normalise(w.mlp_norm);
  matmul(executor_, w.gate_up, normed_.data(), tokens_, gate_up_.data());
  executor_.for_each(tokens_, [&](std::int64_t t, std::int32_t) {
    swiglu(row(gate_up_, t, w.gate_up.out), w.down.in, row(activated_, t, w.down.in));
  });
  add_product(w.down, activated_);
}

void ForwardPass::predict(const ForwardBatch& batch) {
  const ModelConfig& c = model_.config();
  const auto rows = static_cast<std::int64_t>(batch.logit_rows.size());
  make_room(last_, rows, c.hidden_size);
  make_room(logits_, rows, c.vocab_size);
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* x = row(hidden_, batch.logit_rows[static_cast<std::size_t>(i)], c.hidden_size);
    rms_norm({x, static_cast<std::size_t>(c.hidden_size)}, model_.final_norm().data(),
             c.rms_norm_eps, row(last_, i, c.hidden_size));
  }
  matmul(executor_, model_.head(), last_.data(), rows, logits_.data());
}

std::span<const float> ForwardPass::logits(std::size_t i) const noexcept {
  const auto vocab = static_cast<std::size_t>(model_.config().vocab_size);
  return {logits_.data() + i * vocab, vocab};
}

}  // namespace growpage::runtime
