// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "growpage/core/executor.hpp"
#include "support/rounds.hpp"

namespace growpage::bench {

/// The loops of the probes, in floors.cpp. Sizes are multiples of 256 bytes.
namespace loops {
std::uint64_t read(const char* from, std::int64_t bytes);
void copy_past_cache(char* to, const char* from, std::int64_t bytes);
void rewrite(char* data, std::int64_t bytes);
}  // namespace loops

/// Bytes a kernel cannot do without, by the way they move.
struct Traffic {
  double read = 0;
  double copied = 0;     ///< payload: each byte is read and written
  double rewritten = 0;  ///< read, changed, written back
};

/// What this machine's memory can do at this moment. Every probe goes over the next `window` bytes
/// of buffers much larger than any cache, with the worker threads of the executor it was given.
class Floors {
 public:
  static constexpr std::int64_t window = 32 << 20;
  static constexpr std::int64_t row = 256;  ///< bytes of a row of 128 bf16 elements

  explicit Floors(Executor executor = {}) : executor_(executor), rows_(window / row) {
    static const Buffers shared;
    buffers_ = &shared;
    std::iota(rows_.begin(), rows_.end(), 0);
    std::shuffle(rows_.begin(), rows_.end(), std::mt19937_64(1));
  }

  // Seconds for so many bytes, extrapolated from one window.
  double read(double bytes) {
    return probe(bytes, [this](std::int64_t from, std::int64_t size) {
      benchmark::DoNotOptimize(loops::read(a() + from, size));
    });
  }
  double copy(double bytes) {
    return probe(bytes, [this](std::int64_t from, std::int64_t size) {
      std::memcpy(b() + from, a() + from, static_cast<std::size_t>(size));
    });
  }
  double copy_past_cache(double bytes) {
    return probe(bytes, [this](std::int64_t from, std::int64_t size) {
      loops::copy_past_cache(b() + from, a() + from, size);
    });
  }
  /// Rows from random places to consecutive ones, each asked for 16 rows ahead.
  double gather(double bytes) {
    return probe(bytes, [this](std::int64_t from, std::int64_t size) {
      const char* source = a() + from / window * window;
      const std::int64_t first = from % window / row;
      const std::int64_t count = size / row;
      for (std::int64_t i = 0; i < count; ++i) {
        const char* soon = source + rows_[std::min(first + i + 16, window / row - 1)] * row;
        for (std::int64_t line = 0; line < row; line += 64) __builtin_prefetch(soon + line);
        std::memcpy(b() + from + i * row, source + rows_[first + i] * row, row);
      }
    });
  }
  double rewrite(double bytes) {
    return probe(
        bytes, [this](std::int64_t from, std::int64_t size) { loops::rewrite(a() + from, size); });
  }
  /// The least time the traffic can take at these rates.
  double seconds(const Traffic& t) {
    return (t.read > 0 ? read(t.read) : 0) + (t.copied > 0 ? copy(t.copied) : 0) +
           (t.rewritten > 0 ? rewrite(t.rewritten) : 0);
  }

 private:
  struct Buffers {
    static constexpr std::int64_t bytes = window * 8;
    Buffers() {
      for (char*& memory : memories) {
        memory = static_cast<char*>(CpuBackend().allocate(bytes));
        std::memset(memory, 1, bytes);
      }
    }
    ~Buffers() {
      for (char* memory : memories) CpuBackend().deallocate(memory, bytes);
    }
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;
    char* memories[2] = {};
  };
  [[nodiscard]] char* a() const { return buffers_->memories[0]; }
  [[nodiscard]] char* b() const { return buffers_->memories[1]; }

  template <class Run>
  double probe(double bytes, Run&& run) {
    const std::int64_t from = next_;
    next_ = (next_ + window) % Buffers::bytes;
    const std::int64_t piece = window / executor_.workers / row * row;
    const double took = seconds_of(
        [&] {
          executor_.for_each(executor_.workers,
                             [&](std::int64_t i, std::int32_t) { run(from + i * piece, piece); });
        },
        executor_.workers);
    return took * bytes / static_cast<double>(piece * executor_.workers);
  }

  Executor executor_;
  const Buffers* buffers_;
  std::vector<std::int32_t> rows_;
  std::int64_t next_ = 0;
};

/// Times a kernel against the floor of its traffic. Counters besides those of `measure`: bytes,
/// GBps, and `share`, of the floor that is reached.
template <class Work>
void measure_kernel(benchmark::State& state, Floors& floors, const Traffic& traffic, Work&& work) {
  measure(
      state, 1, work, [&] { return floors.seconds(traffic); }, "share");
  const double bytes = traffic.read + traffic.copied + traffic.rewritten;
  state.counters["bytes"] = bytes;
  state.counters["GBps"] = bytes / state.counters["ns"];
}

}  // namespace growpage::bench
