// SPDX-License-Identifier: Apache-2.0
#include "event.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

namespace growpage::bench {
namespace {

/// Normally distributed bf16, bits.
std::vector<std::uint16_t> random_bf16(std::size_t n) {
  std::mt19937_64 engine(1);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> out(n);
  for (auto& x : out)
    x = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(engine)) >> 16);
  return out;
}
std::vector<float> random_floats(std::size_t n) {
  std::mt19937_64 engine(2);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& x : out) x = normal(engine);
  return out;
}

/// Pages for K and V, at most what four fifths of the free memory hold.
std::int64_t pool_size(const CacheShape& shape, std::int64_t wanted) {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const std::int64_t page =
      std::int64_t{shape.layers} * shape.kv_heads * shape.page_size * shape.head_dim * 2 * 2;
  return std::min(wanted, static_cast<std::int64_t>(free) / 5 * 4 / page);
}

template <class T, class F>
std::vector<T> made(std::int64_t n, F&& f) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(f(i));
  return values;
}

}  // namespace

Event::Event(const CacheShape& shape, std::int32_t requests, std::int32_t slots)
    : shape_(shape),
      requests_(requests),
      slots_(slots),
      pages_(slots / shape.page_size),
      pool_(pool_size(shape, std::int64_t{requests} * pages_)),
      k_(pool_ * shape.layers * page_elements()),
      v_(pool_ * shape.layers * page_elements()),
      q_(shape.layers * requests * query()),
      summary_(std::int64_t{shape.layers} * summary_slots * 2 * query()),
      rms_(std::vector<float>(
          static_cast<std::size_t>(shape.layers * summary_slots * shape.query_heads), 1.0F)),
      scores_(requests * rows() * slots),
      delta_(requests),
      steps_(std::vector<std::int64_t>(static_cast<std::size_t>(shape.layers * summary_slots), 9)),
      entries_(
          made<SummaryEntry>(std::int64_t{rounds} * requests,
                             [](std::int64_t i) {
                               return SummaryEntry{static_cast<std::int32_t>(i) % summary_slots, 0};
                             })),
      table_([&] {
        auto table = made<std::int32_t>(std::int64_t{requests} * pages_, [&](std::int64_t i) {
          return static_cast<std::int32_t>(i % pool_);
        });
        std::shuffle(table.begin(), table.end(), std::mt19937_64(3));
        return table;
      }()),
      page_kept_(std::int64_t{requests} * pages_),
      boundary_(made<cuda::BoundaryRequest>(requests,
                                            [&](std::int64_t r) {
                                              return cuda::BoundaryRequest{
                                                  slots, slots - shape.page_size,
                                                  static_cast<std::int32_t>(r), 0, 3 * slots};
                                            })),
      retention_(std::vector<cuda::RetentionRequest>(
          static_cast<std::size_t>(requests),
          cuda::RetentionRequest{slots, 0, slots - shape.page_size, 1})),
      marks_(std::vector<std::uint8_t>(static_cast<std::size_t>(requests * pages_), page_private)),
      sums_(2 * requests),
      bits_(requests * rows() * ((slots + 63) / 64)),
      plans_(requests),
      workspace_(cuda::boundary_workspace_bytes(shape, requests, slots, 0)) {
  const std::vector<std::uint16_t> block = random_bf16(std::size_t{1} << 22);
  k_.fill(block);
  v_.fill(block);
  q_.fill(block);
  summary_.fill(random_floats(std::size_t{1} << 20));
}

KvView Event::kv() const {
  const KvLayout layout = KvLayout::hnd(shape_, pool_, shape_.head_dim);
  return {{k_.get(), nullptr, layout, DType::bf16}, {v_.get(), nullptr, layout, DType::bf16}};
}

SummaryView Event::summaries() const {
  return {summary_.get(),
          rms_.get(),
          nullptr,
          steps_.get(),
          SummaryOptions::Storage::f32,
          shape_.layers,
          summary_slots,
          shape_.query_heads,
          shape_.head_dim,
          0};
}

