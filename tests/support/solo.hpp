// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "support/tiny_model.hpp"
#include "support/tiny_sequence.hpp"

namespace growpage::test {

/// One sequence, driven by hand.
struct Solo {
  explicit Solo(CpuCache& owner, std::int32_t slot_value = 0, TokenId offset = 0)
      : cache(owner), model(owner), held(owner.shape()), slot{slot_value}, first_token(offset) {
    id = cache.admit({}).value().sequence;
  }
  void decode(std::int32_t count = 1) {
    for (std::int32_t i = 0; i < count; ++i) {
      const auto position = static_cast<std::int64_t>(held.text.size());
      held.text.push_back(first_token + static_cast<TokenId>(position * 37 % 500));
      const std::int32_t at = cache.view(id)->slots;
      REQUIRE(cache.reserve(id, 1).ok());
      REQUIRE(cache.append(id, 1, &held.text.back(), copies).ok());
      model.append(id, {&held.text.back(), 1}, position, at);
      held.append(position);
      REQUIRE(cache.mark_computed(id, at + 1).ok());
      model.summarise({slot.value, position == 0 ? 1 : 0}, held.text.back(), position);
      held.summarise(model, position == 0, position);
    }
  }
  [[nodiscard]] std::int64_t position() const {
    return static_cast<std::int64_t>(held.text.size()) - 1;
  }
  [[nodiscard]] Demand measure() const {
    Demand demand;
    REQUIRE(cache.measure_demand(id, slot, position(), demand).ok());
    return demand;
  }
  [[nodiscard]] CompactionTicket begin(std::int32_t victims = 1) {
    return cache
        .begin_compaction(id, victims, CompactionStrategy::fill_holes, SharedPages::keep, copies)
        .value();
  }
  void compact() {
    const reference::BoundaryAnswer before = held.boundary(model);
    const CompactionTicket ticket = begin();
    REQUIRE(cache.compact(ticket, slot, position()).ok());
    REQUIRE(cache.complete_fence(ticket.fence).ok());
    if (cache.cache_options().retention.score == ScoreKind::summaries) {
      held.adopt_compaction(model, id, before, 0, 1e-3);
    }
  }
  void swap_out() {
    std::vector<PageTransfer> transfers;
    const FenceId fence = cache.swap_out(id, transfers).value();
    REQUIRE(cache.run_swap_out(id, slot, transfers).ok());
    REQUIRE(cache.complete_fence(fence).ok());
  }
  void swap_in(std::int32_t to) {
    std::vector<PageTransfer> transfers;
    const FenceId fence = cache.swap_in(id, transfers).value();
    slot.value = to;
    REQUIRE(cache.run_swap_in(id, slot, transfers).ok());
    REQUIRE(cache.complete_fence(fence).ok());
  }
  /// All K rows, slot by slot.
  [[nodiscard]] std::vector<reference::Row> rows() const {
    std::vector<reference::Row> out;
    for (std::int32_t l = 0; l < cache.shape().layers; ++l) {
      for (std::int32_t h = 0; h < cache.shape().kv_heads; ++h) {
        for (std::int32_t s = 0; s < cache.view(id)->slots; ++s) {
          out.push_back(model.stored(cache.kv().k, id, l, h, s, cache.shape().head_dim));
        }
      }
    }
    return out;
  }

  CpuCache& cache;
  TinyModel model;
  TinySequence held;
  SequenceId id;
  SummarySlot slot;
  TokenId first_token;
  std::vector<PageCopy> copies;
};

}  // namespace growpage::test
