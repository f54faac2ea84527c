// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/device_array.hpp"
#include "growpage/core/cache_shape.hpp"
#include "growpage/core/dtype.hpp"
#include "growpage/demand/demand.hpp"
#include "growpage/demand/query_summary.hpp"
#include "growpage/demand/rope.hpp"
#include "growpage/retention/retention.hpp"
#include "support/catch.hpp"
#include "support/random_cache.hpp"

namespace growpage::test {

struct BoundarySpec {
  CacheShape shape{.layers = 2, .query_heads = 4, .kv_heads = 2, .head_dim = 64, .page_size = 16};
  DType dtype = DType::bf16;
  Arrangement arrangement = Arrangement::hnd;
  std::vector<std::int32_t> slots = {64};  ///< [request]
  std::int32_t rotary_dim = 0;
  RopePairing pairing = RopePairing::half_split;
  bool rope_tables = false;
  SummaryOptions::Storage storage = SummaryOptions::Storage::f32;
  std::int32_t window = 0;
  std::int64_t steps = 6;
  std::int64_t position = 300;  ///< of the first request; others follow 7 apart
  double key_scale = 1.0;
  double query_scale = 1.0;
  std::uint64_t seed = 1;
};

struct BoundaryCall {
  DemandOptions demand;  ///< its layer_mask is replaced by the one below
  RetentionOptions retention;
  float softmax_scale = 0.0F;
  std::vector<std::uint8_t> layer_mask;
  std::int32_t candidates = -1;  ///< −1 = all pages but the newest
  bool scores = true;
  bool sums = true;
  enum class Old { none, separate, in_place } old = Old::none;
  std::int64_t wave_bytes = 0;  ///< 0 = the usual
};

/// Random summaries and windows, and rotary parameters, on the host and on the device.
class BoundaryState {
 public:
  BoundaryState(const BoundarySpec& spec, Random& random) : spec_(spec) {
    make_summaries(random);
    make_rope();
  }

  [[nodiscard]] static std::int32_t summary_slot(std::int32_t request) {
    return (request * 3 + 2) % slots;
  }
  [[nodiscard]] std::size_t summary_size() const { return floats_.size(); }
  /// Replaces the short and long summaries (f32 storage); the latest queries get RMS 1.
  void set_summaries(const std::vector<float>& values) {
    REQUIRE(values.size() == floats_.size());
    floats_ = values;
    std::fill(rms_.begin(), rms_.end(), 1.0F);
    floats_device_->upload(floats_);
    rms_device_->upload(rms_);
  }

  [[nodiscard]] SummaryView summaries(bool device) {
    SummaryView view;
    const bool half = spec_.storage != SummaryOptions::Storage::f32;
    if (device) {
      view.summaries = half ? static_cast<void*>(halves_device_->get()) : floats_device_->get();
    } else {
      view.summaries = half ? static_cast<void*>(halves_.data()) : floats_.data();
    }
    view.query_rms = device ? rms_device_->get() : rms_.data();
    if (spec_.window > 0) view.window = device ? window_device_->get() : window_.data();
    view.steps = device ? steps_device_->get() : steps_.data();
    view.storage = spec_.storage;
    view.layers = spec_.shape.layers;
    view.slots = slots;
    view.query_heads = spec_.shape.query_heads;
    view.head_dim = spec_.shape.head_dim;
    view.window_size = spec_.window;
    return view;
  }
  [[nodiscard]] RopeParams rope(bool device) const {
    RopeParams params;
    params.rotary_dim = spec_.rotary_dim;
    params.pairing = spec_.pairing;
    params.attention_scale = spec_.rope_tables ? 1.25F : 1.0F;
    params.inv_freq = device ? rope_device_[0]->get() : inv_freq_.data();
    if (!spec_.rope_tables) return params;
    params.inv_freq = nullptr;
    params.cos_table = device ? rope_device_[1]->get() : cos_.data();
    params.sin_table = device ? rope_device_[2]->get() : sin_.data();
    params.max_position = last_position() + 1;
    return params;
  }

 private:
  static constexpr std::int32_t slots = 7;

  [[nodiscard]] std::int64_t last_position() const {
    return spec_.position + 7 * static_cast<std::int64_t>(spec_.slots.size());
  }
  std::vector<float> normals(Random& random, std::int64_t count) const {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& x : values) x = static_cast<float>(spec_.query_scale * random.normal());
    return values;
  }
  void make_summaries(Random& random) {
    const CacheShape& s = spec_.shape;
    const std::int64_t state = std::int64_t{s.layers} * slots;
    const std::int64_t query = std::int64_t{s.query_heads} * s.head_dim;
    floats_ = normals(random, state * 2 * query);
    for (const float x : floats_) halves_.push_back(Float16::from_float(x));
    rms_ = normals(random, state * s.query_heads);
    for (float& x : rms_) x = std::abs(x) + 0.1F * static_cast<float>(spec_.query_scale);
    window_ = normals(random, state * spec_.window * query);
    steps_.assign(static_cast<std::size_t>(state), spec_.steps);
    floats_device_ = std::make_unique<DeviceArray<float>>(floats_);
    halves_device_ = std::make_unique<DeviceArray<Float16>>(halves_);
    rms_device_ = std::make_unique<DeviceArray<float>>(rms_);
    window_device_ = std::make_unique<DeviceArray<float>>(window_);
    steps_device_ = std::make_unique<DeviceArray<std::int64_t>>(steps_);
  }
  void make_rope() {
    const std::int32_t half = spec_.rotary_dim / 2;
    for (std::int32_t i = 0; i < half; ++i) {
      inv_freq_.push_back(static_cast<float>(std::pow(1e4, -static_cast<double>(i) / half)));
    }
    for (std::int64_t at = 0; spec_.rope_tables && at <= last_position(); ++at) {
      for (const float frequency : inv_freq_) {
        const double angle = static_cast<double>(at) * static_cast<double>(frequency);
        cos_.push_back(static_cast<float>(std::cos(angle)));
        sin_.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    for (const auto* values : {&inv_freq_, &cos_, &sin_}) {
      rope_device_.push_back(std::make_unique<DeviceArray<float>>(*values));
    }
  }

  BoundarySpec spec_;
  std::vector<float> floats_, rms_, window_, inv_freq_, cos_, sin_;
  std::vector<Float16> halves_;
  std::vector<std::int64_t> steps_;
  std::unique_ptr<DeviceArray<float>> floats_device_, rms_device_, window_device_;
  std::unique_ptr<DeviceArray<Float16>> halves_device_;
  std::unique_ptr<DeviceArray<std::int64_t>> steps_device_;
  std::vector<std::unique_ptr<DeviceArray<float>>> rope_device_;
};

}  // namespace growpage::test
