// SPDX-License-Identifier: Apache-2.0
#include "kernel_signal.hpp"

#include <algorithm>
#include <chrono>

#include "growpage/schedule/execute.hpp"

namespace growpage::replay {
namespace {

constexpr std::size_t batch_rows = 256;  // rows made and written at a time

/// Adds the time `work` takes to `seconds`.
template <class F>
auto timed(double& seconds, F&& work) {
  const auto start = std::chrono::steady_clock::now();
  auto result = work();
  seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

void to_bf16(const std::vector<float>& from, std::size_t count, std::vector<BFloat16>& to) {
  std::transform(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count), to.begin(),
                 BFloat16::from_float);
}

/// Elements of one row of `heads` heads of `dim`.
std::size_t row_size(std::int32_t heads, std::int32_t dim) {
  return static_cast<std::size_t>(heads) * static_cast<std::size_t>(dim);
}

}  // namespace

static_assert(Signal<KernelSignal>);

KernelSignal::KernelSignal(Cache& cache, const TensorGenerator& generator)
    : cache_(&cache), generator_(&generator) {
  const CacheShape& shape = cache.shape();
  k_.resize(batch_rows * row_size(shape.kv_heads, shape.head_dim));
  v_.resize(batch_rows * row_size(shape.kv_heads, shape.v_dim()));
  k_rows_.resize(k_.size());
  v_rows_.resize(v_.size());
}

Status KernelSignal::before_forward(const StepPlan& plan, std::vector<FenceId>& fences) {
  seconds_ = 0;
  return timed(seconds_, [&] { return run_before_forward(*cache_, plan, fences); });
}

Status KernelSignal::forward(const StepPlan& plan, const TextOf& text) {
  rows_.clear();
  slots_.clear();
  queries_.clear();
  entries_.clear();
  for (const PrefillChunk& chunk : plan.prefills) {
    const std::span<const TokenId> tokens = text(chunk.request);
    for (std::int32_t i = 0; i < chunk.tokens; ++i) {
      const std::int64_t position = chunk.first_position + i;
      rows_.push_back({tokens[static_cast<std::size_t>(position)], position, chunk.tag});
      slots_.push_back(cache_->physical_slot(chunk.sequence, chunk.first_slot + i));
    }
    if (!chunk.summary.valid()) continue;
    queries_.push_back(rows_.back());
    entries_.push_back({chunk.summary.value, 1});
  }
  for (const DecodeItem& item : plan.decodes) {
    rows_.push_back({item.token, item.position, item.tag});
    slots_.push_back(item.slot);
    queries_.push_back(rows_.back());
    entries_.push_back({item.summary.value, item.summary_first ? 1 : 0});
  }
  if (Status s = write_rows(); !s.ok()) return s;
  return update_summaries();
}

Status KernelSignal::write_rows() {
  const CacheShape& shape = cache_->shape();
  const std::size_t k_row = row_size(shape.kv_heads, shape.head_dim);
  const std::size_t v_row = row_size(shape.kv_heads, shape.v_dim());
  for (std::size_t first = 0; first < rows_.size(); first += batch_rows) {
    const std::size_t count = std::min(batch_rows, rows_.size() - first);
    const std::span slots(slots_.data() + first, count);
    for (std::int32_t layer = 0; layer < shape.layers; ++layer) {
      for (std::size_t i = 0; i < count; ++i) {
        const Row& row = rows_[first + i];
        generator_->key_value(row.token, row.position, layer, &k_[i * k_row], &v_[i * v_row]);
      }
      to_bf16(k_, count * k_row, k_rows_);
      to_bf16(v_, count * v_row, v_rows_);
      Status s = timed(seconds_, [&] {
        return cache_->append_kv(layer, slots, k_rows_.data(), v_rows_.data());
      });
      if (!s.ok()) return s;
    }
  }
  return {};
}

Status KernelSignal::update_summaries() {
  if (entries_.empty()) return {};
  const CacheShape& shape = cache_->shape();
  const std::size_t q_row = row_size(shape.query_heads, shape.head_dim);
  q_.resize(static_cast<std::size_t>(shape.layers) * queries_.size() * q_row);
  float* q = q_.data();
  for (std::int32_t layer = 0; layer < shape.layers; ++layer) {
    for (const Row& row : queries_) {
      generator_->query(row.tag, row.position, layer, q);
      q += q_row;
    }
  }
  return timed(seconds_,
               [&] { return cache_->update_summaries(entries_, {q_.data()}, 0, shape.layers); });
}

Status KernelSignal::after_forward(const StepPlan& plan, std::vector<MeasuredDemand>& demand) {
  return timed(seconds_, [&] { return run_after_forward(*cache_, plan, demand); });
}

}  // namespace growpage::replay
