// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "support/reference_boundary.hpp"
#include "support/tiny_model.hpp"

namespace growpage::test {

/// What one sequence must hold: which position's rows lie in which slot of which head, and the
/// double-precision summaries.
class TinySequence {
 public:
  explicit TinySequence(const CacheShape& shape)
      : positions_(static_cast<std::size_t>(shape.layers * shape.kv_heads)) {}

  std::vector<TokenId> text;

  void append(std::int64_t position) {
    for (auto& slots : positions_) slots.push_back(position);
  }
  [[nodiscard]] std::int32_t slots() const {
    return static_cast<std::int32_t>(positions_[0].size());
  }
  [[nodiscard]] const std::vector<std::int64_t>& positions(const TinyModel& model, std::int32_t l,
                                                           std::int32_t h) const {
    return positions_[static_cast<std::size_t>(l * model.shape().kv_heads + h)];
  }
  [[nodiscard]] TokenId token(std::int64_t position) const {
    return text[static_cast<std::size_t>(position)];
  }

  void summarise(const TinyModel& model, bool first, std::int64_t position) {
    const CacheShape& shape = model.shape();
    const double beta_long = 1 - 0.256 / shape.page_size;
    if (first) short_.assign(static_cast<std::size_t>(shape.layers), {}), long_ = short_;
    query_.assign(static_cast<std::size_t>(shape.layers), {});
    for (std::size_t l = 0; l < query_.size(); ++l) {
      for (std::int32_t h = 0; h < shape.query_heads; ++h) {
        const reference::Row q =
            model.query(static_cast<std::int32_t>(l), h, token(position), position);
        query_[l].push_back(q);
        if (first) {
          short_[l].push_back(q);
          long_[l].push_back(q);
          continue;
        }
        const auto head = static_cast<std::size_t>(h);
        short_[l][head] = reference::ema(short_[l][head], q, 0.9F);
        long_[l][head] = reference::ema(long_[l][head], q, beta_long);
      }
    }
    position_ = position;
  }

  /// Demand and scores at a boundary, from the formulas.
  [[nodiscard]] reference::BoundaryAnswer boundary(const TinyModel& model) const {
    const PagedKVCacheOptions& options = model.cache().cache_options();
    reference::Boundary in;
    in.shape = options.shape;
    in.slots = slots();
    in.candidates = (in.slots - 1) / in.shape.page_size * in.shape.page_size;
    in.position = position_;
    in.rope = options.rope;
    in.demand = options.demand;
    in.retention = options.retention;
    in.key = [&](std::int32_t l, std::int32_t h, std::int32_t s) {
      const std::int64_t p = positions(model, l, h)[static_cast<std::size_t>(s)];
      return model.key(l, h, token(p), p);
    };
    in.short_summary = short_;
    in.long_summary = long_;
    in.query = query_;
    in.bf16_keys = options.kv.k.dtype == DType::bf16;
    return reference::boundary(in, 1e-5);
  }

  /// Every row in memory is the one expected, bit for bit.
  void check_rows(const TinyModel& model, SequenceId id) const {
    const CacheShape& shape = model.shape();
    const KvView& kv = model.cache().kv();
    bool same = true;
    for (std::int32_t l = 0; l < shape.layers; ++l) {
      for (std::int32_t h = 0; h < shape.kv_heads; ++h) {
        for (std::int32_t s = 0; s < slots(); ++s) {
          const std::int64_t p = positions(model, l, h)[static_cast<std::size_t>(s)];
          same &= model.stored(kv.k, id, l, h, s, shape.head_dim) == model.key(l, h, token(p), p);
          same &= model.stored(kv.v_in_k() ? kv.k : kv.v, id, l, h, s, shape.v_dim()) ==
                  model.value(l, h, token(p), p);
        }
      }
    }
    CHECK(same);
  }
  /// Attention of `token`'s query over the rows held equals the double reference over them.
  void check_attention(const TinyModel& model, SequenceId id, std::int64_t position) const {
    const CacheShape& shape = model.shape();
    double worst = 0;
    for (std::int32_t l = 0; l < shape.layers; ++l) {
      const std::vector<float> got = model.attention(id, l, token(position), position, slots());
      for (std::int32_t h = 0; h < shape.query_heads; ++h) {
        reference::Rows keys, values;
        for (const std::int64_t p : positions(model, l, h / shape.group())) {
          keys.push_back(model.key(l, h / shape.group(), token(p), p));
          values.push_back(model.value(l, h / shape.group(), token(p), p));
        }
        const reference::Row want =
            reference::attention(model.query(l, h, token(position), position), keys, values,
                                 shape.v_dim(), 1 / std::sqrt(double(shape.head_dim)));
        worst = std::max(
            worst, reference::distance(std::span(got).subspan(
                                           static_cast<std::size_t>(h) * want.size(), want.size()),
                                       want, 1e-4, 1e-5));
      }
    }
    CHECK(worst <= 1);
  }

  /// Reads from memory which positions each head has kept, and checks that they are the right ones:
  /// the newest `recent`, rows shared with others (`first_private` slots), and by the scores of
  /// `before` nothing evicted ranks above anything kept (but for float rounding, `tolerance`).
  void adopt_compaction(const TinyModel& model, SequenceId id,
                        const reference::BoundaryAnswer& before, std::int32_t kept_prefix,
                        double tolerance) {
    const CacheShape& shape = model.shape();
    const SequenceView view = model.cache().view(id).value();
    const std::int32_t recent = model.cache().cache_options().retention.recent;
    bool known = true, distinct = true, required = true, best = true;
    for (std::int32_t l = 0; l < shape.layers; ++l) {
      for (std::int32_t h = 0; h < shape.kv_heads; ++h) {
        auto& held = positions_[static_cast<std::size_t>(l * shape.kv_heads + h)];
        std::map<reference::Row, std::size_t> slot_of;
        for (std::size_t s = 0; s < held.size(); ++s) {
          slot_of[model.key(l, h, token(held[s]), held[s])] = s;
        }
        std::vector<bool> kept(held.size(), false);
        std::vector<std::int64_t> now;
        for (std::int32_t s = 0; s < view.slots; ++s) {
          const auto found =
              slot_of.find(model.stored(model.cache().kv().k, id, l, h, s, shape.head_dim));
          known &= found != slot_of.end();
          if (!known) continue;
          distinct &= !kept[found->second];
          kept[found->second] = true;
          now.push_back(held[found->second]);
        }
        double worst_kept = 1, best_evicted = 0;
        const reference::Row& scores =
            before.scores[static_cast<std::size_t>(l)][static_cast<std::size_t>(h)];
        for (std::size_t s = 0; s < held.size(); ++s) {
          const bool must = s + static_cast<std::size_t>(recent) >= held.size() ||
                            s < static_cast<std::size_t>(kept_prefix);
          if (must) required &= kept[s];
          if (!must && kept[s]) worst_kept = std::min(worst_kept, scores[s]);
          if (!kept[s]) best_evicted = std::max(best_evicted, scores[s]);
        }
        best &= best_evicted <= worst_kept * (1 + tolerance);
        held = std::move(now);
      }
    }
    CHECK(known);
    CHECK(distinct);
    CHECK(required);
    CHECK(best);
    if (known) check_rows(model, id);
  }

 private:
  std::vector<std::vector<std::int64_t>> positions_;  // [layer · kv_head][slot]
  std::vector<reference::Rows> short_, long_, query_;
  std::int64_t position_ = 0;
};

}  // namespace growpage::test
