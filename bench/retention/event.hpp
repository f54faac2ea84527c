// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "growpage/retention/compaction_plan.hpp"
#include "support/scene.hpp"

namespace growpage::bench {

/// The stages of a capacity-boundary event of one request: demand and scores in one pass over K,
/// selection, plan, compaction.
class Event {
 public:
  Event(CpuBackend& backend, Scene& scene, CompactionStrategy strategy)
      : backend_(backend), scene_(scene), strategy_(strategy) {
    const auto heads = static_cast<std::size_t>(scene.heads());
    const auto slots = static_cast<std::size_t>(scene.slots());
    scores_.resize(heads * slots);
    bits_.resize(heads * slots / 64);
    page_kept_.resize(static_cast<std::size_t>(scene.options().pages));
    marks_.assign(page_kept_.size(), page_private);
    workspace_bytes_ = backend.workspace_bytes(scene.options().shape, scene.slots());
    workspace_ = backend.allocate(workspace_bytes_);
  }
  ~Event() { backend_.deallocate(workspace_, workspace_bytes_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void next_request() { request_ = (request_ + 1) % scene_.options().requests; }

  void pass() {
    Demand demand;
    BoundaryPass pass = scene_.boundary(request_);
    pass.scores = scores_.data();
    pass.score_stride = scene_.slots();
    pass.result = &demand;
    backend_.boundary_pass(pass, workspace_);
    demand_ = demand;
  }
  void select(const RetentionOptions& retention = {}) {
    Selection selection;
    selection.shape = scene_.options().shape;
    selection.retention = retention;
    selection.scores = scores_.data();
    selection.score_stride = scene_.slots();
    selection.marks = marks_.data();
    selection.keep = keep();
    selection.out = keep_set();
    backend_.select(selection, workspace_);
  }
  void plan() { plan_ = plan_compaction(marks_, page_kept_, 1, strategy_).value(); }
  void compact() {
    CompactionMove move;
    move.shape = scene_.options().shape;
    move.kv = scene_.kv();
    move.pages = scene_.table(request_);
    move.marks = marks_.data();
    move.plan = plan_;
    move.keep = keep_set();
    backend_.compact(move, workspace_);
  }

  [[nodiscard]] std::int32_t keep() const {
    return scene_.slots() - scene_.options().shape.page_size;
  }
  [[nodiscard]] std::vector<float>& scores() { return scores_; }
  [[nodiscard]] const std::vector<std::uint64_t>& bits() const { return bits_; }
  [[nodiscard]] KeepSet keep_set() {
    const SceneOptions& o = scene_.options();
    return {bits_.data(),   page_kept_.data(), o.shape.layers,     o.shape.kv_heads,
            scene_.slots(), o.pages,           scene_.slots() / 64};
  }

  /// K and V rows the compaction has to move, in bytes.
  [[nodiscard]] double moved_bytes() {
    const double row = 2.0 * static_cast<double>(scene_.row_bytes());
    const auto victim = static_cast<std::size_t>(plan_.victim[0]);
    if (strategy_ == CompactionStrategy::fill_holes) return row * page_kept_[victim];
    double rows = 0;  // all but those before the first evicted slot of their head
    for (std::int64_t h = 0; h < scene_.heads(); ++h) {
      const std::uint64_t* bits = bits_.data() + h * scene_.slots() / 64;
      std::int64_t stay = 0;
      while (stay < scene_.slots() / 64 && bits[stay] == ~std::uint64_t{0}) ++stay;
      const std::int64_t prefix = stay * 64 + std::countr_one(bits[stay]);
      rows += static_cast<double>(keep() - prefix);
    }
    return row * rows;
  }

  /// Runs an event once and checks that the rows that were to stay are all there.
  void run_checked() {
    pass();
    select();
    plan();
    check(demand_.count == scene_.heads());
    check(demand_.short_ratio() > 0 && demand_.short_ratio() < 1);
    std::int64_t kept = 0;
    for (const std::int32_t rows : page_kept_) kept += rows;
    check(kept == scene_.heads() * keep());
    const std::uint64_t before = checksum([&](std::int64_t head, std::int32_t slot) {
      return (bits_[static_cast<std::size_t>(head * scene_.slots() + slot) / 64] >> (slot % 64) &
              1) != 0;
    });
    compact();
    const std::int32_t b = scene_.options().shape.page_size;
    check(before ==
          checksum([&](std::int64_t, std::int32_t slot) { return slot / b != plan_.victim[0]; }));
  }

 private:
  /// Of the K and V rows of the request for which `counts(head, slot)`, in any order.
  template <class Counts>
  [[nodiscard]] std::uint64_t checksum(Counts counts) const {
    const CacheShape& shape = scene_.options().shape;
    std::uint64_t sum = 0;
    for (std::int64_t head = 0; head < scene_.heads(); ++head) {
      for (std::int32_t slot = 0; slot < scene_.slots(); ++slot) {
        if (!counts(head, slot)) continue;
        for (const KvTensor* tensor : {&scene_.kv().k, &scene_.kv().v}) {
          const auto* row = static_cast<const char*>(tensor->row(
              static_cast<std::int32_t>(head / shape.kv_heads),
              scene_.table(request_)[slot / shape.page_size],
              static_cast<std::int32_t>(head % shape.kv_heads), slot % shape.page_size));
          std::uint64_t word = 0;
          for (std::int64_t at = 0; at < scene_.row_bytes(); at += 8) {
            std::memcpy(&word, row + at, sizeof word);
            sum += word * static_cast<std::uint64_t>(2 * at + 1);
          }
        }
      }
    }
    return sum;
  }

  CpuBackend& backend_;
  Scene& scene_;
  CompactionStrategy strategy_;
  std::int32_t request_ = 0;
  void* workspace_ = nullptr;
  std::int64_t workspace_bytes_ = 0;
  std::vector<float> scores_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::int32_t> page_kept_;
  std::vector<std::uint8_t> marks_;
  CompactionPlan plan_;
  Demand demand_;
};

}  // namespace growpage::bench
