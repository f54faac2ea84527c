// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "config.hpp"
#include "growpage/demand/rope.hpp"

namespace growpage::runtime {

/// The rotary embedding of a model, as tables that the engine and the cache share: what the cache
/// rotates summaries with is then, bit for bit, what the model rotates queries with.
class RopeTables {
 public:
  /// For positions [0, positions).
  RopeTables(const ModelConfig& config, std::int64_t positions);

  /// Turns `heads` heads `[head, head_dim]` of the token at `position`, from `in` to `out`.
  void rotate(const float* in, std::int32_t heads, std::int64_t position,
              float* out) const noexcept;
  /// Borrows the tables.
  [[nodiscard]] RopeParams params() const noexcept;
  [[nodiscard]] std::int64_t positions() const noexcept { return positions_; }

 private:
  std::int64_t half_;  // of head_dim
  std::int64_t positions_;
  std::vector<float> cos_;  // [position, head_dim/2]
  std::vector<float> sin_;
};

/// 1/θ^(2i/d) for i in [0, d/2), after scaling.
[[nodiscard]] std::vector<float> inverse_frequencies(const ModelConfig& config);

}  // namespace growpage::runtime
