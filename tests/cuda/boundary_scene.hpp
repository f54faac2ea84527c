// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "cuda/boundary_state.hpp"
#include "cuda/device_array.hpp"
#include "cuda/mirrored_tensor.hpp"
#include "growpage/backend/cpu.hpp"
#include "growpage/backend/cuda/boundary.hpp"
#include "support/catch.hpp"
#include "support/random_cache.hpp"

namespace growpage::test {

struct BoundaryOutcome {
  std::vector<float> scores;        ///< [request, layer, kv_head, score_stride]
  std::vector<std::uint64_t> sums;  ///< [request, 2]
};

/// A batch of requests with random keys, summaries and windows, on the device and on the host.
/// Slots that are not used are NaN, and block table entries that are not used lead nowhere.
class BoundaryScene {
 public:
  explicit BoundaryScene(const BoundarySpec& scene_spec)
      : spec(scene_spec),
        max_slots_(*std::max_element(spec.slots.begin(), spec.slots.end())),
        table_stride_((max_slots_ + spec.shape.page_size - 1) / spec.shape.page_size + 1),
        random_(spec.seed) {
    make_table();
    k_ = std::make_unique<MirroredTensor>(spec.shape, pool_, spec.shape.head_dim, spec.dtype,
                                          spec.arrangement, random_);
    fill_keys();
    state_ = std::make_unique<BoundaryState>(spec, random_);
    make_old_scores();
  }

  [[nodiscard]] std::int32_t requests() const {
    return static_cast<std::int32_t>(spec.slots.size());
  }
  [[nodiscard]] std::int32_t rows() const { return spec.shape.layers * spec.shape.kv_heads; }
  [[nodiscard]] std::int64_t score_stride() const { return max_slots_ + 3; }
  [[nodiscard]] std::int64_t request_stride() const { return rows() * score_stride() + 5; }
  /// What is in scores that nobody writes.
  static constexpr float untouched = -7.0F;
  /// What is in old scores behind a request's old slots: it would win.
  static constexpr float not_old = 1e6F;

  /// Calls f(layer, kv_head, request, slot, key row on the host, of spec.dtype), then uploads.
  template <class F>
  void edit_keys(F&& f) {
    const KvTensor k = k_->host();
    for (std::int32_t r = 0; r < requests(); ++r) {
      for (std::int32_t s = 0; s < spec.slots[index(r)]; ++s) {
        const PageId page{table_[index(r * table_stride_ + s / spec.shape.page_size)]};
        for (std::int32_t row = 0; row < rows(); ++row) {
          const std::int32_t l = row / spec.shape.kv_heads;
          const std::int32_t h = row % spec.shape.kv_heads;
          f(l, h, r, s, k.row(l, page, h, s % spec.shape.page_size));
        }
      }
    }
    k_->upload();
  }
  [[nodiscard]] BoundaryState& state() { return *state_; }

  [[nodiscard]] std::int32_t candidates(const BoundaryCall& call, std::int32_t request) const {
    const std::int32_t n = spec.slots[index(request)];
    if (call.candidates >= 0) return std::min(call.candidates, n);
    return n > 0 ? (n - 1) / spec.shape.page_size * spec.shape.page_size : 0;
  }
  [[nodiscard]] std::int32_t old_slots(std::int32_t request) const {
    return std::max(spec.slots[index(request)] - 5, 0);
  }

  /// What the device answers.
  [[nodiscard]] BoundaryOutcome device(const BoundaryCall& call) {
    std::vector<cuda::BoundaryRequest> inputs;
    for (std::int32_t r = 0; r < requests(); ++r) {
      inputs.push_back({spec.slots[index(r)], candidates(call, r), BoundaryState::summary_slot(r),
                        old_slots(r), spec.position + 7 * r});
    }
    const DeviceArray<cuda::BoundaryRequest> device_inputs(inputs);
    const DeviceArray<std::int32_t> table(table_);
    const DeviceArray<std::uint8_t> mask(call.layer_mask);
    const DeviceArray<float> old(old_);
    const bool in_place = call.old == BoundaryCall::Old::in_place;
    const DeviceArray<float> scores(in_place ? old_ : std::vector<float>(old_.size(), untouched));
    const DeviceArray<std::uint64_t> sums(std::vector<std::uint64_t>(index(2 * requests()), 99));
    cuda::BoundaryBatch batch;
    batch.shape = spec.shape;
    batch.kv.k = k_->device();
    batch.summaries = state_->summaries(true);
    batch.rope = state_->rope(true);
    batch.demand = call.demand;
    batch.demand.layer_mask = call.layer_mask.empty() ? nullptr : mask.get();
    batch.retention = call.retention;
    batch.softmax_scale = call.softmax_scale;
    batch.requests = requests();
    batch.max_slots = max_slots_;
    batch.inputs = device_inputs.get();
    batch.block_table = table.get();
    batch.block_table_stride = table_stride_;
    batch.scores = call.scores ? scores.get() : nullptr;
    batch.score_stride = score_stride();
    batch.score_request_stride = request_stride();
    batch.old_scores = call.old == BoundaryCall::Old::none ? nullptr
                       : in_place                          ? scores.get()
                                                           : old.get();
    batch.sums = call.sums ? sums.get() : nullptr;
    const bool window = call.retention.score == ScoreKind::window;
    const std::int64_t bytes = cuda::boundary_workspace_bytes(spec.shape, requests(), max_slots_,
                                                              window ? call.retention.window : 0);
    constexpr std::size_t guard = 256;
    const DeviceArray<std::byte> workspace(
        std::vector<std::byte>(static_cast<std::size_t>(bytes) + guard, std::byte{0xff}));
    const Status status = call.wave_bytes > 0 ? cuda::detail::boundary_pass_within(
                                                    batch, call.wave_bytes, workspace.get(), {})
                                              : cuda::boundary_pass(batch, workspace.get(), {});
    INFO(status.message());
    REQUIRE(status.ok());
    const std::vector<std::byte> after = workspace.download();
    CHECK(std::all_of(after.end() - guard, after.end(),
                      [](std::byte b) { return b == std::byte{0xff}; }));
    return {scores.download(), sums.download()};
  }

