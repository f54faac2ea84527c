// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace growpage::detail {

/// The bits of word `word` whose slots lie in [first, end).
[[nodiscard]] inline std::uint64_t word_mask(std::int64_t word, std::int64_t first,
                                             std::int64_t end) noexcept {
  const std::int64_t from = std::max<std::int64_t>(first - word * 64, 0);
  const std::int64_t to = std::min<std::int64_t>(end - word * 64, 64);
  if (to <= from) return 0;
  const std::uint64_t below = to == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << to) - 1;
  return below & ~((std::uint64_t{1} << from) - 1);
}

/// Set bits among slots [first, end).
[[nodiscard]] inline std::int64_t count_bits(const std::uint64_t* bits, std::int64_t first,
                                             std::int64_t end) noexcept {
  std::int64_t count = 0;
  for (std::int64_t word = first >> 6; word * 64 < end; ++word) {
    count += std::popcount(bits[word] & word_mask(word, first, end));
  }
  return count;
}

/// Walks, ascending, the slots whose keep bit is `kept` (all slots when `bits` is null) in the
/// pages for which `wanted(page)` holds.
template <class Wanted>
class SlotWalk {
 public:
  SlotWalk(const std::uint64_t* bits, std::int64_t page_size, std::int64_t slots, bool kept,
           Wanted wanted) noexcept
      : bits_(bits),
        page_size_(page_size),
        slots_(slots),
        flip_(kept ? 0 : ~std::uint64_t{0}),
        wanted_(wanted) {}

  /// The next slot, or −1.
  [[nodiscard]] std::int64_t next() noexcept {
    while (pending_ == 0) {
      if (++word_ * 64 >= end_) {
        do {
          if (++page_ * page_size_ >= slots_) return -1;
        } while (!wanted_(page_));
        end_ = std::min((page_ + 1) * page_size_, slots_);
        word_ = page_ * page_size_ >> 6;
      }
      const std::uint64_t chosen = bits_ != nullptr ? bits_[word_] ^ flip_ : ~std::uint64_t{0};
      pending_ = chosen & word_mask(word_, page_ * page_size_, end_);
    }
    const std::int64_t slot = word_ * 64 + std::countr_zero(pending_);
    pending_ &= pending_ - 1;
    return slot;
  }

 private:
  const std::uint64_t* bits_;
  std::int64_t page_size_;
  std::int64_t slots_;
  std::uint64_t flip_;
  Wanted wanted_;
  std::int64_t page_ = -1;
  std::int64_t word_ = -1;
  std::int64_t end_ = 0;
  std::uint64_t pending_ = 0;
};

}  // namespace growpage::detail
