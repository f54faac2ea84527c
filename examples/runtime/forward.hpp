// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "growpage/core/executor.hpp"
#include "growpage/core/ids.hpp"
#include "kv_memory.hpp"
#include "model.hpp"
#include "rope.hpp"

namespace growpage::runtime {

/// The tokens of a step, of any requests: prefill chunks and decodes side by side. Borrowed.
struct ForwardBatch {
  std::span<const TokenId> tokens;          ///< [token]
  std::span<const std::int64_t> positions;  ///< [token] true positions, below RopeTables::positions
  std::span<const std::int32_t> logit_rows;  ///< tokens whose next token is wanted
};

/// Runs a model over batches: every matmul takes all tokens of the batch at once. A token's logits
/// do not depend on what else is in the batch (see matmul.hpp and attention.hpp).
class ForwardPass {
 public:
  /// Everything is borrowed and outlives it.
  ForwardPass(const Model& model, const RopeTables& rope, Executor executor)
      : model_(model), rope_(rope), executor_(executor) {}

  /// What `memory` refuses ends the pass.
  Status run(const ForwardBatch& batch, KvMemory& memory);
  /// Logits `[vocab]` of the last run's logit_rows[i]. Valid until the next run.
  [[nodiscard]] std::span<const float> logits(std::size_t i) const noexcept;

 private:
  void embed(const ForwardBatch& batch);
  Status attention(std::int32_t layer, const ForwardBatch& batch, KvMemory& memory);
  void mlp(const LayerWeights& weights);
  void predict(const ForwardBatch& batch);
  /// x + what `out` multiplies: the residual connection that ends each half of a layer.
  void add_product(const Matrix& out, const std::vector<float>& x);
  void normalise(const std::vector<float>& weight);
  [[nodiscard]] float* row(std::vector<float>& buffer, std::int64_t token, std::int64_t size) {
    return buffer.data() + token * size;
  }

  const Model& model_;
  const RopeTables& rope_;
  Executor executor_;
  std::int64_t tokens_ = 0;
  // [token, …], with the rows that pad the last tile of a matmul.
  std::vector<float> hidden_, normed_, product_, qkv_, q_, k_, v_, attended_, gate_up_, activated_,
      last_, logits_;
};

}  // namespace growpage::runtime
