// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>

#include "growpage/core/cache_shape.hpp"
#include "growpage/demand/demand.hpp"
#include "growpage/demand/query_summary.hpp"
#include "growpage/demand/rope.hpp"
#include "growpage/retention/retention.hpp"
#include "support/catch.hpp"

namespace growpage {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Every refusal says which argument, what it was, what is allowed.
void refused(const Status& s, const std::string& argument, const std::string& value) {
  CAPTURE(argument, s.message());
  CHECK(s == StatusCode::invalid_argument);
  REQUIRE(s.detail() != nullptr);
  CHECK(s.detail()->argument == argument);
  CHECK(s.detail()->value == value);
  CHECK_FALSE(s.detail()->allowed.empty());
}

CacheShape heads(std::int32_t query, std::int32_t kv) {
  return {.layers = 1, .query_heads = query, .kv_heads = kv, .head_dim = 128};
}

TEST_CASE("CacheShape: head counts of real models, and one that does not divide") {
  CHECK(heads(28, 4).validate().ok());
  CHECK(heads(28, 4).group() == 7);
  CHECK(heads(32, 8).validate().ok());
  CHECK(heads(32, 8).group() == 4);
  CHECK(heads(12, 12).validate().ok());
  CHECK(heads(12, 12).group() == 1);
  CHECK(heads(71, 1).validate().ok());
  const Status s = heads(3, 2).validate();
  refused(s, "CacheShape::query_heads", "3");
  CHECK(s.detail()->allowed.find("kv_heads (2)") != std::string::npos);
  refused(heads(4, 8).validate(), "CacheShape::query_heads", "4");
}

TEST_CASE("CacheShape: ranges") {
  const auto with = [](auto member, std::int32_t value) {
    CacheShape shape = heads(8, 2);
    shape.*member = value;
    return shape.validate();
  };
  refused(with(&CacheShape::layers, 0), "CacheShape::layers", "0");
  refused(with(&CacheShape::kv_heads, 0), "CacheShape::kv_heads", "0");
  refused(with(&CacheShape::kv_heads, -2), "CacheShape::kv_heads", "-2");
  refused(with(&CacheShape::query_heads, 0), "CacheShape::query_heads", "0");
  refused(with(&CacheShape::head_dim, 0), "CacheShape::head_dim", "0");
  refused(with(&CacheShape::value_dim, -1), "CacheShape::value_dim", "-1");
  for (const std::int32_t page : {0, -16, 1, 8, 15, 17, 24, 255, 257}) {
    refused(with(&CacheShape::page_size, page), "CacheShape::page_size", std::to_string(page));
  }
  for (const std::int32_t page : {16, 32, 64, 128, 256, 512, 1024}) {
    CHECK(with(&CacheShape::page_size, page).ok());
  }
  CHECK(heads(8, 2).page_size == 256);
  CHECK(heads(8, 2).v_dim() == 128);
  CacheShape latent = heads(8, 1);
  latent.value_dim = 512;
  CHECK(latent.v_dim() == 512);
}

TEST_CASE("SummaryOptions: 0 ≤ βS < βL < 1, no bf16") {
  CHECK(SummaryOptions{}.validate(256).ok());
  CHECK(SummaryOptions{}.beta_short == 0.9F);
  CHECK(SummaryOptions{}.beta_long == 0.0F);
  CHECK(SummaryOptions{}.slots == 512);
  const auto betas = [](float s, float l) {
    SummaryOptions o;
    o.beta_short = s;
    o.beta_long = l;
    return o.validate(256);
  };
  CHECK(betas(0.0F, 0.5F).ok());
  CHECK(betas(0.0F, 0.9999F).ok());
  refused(betas(0.9F, 0.5F), "SummaryOptions::beta_long", "0.5");
  refused(betas(0.5F, 0.5F), "SummaryOptions::beta_long", "0.5");
  refused(betas(0.5F, 1.0F), "SummaryOptions::beta_long", "1");
  refused(betas(-0.5F, 0.5F), "SummaryOptions::beta_short", "-0.5");
  refused(betas(1.0F, 2.0F), "SummaryOptions::beta_short", "1");
  CHECK_FALSE(betas(nan, 0.5F).ok());
  CHECK_FALSE(betas(0.5F, nan).ok());

  SummaryOptions o;
  o.storage = SummaryOptions::Storage::f16_stochastic;
  CHECK(o.validate(256).ok());
  o.storage = SummaryOptions::Storage::bf16;
  refused(o.validate(256), "SummaryOptions::storage", "bf16");
  CHECK(o.validate(256).detail()->allowed.find("half an ulp") != std::string::npos);
  o = {};
  o.slots = 0;
  refused(o.validate(256), "SummaryOptions::slots", "0");
  o = {};
  o.window = -1;
  refused(o.validate(256), "SummaryOptions::window", "-1");
}

TEST_CASE("SummaryOptions: the long summary remembers as many pages whatever their size") {
  SummaryOptions o;
  CHECK(o.for_page_size(16).beta_long == 0.984F);
  CHECK(o.for_page_size(64).beta_long == 0.996F);
  CHECK(o.for_page_size(256).beta_long == 0.999F);
  CHECK(o.for_page_size(1 << 20).beta_long < 1.0F);
  CHECK(o.validate(1 << 20).ok());
  CHECK(o.for_page_size(16).for_page_size(256).beta_long == 0.984F);
  o.beta_long = 0.95F;
  CHECK(o.for_page_size(16).beta_long == 0.95F);

  o = {.beta_short = 0.99F};
  CHECK(o.validate(256).ok());
  refused(o.validate(16), "SummaryOptions::beta_long", "0.984000027179718");  // 0.984F
  CHECK(o.validate(16).detail()->allowed == "beta_short < beta_long < 1 (0 = 1 − 0.256/page_size)");
}

TEST_CASE("summary_bytes: [layer, slot, 2, q_head, dim] and its companions") {
  const CacheShape shape{.layers = 3, .query_heads = 8, .kv_heads = 2, .head_dim = 64};
  SummaryOptions o;
  o.slots = 5;
  o.window = 16;
  const SummaryBytes f32 = summary_bytes(shape, o);
  CHECK(f32.summaries == 3 * 5 * 2 * 8 * 64 * 4);
  CHECK(f32.query_rms == 3 * 5 * 8 * 4);
  CHECK(f32.window == 3 * 5 * 16 * 8 * 64 * 4);
  CHECK(f32.steps == 3 * 5 * 8);
  o.storage = SummaryOptions::Storage::f16_stochastic;
  o.window = 0;
  CHECK(summary_bytes(shape, o).summaries == 3 * 5 * 2 * 8 * 64 * 2);
  CHECK(summary_bytes(shape, o).window == 0);
  // Beyond 2^31 bytes.
  const CacheShape big{.layers = 128, .query_heads = 128, .kv_heads = 8, .head_dim = 256};
  o.slots = 4096;
  CHECK(summary_bytes(big, o).summaries == 128LL * 4096 * 2 * 128 * 256 * 2);
}

TEST_CASE("SummaryView: index of [layer, slot, which, q_head]") {
  SummaryView v;
  v.layers = 3;
  v.slots = 5;
  v.query_heads = 8;
  v.head_dim = 64;
  CHECK(v.index(2, 4, 1, 7) == (((2 * 5 + 4) * 2 + 1) * 8 + 7) * 64);
  CHECK(v.row(2, 4) == 14);
}

TEST_CASE("DemandOptions: 0 < p ≤ 1") {
  CHECK(DemandOptions{}.validate().ok());
  CHECK(DemandOptions{}.p == 0.99F);
  const auto p = [](float value) {
    DemandOptions o;
    o.p = value;
    return o.validate();
  };
  CHECK(p(1.0F).ok());
  CHECK(p(1e-6F).ok());
  refused(p(0.0F), "DemandOptions::p", "0");
  refused(p(1.5F), "DemandOptions::p", "1.5");
  refused(p(-0.5F), "DemandOptions::p", "-0.5");
  CHECK_FALSE(p(nan).ok());
}

TEST_CASE("Demand: Δ is the difference of the means, 0 when nothing was measured") {
  CHECK(Demand{}.delta() == 0.0);
  const Demand d{3.0, 1.0, 4};
  CHECK(d.short_ratio() == 0.75);
  CHECK(d.long_ratio() == 0.25);
  CHECK(d.delta() == 0.5);
}

TEST_CASE("RopeParams: dims, and one source of angles") {
  const float table[4] = {};
  RopeParams rope;
  CHECK(rope.validate(64).ok());  // no rotation needs no angles
  rope.rotary_dim = 64;
  refused(rope.validate(64), "RopeParams::inv_freq", "null");
  rope.inv_freq = table;
  CHECK(rope.validate(64).ok());
  CHECK(rope.validate(128).ok());
  refused(rope.validate(32), "RopeParams::rotary_dim", "64");
  rope.rotary_dim = 3;
  refused(rope.validate(64), "RopeParams::rotary_dim", "3");
  rope.rotary_dim = -2;
  refused(rope.validate(64), "RopeParams::rotary_dim", "-2");
  rope.rotary_dim = 2;
  rope.cos_table = table;
  CHECK(rope.validate(64).detail()->argument == "RopeParams::cos_table");
  rope.sin_table = table;
  refused(rope.validate(64), "RopeParams::max_position", "0");
  rope.max_position = 2;
  CHECK(rope.validate(64).ok());
  rope.attention_scale = std::numeric_limits<float>::infinity();
  CHECK(rope.validate(64).detail()->argument == "RopeParams::attention_scale");
}

TEST_CASE("RetentionOptions: ranges") {
  CHECK(RetentionOptions{}.validate(256).ok());
  CHECK(RetentionOptions{}.validate(16).ok());
  const auto with = [](auto member, auto value) {
    RetentionOptions o;
    o.*member = value;
    return o.validate(32);
  };
  refused(with(&RetentionOptions::recent, 33), "RetentionOptions::recent", "33");
  refused(with(&RetentionOptions::recent, -1), "RetentionOptions::recent", "-1");
  CHECK(with(&RetentionOptions::recent, 0).ok());
  refused(with(&RetentionOptions::local_per_256, 257), "RetentionOptions::local_per_256", "257");
  refused(with(&RetentionOptions::sinks, 33), "RetentionOptions::sinks", "33");
  refused(with(&RetentionOptions::window, 0), "RetentionOptions::window", "0");
  refused(with(&RetentionOptions::max_pool, 4), "RetentionOptions::max_pool", "4");
  refused(with(&RetentionOptions::max_pool, -3), "RetentionOptions::max_pool", "-3");
  CHECK(with(&RetentionOptions::max_pool, 5).ok());
  refused(with(&RetentionOptions::global_decay, 1.5F), "RetentionOptions::global_decay", "1.5");
  CHECK_FALSE(with(&RetentionOptions::global_decay, nan).ok());
  refused(with(&RetentionOptions::redundancy_weight, -0.5F), "RetentionOptions::redundancy_weight",
          "-0.5");
  refused(with(&RetentionOptions::redundancy_temperature, 0.0F),
          "RetentionOptions::redundancy_temperature", "0");
}

TEST_CASE("RetentionOptions: the local quota scales with the page") {
  RetentionOptions o;
  CHECK(o.local_quota(256) == 64);
  CHECK(o.local_quota(512) == 128);
  CHECK(o.local_quota(16) == 4);
  o.local_per_256 = 8;
  CHECK(o.local_quota(16) == 1);  // at least one
  o.local_per_256 = 0;
  CHECK(o.local_quota(256) == 0);
}

}  // namespace
}  // namespace growpage
