// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "growpage/core/dtype.hpp"
#include "growpage/core/executor.hpp"
#include "growpage/demand/query_summary.hpp"
#include "support/reference.hpp"

namespace growpage::test {

using reference::Row;

/// Owns a summary state. Starts as garbage: the first step of a slot must not look at it.
class SummaryState {
 public:
  SummaryState(const CacheShape& shape, const SummaryOptions& options) {
    const SummaryBytes bytes = summary_bytes(shape, options);
    summaries_.assign(static_cast<std::size_t>(bytes.summaries), std::byte{0xff});
    rms_.assign(static_cast<std::size_t>(bytes.query_rms / 4),
                std::numeric_limits<float>::quiet_NaN());
    window_.assign(static_cast<std::size_t>(bytes.window / 4),
                   std::numeric_limits<float>::quiet_NaN());
    steps_.assign(static_cast<std::size_t>(bytes.steps / 8), 77);
    view = {summaries_.data(), rms_.data(),       window_.empty() ? nullptr : window_.data(),
            steps_.data(),     options.storage,   shape.layers,
            options.slots,     shape.query_heads, shape.head_dim,
            options.window};
  }
  SummaryState(const SummaryState&) = delete;
  SummaryState& operator=(const SummaryState&) = delete;

  /// Summary `which` (0 short, 1 long) of a query head.
  [[nodiscard]] Row summary(std::int32_t layer, std::int32_t slot, std::int32_t which,
                            std::int32_t head) const {
    const DType t = view.storage == SummaryOptions::Storage::f32 ? DType::f32 : DType::f16;
    Row out;
    for (std::int32_t i = 0; i < view.head_dim; ++i) {
      out.push_back(load_element(summaries_.data(), t, view.index(layer, slot, which, head) + i));
    }
    return out;
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return summaries_; }

  SummaryView view;

 private:
  std::vector<std::byte> summaries_;
  std::vector<float> rms_, window_;
  std::vector<std::int64_t> steps_;
};

/// Workspace of exactly the promised size, dirty, with a guard behind it.
class Workspace {
 public:
  explicit Workspace(std::int64_t bytes)
      : size_(static_cast<std::size_t>(bytes)), memory_(size_ + 192, std::byte{0xff}) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = (64 - address % 64) % 64;
  }
  [[nodiscard]] void* data() { return memory_.data() + start_; }
  [[nodiscard]] bool intact() const {
    for (std::size_t i = start_ + size_; i < memory_.size(); ++i) {
      if (memory_[i] != std::byte{0xff}) return false;
    }
    return true;
  }

 private:
  std::size_t size_;
  std::vector<std::byte> memory_;
  std::size_t start_ = 0;
};

/// Lends two real threads: the calling one takes the even tasks, a second one the odd ones.
inline Executor two_threads() {
  return {[](void*, std::int64_t tasks, Executor::Task task, void* argument) {
            std::thread other([&] {
              for (std::int64_t i = 1; i < tasks; i += 2) task(argument, i, 1);
            });
            for (std::int64_t i = 0; i < tasks; i += 2) task(argument, i, 0);
            other.join();
          },
          nullptr, 2};
}

}  // namespace growpage::test
