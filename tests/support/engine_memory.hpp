// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "growpage/cache/page_manager.hpp"
#include "growpage/detail/splitmix.hpp"
#include "support/catch.hpp"

namespace growpage::test {

[[nodiscard]] inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return detail::splitmix64(detail::splitmix64(a) ^ b);
}

/// KV memory as one word per physical slot, with work on it that runs late: what a fence guards is
/// read and written only when the fence completes, the worst that another stream may do. So a page
/// that is handed out, read or written too early shows as a wrong word.
class EngineMemory {
 public:
  /// Work behind one fence.
  struct Work {
    FenceId fence;
    std::int64_t due = 0;                                      ///< step in which it completes
    std::vector<std::pair<std::int64_t, std::int64_t>> moves;  ///< (from, to) physical slots
    std::vector<PageTransfer> to_host, from_host;
    std::int32_t save_row = -1;  ///< summary row to copy …
    std::int32_t load_row = -1;
    std::uint32_t host_row = 0;           ///< … to or from this host row
    std::vector<PageId> reads, rewrites;  ///< device pages it needs unchanged / changes
  };

  EngineMemory(const PageManagerOptions& options, std::int32_t summary_slots)
      : page_size_(options.page_size),
        words_(static_cast<std::size_t>(options.pages * options.page_size)),
        host_(static_cast<std::size_t>(options.host_pages * options.page_size)),
        rows_(static_cast<std::size_t>(summary_slots)),
        host_rows_(static_cast<std::size_t>(options.max_sequences)),
        readers_(static_cast<std::size_t>(options.pages)),
        rewriters_(static_cast<std::size_t>(options.pages)),
        written_step_(static_cast<std::size_t>(options.pages), -1),
        writer_(static_cast<std::size_t>(options.pages)) {}

  [[nodiscard]] std::uint64_t word(std::int64_t slot) const {
    return words_[static_cast<std::size_t>(slot)];
  }
  [[nodiscard]] std::uint64_t& summary(SummarySlot slot) {
    return rows_[static_cast<std::size_t>(slot.value)];
  }

  /// `writer` (a request) stores one word in `step`. False when the page is not its to write.
  [[nodiscard]] bool write(std::int64_t slot, std::uint64_t word, std::uint64_t writer,
                           std::int64_t step) {
    const auto page = static_cast<std::size_t>(slot / page_size_);
    if (readers_[page] != 0 || rewriters_[page] != 0) return false;
    if (written_step_[page] == step && writer_[page] != writer) return false;
    written_step_[page] = step;
    writer_[page] = writer;
    words_[static_cast<std::size_t>(slot)] = word;
    return true;
  }
  /// Whether `reader` may read the page in `step`: nobody else writes it meanwhile.
  [[nodiscard]] bool readable(PageId page, std::uint64_t reader, std::int64_t step) const {
    const auto p = static_cast<std::size_t>(page.value);
    return rewriters_[p] == 0 && (written_step_[p] != step || writer_[p] == reader);
  }

  /// Runs at once, in order.
  void copy(std::span<const PageCopy> copies) {
    for (const PageCopy& c : copies) {
      for (std::int64_t t = 0; t < page_size_; ++t) {
        words_[at(c.target, t)] = words_[at(c.source, t)];
      }
    }
  }

  void begin(Work work) {
    for (const PageId page : work.reads) ++readers_[static_cast<std::size_t>(page.value)];
    for (const PageId page : work.rewrites) ++rewriters_[static_cast<std::size_t>(page.value)];
    pending_.push_back(std::move(work));
  }
  /// Completes the work due by `step`; appends the fences.
  void run_due(std::int64_t step, std::vector<FenceId>& fences) {
    std::erase_if(pending_, [&](const Work& work) {
      if (work.due > step) return false;
      run(work);
      fences.push_back(work.fence);
      return true;
    });
  }
  [[nodiscard]] std::size_t pending() const { return pending_.size(); }

 private:
  [[nodiscard]] std::size_t at(PageId page, std::int64_t t) const {
    return static_cast<std::size_t>(page.offset() * page_size_ + t);
  }
  void run(const Work& work) {
    for (const auto& [from, to] : work.moves) {
      words_[static_cast<std::size_t>(to)] = words_[static_cast<std::size_t>(from)];
    }
    for (const PageTransfer& t : work.to_host) {
      for (std::int64_t i = 0; i < page_size_; ++i) host_[at(t.host, i)] = words_[at(t.device, i)];
    }
    for (const PageTransfer& t : work.from_host) {
      for (std::int64_t i = 0; i < page_size_; ++i) words_[at(t.device, i)] = host_[at(t.host, i)];
    }
    if (work.save_row >= 0) {
      host_rows_[work.host_row] = rows_[static_cast<std::size_t>(work.save_row)];
    }
    if (work.load_row >= 0) {
      rows_[static_cast<std::size_t>(work.load_row)] = host_rows_[work.host_row];
    }
    for (const PageId page : work.reads) --readers_[static_cast<std::size_t>(page.value)];
    for (const PageId page : work.rewrites) --rewriters_[static_cast<std::size_t>(page.value)];
  }

  std::int64_t page_size_;
  std::vector<std::uint64_t> words_, host_;      // [page, token]
  std::vector<std::uint64_t> rows_, host_rows_;  // [summary slot], [sequence]
  std::vector<std::int32_t> readers_, rewriters_;
  std::vector<std::int64_t> written_step_;
  std::vector<std::uint64_t> writer_;
  std::vector<Work> pending_;
};

}  // namespace growpage::test