void Event::update_summaries(std::int32_t round) {
  cuda::SummaryBatch batch;
  batch.state = summaries();
  batch.options.beta_long = 0.999F;
  batch.entries = entries_.get() + std::int64_t{round % rounds} * requests_;
  batch.requests = requests_;
  batch.layers = shape_.layers;
  batch.q = q_.get();
  batch.q_dtype = DType::bf16;
  batch.q_layer_stride = requests_ * query();
  batch.q_request_stride = query();
  batch.q_head_stride = shape_.head_dim;
  check(cuda::summary_update(batch, {}));
}

void Event::pass() {
  cuda::BoundaryBatch batch;
  batch.shape = shape_;
  batch.kv = kv();
  batch.summaries = summaries();
  batch.requests = requests_;
  batch.max_slots = slots_;
  batch.inputs = boundary_.get();
  batch.block_table = table_.get();
  batch.block_table_stride = pages_;
  batch.scores = scores_.get();
  batch.score_stride = slots_;
  batch.score_request_stride = rows() * slots_;
  batch.sums = sums_.get();
  check(cuda::boundary_pass(batch, workspace_.get(), {}));
  check(cuda::demand_delta(sums_.get(), rows(), delta_.get(), requests_, {}));
}

void Event::select() {
  cuda::SelectionBatch batch;
  batch.shape = shape_;
  batch.requests = requests_;
  batch.max_slots = slots_;
  batch.inputs = retention_.get();
  batch.scores = scores_.get();
  batch.score_stride = slots_;
  batch.score_request_stride = rows() * slots_;
  batch.marks = marks_.get();
  batch.mark_stride = pages_;
  batch.bits = bits_.get();
  batch.words = (slots_ + 63) / 64;
  batch.page_kept = page_kept_.get();
  batch.page_kept_stride = pages_;
  check(cuda::select(batch, {}));
}

void Event::plan() {
  check(cuda::plan_compaction(
      {shape_.page_size, CompactionStrategy::fill_holes, requests_, retention_.get(), marks_.get(),
       pages_, page_kept_.get(), pages_, plans_.get()},
      {}));
}

void Event::compact() {
  cuda::CompactionBatch batch;
  batch.shape = shape_;
  batch.kv = kv();
  batch.requests = requests_;
  batch.inputs = retention_.get();
  batch.plans = plans_.get();
  batch.block_table = table_.get();
  batch.block_table_stride = pages_;
  batch.marks = marks_.get();
  batch.mark_stride = pages_;
  batch.bits = bits_.get();
  batch.words = (slots_ + 63) / 64;
  check(cuda::compact(batch, {}));
}

double Event::k_bytes() const {
  return static_cast<double>(requests_) * static_cast<double>(rows()) * slots_ * shape_.head_dim *
         2;
}

double Event::score_bytes() const {
  return static_cast<double>(requests_) * static_cast<double>(rows()) * slots_ * 4;
}

double Event::moved_bytes() const {
  const std::vector<std::int32_t> kept = page_kept_.download();
  const std::vector<cuda::RequestPlan> plans = plans_.download();
  double moved = 0;
  for (std::int32_t r = 0; r < requests_; ++r) {
    const cuda::RequestPlan& plan = plans[static_cast<std::size_t>(r)];
    for (std::int32_t i = 0; i < plan.victims; ++i) {
      moved += kept[static_cast<std::size_t>(r * pages_ + plan.victim[i])];
    }
  }
  return moved * shape_.head_dim * 2 * 2 * 2;  // bf16, K and V, in and out
}

double Event::summary_bytes() const {
  // q once (bf16), both summaries in and out (f32).
  return static_cast<double>(requests_) * shape_.layers * static_cast<double>(query()) *
         (2 + 4 * 4);
}

}  // namespace growpage::bench