  /// What the scalar CPU backend answers for one request, D_p taken at `p`.
  struct Oracle {
    std::vector<float> scores;  ///< [layer, kv_head, score_stride]
    Demand demand;
  };
  [[nodiscard]] Oracle oracle(const BoundaryCall& call, std::int32_t request, float p) {
    CpuBackend backend({}, CpuBackend::Isa::scalar);
    const auto first = old_.begin() + request * request_stride();
    std::vector<float> old(first, first + rows() * score_stride());
    Oracle out;
    out.scores.assign(old.size(), untouched);
    std::vector<PageId> pages;
    for (std::int32_t i = 0; i < table_stride_; ++i) {
      pages.push_back(PageId{table_[index(request * table_stride_ + i)]});
    }
    BoundaryPass pass;
    pass.shape = spec.shape;
    pass.kv.k = k_->host();
    pass.summaries = state_->summaries(false);
    pass.rope = state_->rope(false);
    pass.demand = call.demand;
    pass.demand.p = p;
    pass.demand.layer_mask = call.layer_mask.empty() ? nullptr : call.layer_mask.data();
    pass.retention = call.retention;
    pass.softmax_scale = call.softmax_scale;
    pass.input = {pages.data(), spec.slots[index(request)], candidates(call, request),
                  BoundaryState::summary_slot(request), spec.position + 7 * request};
    pass.scores = call.scores ? out.scores.data() : nullptr;
    pass.score_stride = score_stride();
    pass.old_scores = call.old == BoundaryCall::Old::none ? nullptr : old.data();
    pass.old_slots = old_slots(request);
    pass.result = call.sums ? &out.demand : nullptr;
    std::vector<std::byte> workspace(
        static_cast<std::size_t>(backend.workspace_bytes(spec.shape, max_slots_)));
    if (pass.input.slots > 0) backend.boundary_pass(pass, workspace.data());
    return out;
  }

  BoundarySpec spec;

 private:
  template <class I>
  static std::size_t index(I i) {
    return static_cast<std::size_t>(i);
  }

  void make_table() {
    const std::int32_t b = spec.shape.page_size;
    for (const std::int32_t n : spec.slots) pool_ += (n + b - 1) / b;
    pool_ += 2;  // pages of nobody
    std::vector<std::int32_t> ids(index(pool_));
    std::iota(ids.begin(), ids.end(), 0);
    random_.shuffle(ids);
    table_.assign(index(requests() * table_stride_), -1'000'000);
    std::size_t next = 0;
    for (std::int32_t r = 0; r < requests(); ++r) {
      for (std::int32_t p = 0; p * b < spec.slots[index(r)]; ++p) {
        table_[index(r * table_stride_ + p)] = ids[next++];
      }
    }
  }
  void fill_keys() {
    const KvTensor k = k_->host();
    const std::int32_t dim = spec.shape.head_dim;
    for (std::int32_t page = 0; page < pool_; ++page) {
      for (std::int32_t row = 0; row < rows() * spec.shape.page_size; ++row) {
        const std::int32_t head = row / spec.shape.page_size;
        void* key = k.row(head / spec.shape.kv_heads, PageId{page}, head % spec.shape.kv_heads,
                          row % spec.shape.page_size);
        for (std::int32_t i = 0; i < dim; ++i) {
          store_element(key, spec.dtype, i, std::numeric_limits<float>::quiet_NaN());
        }
      }
    }
    edit_keys([&](std::int32_t, std::int32_t, std::int32_t, std::int32_t, void* key) {
      for (std::int32_t i = 0; i < dim; ++i) {
        store_element(key, spec.dtype, i, static_cast<float>(spec.key_scale * random_.normal()));
      }
    });
  }
  void make_old_scores() {
    old_.assign(index(requests() * request_stride()), not_old);
    for (std::int32_t r = 0; r < requests(); ++r) {
      for (std::int32_t row = 0; row < rows(); ++row) {
        for (std::int32_t s = 0; s < old_slots(r); ++s) {
          old_[index(r * request_stride() + row * score_stride() + s)] =
              static_cast<float>(0.1 * random_.uniform());
        }
      }
    }
  }

  std::int32_t max_slots_;
  std::int64_t table_stride_;
  Random random_;
  std::int32_t pool_ = 0;
  std::vector<std::int32_t> table_;
  std::unique_ptr<MirroredTensor> k_;
  std::unique_ptr<BoundaryState> state_;
  std::vector<float> old_;
};

}  // namespace growpage::test
