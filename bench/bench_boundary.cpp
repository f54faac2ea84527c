// SPDX-License-Identifier: Apache-2.0
// One capacity-boundary event at the shape of Qwen3-8B: 36 layers, 32/8 heads, head dim 128,
// 16 pages of 256 tokens, one thread. `floor_ratio` is the event's time over the time to read K
// once and to copy as many bytes as fill_holes moves, both measured between the rounds. Arguments:
// dtype (0 f32, 1 f16, 2 bf16), token-major, form (1 scalar, 2 SIMD).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "growpage/backend/cpu.hpp"

namespace growpage {
namespace {

constexpr CacheShape shape{.layers = 36, .query_heads = 32, .kv_heads = 8, .head_dim = 128};
constexpr std::int32_t pages = 16;
constexpr std::int32_t pool = 20;
constexpr std::int32_t slots = pages * 256;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Event {
 public:
  Event(DType dtype, bool token_major, CpuBackend::Isa isa)
      : backend_({}, isa), dtype_(dtype), random_(1) {
    const KvLayout layout = token_major ? KvLayout::nhd(shape, pool, shape.head_dim)
                                        : KvLayout::hnd(shape, pool, shape.head_dim);
    bytes_ = layout.layer_stride * shape.layers * static_cast<std::int64_t>(dtype_bytes(dtype));
    kv_.k = {tensor(), nullptr, layout, dtype};
    kv_.v = {tensor(), nullptr, layout, dtype};
    for (std::int32_t p = 0; p < pool; ++p) table_.push_back(PageId{p});
    std::shuffle(table_.begin(), table_.end(), random_);
    for (std::int32_t i = 0; i < 64; ++i) {
      inv_freq_.push_back(static_cast<float>(std::pow(1e6, -i / 64.0)));
    }
    make_summaries();
    workspace_ = backend_.allocate(backend_.workspace_bytes(shape, slots));
    copy_[0].assign(64 << 20, 'a');
    copy_[1].assign(64 << 20, 'b');
  }
  ~Event() {
    for (void* memory : {kv_.k.base, kv_.v.base, workspace_}) backend_.deallocate(memory, 0);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void boundary() {
    Demand demand;
    BoundaryPass pass;
    pass.shape = shape;
    pass.kv = kv_;
    pass.summaries = summaries_;
    pass.rope.rotary_dim = shape.head_dim;
    pass.rope.inv_freq = inv_freq_.data();
    pass.input = {table_.data(), slots, slots - shape.page_size, 0, 5000};
    pass.scores = scores_.data();
    pass.score_stride = slots;
    pass.result = &demand;
    backend_.boundary_pass(pass, workspace_);
    benchmark::DoNotOptimize(demand.delta());
  }
  void select() {
    Selection selection;
    selection.shape = shape;
    selection.scores = scores_.data();
    selection.score_stride = slots;
    selection.marks = marks_.data();
    selection.keep = slots - shape.page_size;
    selection.out = keep_set();
    backend_.select(selection, workspace_);
  }
  void compact() {
    const auto plan = plan_compaction(marks_, page_kept_, 1, CompactionStrategy::fill_holes);
    CompactionMove move;
    move.shape = shape;
    move.kv = kv_;
    move.pages = table_.data();
    move.marks = marks_.data();
    move.plan = *plan;
    move.keep = keep_set();
    backend_.compact(move);
    moved_bytes_ = 2.0 * page_kept_[static_cast<std::size_t>(plan->victim[0])] * shape.head_dim *
                   static_cast<double>(dtype_bytes(dtype_));
  }

  [[nodiscard]] double k_bytes() const { return static_cast<double>(bytes_) * pages / pool; }
  [[nodiscard]] double moved_bytes() const { return moved_bytes_; }
  /// Seconds to read K once.
  double read_k() {
    const double start = now();
    std::uint64_t sum[8] = {};
    const char* k = static_cast<const char*>(kv_.k.base);
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(k_bytes()); at += 64) {
      std::uint64_t line[8];
      std::memcpy(line, k + at, sizeof line);
      for (int i = 0; i < 8; ++i) sum[i] ^= line[i];
    }
    benchmark::DoNotOptimize(sum);
    return now() - start;
  }
  /// Seconds to copy `size` bytes.
  double copy_seconds(double size) {
    const double start = now();
    std::memcpy(copy_[1].data(), copy_[0].data(), copy_[0].size());
    benchmark::ClobberMemory();
    return (now() - start) * size / static_cast<double>(copy_[0].size());
  }

 private:
  void* tensor() {
    auto* memory = static_cast<char*>(backend_.allocate(bytes_));
    std::normal_distribution<float> normal;
    std::vector<char> pattern(std::size_t{1} << 20);
    const auto element = static_cast<std::int64_t>(dtype_bytes(dtype_));
    const std::int64_t count = static_cast<std::int64_t>(pattern.size()) / element;
    for (std::int64_t i = 0; i < count; ++i) {
      store_element(pattern.data(), dtype_, i, normal(random_));
    }
    constexpr std::int64_t piece = 4096;
    for (std::int64_t at = 0; at < bytes_; at += piece) {
      const auto from = static_cast<std::int64_t>(random_() % (pattern.size() - piece)) & ~63;
      std::memcpy(memory + at, pattern.data() + from,
                  static_cast<std::size_t>(std::min(piece, bytes_ - at)));
    }
    return memory;
  }
  void make_summaries() {
    const auto rows = static_cast<std::size_t>(shape.layers * shape.query_heads);
    std::normal_distribution<float> normal(0.0F, 2.0F);
    summary_values_.resize(rows * 2 * 128);
    for (float& x : summary_values_) x = normal(random_);
    rms_.assign(rows, 2.0F);
    steps_.assign(shape.layers, 100);
    summaries_.summaries = summary_values_.data();
    summaries_.query_rms = rms_.data();
    summaries_.steps = steps_.data();
    summaries_.layers = shape.layers;
    summaries_.slots = 1;
    summaries_.query_heads = shape.query_heads;
    summaries_.head_dim = shape.head_dim;
  }
  [[nodiscard]] KeepSet keep_set() {
    return {bits_.data(), page_kept_.data(), shape.layers, shape.kv_heads, slots,
            pages,        slots / 64};
  }

  CpuBackend backend_;
  DType dtype_;
  std::mt19937_64 random_;
  std::int64_t bytes_ = 0;
  KvView kv_;
  std::vector<PageId> table_;
  std::vector<float> inv_freq_, summary_values_, rms_;
  std::vector<std::int64_t> steps_;
  SummaryView summaries_;
  void* workspace_ = nullptr;
  std::vector<float> scores_ = std::vector<float>(std::size_t{36} * 8 * slots);
  std::vector<std::uint64_t> bits_ = std::vector<std::uint64_t>(std::size_t{36} * 8 * slots / 64);
  std::vector<std::int32_t> page_kept_ = std::vector<std::int32_t>(pages);
  std::vector<std::uint8_t> marks_ = std::vector<std::uint8_t>(pages, page_private);
  std::vector<char> copy_[2];
  double moved_bytes_ = 0;
};

void boundary_event(benchmark::State& state) {
  Event event(static_cast<DType>(state.range(0)), state.range(1) != 0,
              static_cast<CpuBackend::Isa>(state.range(2)));
  event.boundary();  // touches everything once
  event.select();
  event.compact();
  double part[3] = {};
  std::vector<double> ratios;
  std::vector<double> reads;
  for (auto _ : state) {
    const double read_before = event.read_k();
    const double copy_before = event.copy_seconds(event.moved_bytes());
    const double start = now();
    event.boundary();
    const double scored = now();
    event.select();
    const double selected = now();
    event.compact();
    const double end = now();
    const double read = (read_before + event.read_k()) / 2;
    const double copy = (copy_before + event.copy_seconds(event.moved_bytes())) / 2;
    part[0] += scored - start;
    part[1] += selected - scored;
    part[2] += end - selected;
    ratios.push_back((end - start) / (read + copy));
    reads.push_back(read);
    state.SetIterationTime(end - start);
  }
  const auto median = [](std::vector<double>& v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  };
  const auto rounds = static_cast<double>(state.iterations());
  state.counters["pass_ms"] = part[0] / rounds * 1e3;
  state.counters["select_ms"] = part[1] / rounds * 1e3;
  state.counters["compact_ms"] = part[2] / rounds * 1e3;
  state.counters["pass_GBps"] = event.k_bytes() * rounds / part[0] / 1e9;
  state.counters["read_GBps"] = event.k_bytes() / median(reads) / 1e9;
  state.counters["moved_MB"] = event.moved_bytes() / 1e6;
  state.counters["floor_ratio"] = median(ratios);
}

BENCHMARK(boundary_event)
    ->ArgNames({"dtype", "token_major", "form"})
    ->ArgsProduct({{0, 1, 2}, {0, 1}, {2}})
    ->Args({2, 0, 1})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace growpage
