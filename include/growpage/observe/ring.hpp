// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace growpage {

/// A bounded record of the latest things that happened: the engine drains it when it likes; when it
/// is full the OLDEST entry is dropped and counted. Nothing is allocated after construction.
template <class T>
class EventRing {
 public:
  explicit EventRing(std::size_t capacity) : entries_(capacity) {}

  void push(const T& entry) noexcept {
    if (entries_.empty()) {
      ++dropped_;
      return;
    }
    if (size_ == entries_.size()) {
      head_ = next(head_);
      --size_;
      ++dropped_;
    }
    std::size_t at = head_ + size_;
    if (at >= entries_.size()) at -= entries_.size();
    entries_[at] = entry;
    ++size_;
  }

  /// Takes the oldest entry; false when there is none.
  bool pop(T& out) noexcept {
    if (size_ == 0) return false;
    out = entries_[head_];
    head_ = next(head_);
    --size_;
    return true;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return entries_.size(); }
  [[nodiscard]] std::int64_t dropped() const noexcept { return dropped_; }

 private:
  [[nodiscard]] std::size_t next(std::size_t i) const noexcept {
    return i + 1 == entries_.size() ? 0 : i + 1;
  }
  std::vector<T> entries_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  std::int64_t dropped_ = 0;
};

}  // namespace growpage
