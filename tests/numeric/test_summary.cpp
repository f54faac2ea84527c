// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "support/catch.hpp"
#include "support/random_cache.hpp"
#include "support/reference.hpp"
#include "support/reference_scene.hpp"

namespace growpage {
namespace {

using reference::Row;
using test::Random;
using test::SummaryState;
using Isa = CpuBackend::Isa;

/// Several slots of several layers fed with queries `[layer, request, q_head, dim]` in `q_dtype`,
/// spread out with gaps.
struct Feed {
  CacheShape shape{.layers = 3, .query_heads = 5, .kv_heads = 1, .head_dim = 24, .page_size = 16};
  SummaryOptions options{.beta_long = 0.999F, .slots = 6};
  DType q_dtype = DType::f32;

  [[nodiscard]] std::int64_t request_stride() const {
    return std::int64_t{shape.query_heads} * (shape.head_dim + 2) + 3;
  }

  void update(CpuBackend& backend, const SummaryView& state,
              const std::vector<SummaryEntry>& entries, std::int32_t first_layer,
              std::int32_t layers, const std::vector<float>& q) const {
    SummaryUpdate u;
    u.state = state;
    u.options = options;
    u.entries = entries.data();
    u.requests = static_cast<std::int32_t>(entries.size());
    u.first_layer = first_layer;
    u.layers = layers;
    u.q = q.data();
    u.q_dtype = q_dtype;
    u.q_head_stride = shape.head_dim + 2;
    u.q_request_stride = request_stride();
    u.q_layer_stride = request_stride() * u.requests + 1;
    backend.summary_update(u);
  }
  /// Room for all layers in any dtype, NaN in the gaps.
  [[nodiscard]] std::vector<float> room(std::int32_t requests) const {
    const std::int64_t n = (request_stride() * requests + 1) * shape.layers;
    return std::vector<float>(static_cast<std::size_t>(n), std::numeric_limits<float>::quiet_NaN());
  }
  /// Writes a query and returns what was stored.
  Row put(std::vector<float>& q, std::int32_t requests, std::int32_t layer, std::int32_t request,
          std::int32_t head, const Row& row) const {
    const std::int64_t at = layer * (request_stride() * requests + 1) + request * request_stride() +
                            head * (shape.head_dim + 2);
    Row stored;
    for (std::int32_t i = 0; i < shape.head_dim; ++i) {
      store_element(q.data(), q_dtype, at + i,
                    static_cast<float>(row[static_cast<std::size_t>(i)]));
      stored.push_back(load_element(q.data(), q_dtype, at + i));
    }
    return stored;
  }
};

TEST_CASE("summary_update: both EMAs of several slots, against the formula") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const DType q_dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  CAPTURE(static_cast<int>(isa), dtype_name(q_dtype));
  CpuBackend backend({}, isa);
  Feed feed;
  feed.q_dtype = q_dtype;
  SummaryState state(feed.shape, feed.options);
  Random random(7);

  const std::vector<std::int32_t> slots{4, 0, 3};
  const auto heads = static_cast<std::size_t>(feed.shape.query_heads);
  // [layer][request][head]
  std::vector<std::vector<test::Rows>> short_want(3, {3, test::Rows(heads)}),
      long_want = short_want, latest = short_want;
  for (int step = 0; step < 60; ++step) {
    std::vector<SummaryEntry> entries;
    // The third request starts over at step 30: its old contents are ignored.
    for (std::size_t r = 0; r < 3; ++r) {
      entries.push_back({slots[r], step == 0 || (r == 2 && step == 30) ? 1 : 0});
    }
    std::vector<float> q = feed.room(3);
    for (std::int32_t l = 0; l < 3; ++l) {
      for (std::int32_t r = 0; r < 3; ++r) {
        for (std::int32_t h = 0; h < feed.shape.query_heads; ++h) {
          const Row query = feed.put(q, 3, l, r, h, random.normal_row(feed.shape.head_dim, 2.0));
          Row& s = short_want[std::size_t(l)][std::size_t(r)][std::size_t(h)];
          Row& g = long_want[std::size_t(l)][std::size_t(r)][std::size_t(h)];
          latest[std::size_t(l)][std::size_t(r)][std::size_t(h)] = query;
          const bool first = entries[std::size_t(r)].first != 0;
          s = first ? query : reference::ema(s, query, double{feed.options.beta_short});
          g = first ? query : reference::ema(g, query, double{feed.options.beta_long});
        }
      }
    }
    feed.update(backend, state.view, entries, 0, 3, q);
  }
  double worst = 0;
  for (std::int32_t l = 0; l < 3; ++l) {
    for (std::int32_t r = 0; r < 3; ++r) {
      const std::int32_t slot = slots[std::size_t(r)];
      for (std::int32_t h = 0; h < feed.shape.query_heads; ++h) {
        const Row& s = short_want[std::size_t(l)][std::size_t(r)][std::size_t(h)];
        const Row& g = long_want[std::size_t(l)][std::size_t(r)][std::size_t(h)];
        worst = std::max(worst, reference::distance(state.summary(l, slot, 0, h), s, 0, 1e-5));
        worst = std::max(worst, reference::distance(state.summary(l, slot, 1, h), g, 0, 1e-5));
        const double rms = reference::rms(latest[std::size_t(l)][std::size_t(r)][std::size_t(h)]);
        const float got =
            state.view.query_rms[state.view.row(l, slot) * feed.shape.query_heads + h];
        worst = std::max(worst, std::abs(double{got} - rms) / (1e-5 * rms));
      }
      CHECK(state.view.steps[state.view.row(l, slot)] == (r == 2 ? 30 : 60));
    }
    // Slots nobody fed are as they were.
    CHECK(state.view.steps[state.view.row(l, 1)] == 77);
    CHECK(std::isnan(state.summary(l, 5, 1, 0)[0]));
  }
  CHECK(worst <= 1);
}

TEST_CASE("summary_update: layer by layer equals all layers at once, bit for bit") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const auto storage =
      GENERATE(SummaryOptions::Storage::f32, SummaryOptions::Storage::f16_stochastic);
  CAPTURE(static_cast<int>(isa), static_cast<int>(storage));
  Feed feed;
  feed.options.storage = storage;
  feed.options.seed = 11;
  SummaryState once(feed.shape, feed.options), apart(feed.shape, feed.options),
      threaded(feed.shape, feed.options);
  CpuBackend backend({}, isa);
  CpuBackend two(test::two_threads(), isa);
  Random random(8);
  for (int step = 0; step < 5; ++step) {
    const std::vector<SummaryEntry> entries{{1, step == 0}, {5, step == 0}};
    std::vector<float> q = feed.room(2);
    for (std::int32_t l = 0; l < 3; ++l) {
      for (std::int32_t r = 0; r < 2; ++r) {
        for (std::int32_t h = 0; h < feed.shape.query_heads; ++h) {
          feed.put(q, 2, l, r, h, random.normal_row(feed.shape.head_dim));
        }
      }
    }
    feed.update(backend, once.view, entries, 0, 3, q);
    feed.update(two, threaded.view, entries, 0, 3, q);
    for (std::int32_t l = 0; l < 3; ++l) {  // q then begins with the layer's own queries
      const auto begin = q.begin() + l * (feed.request_stride() * 2 + 1);
      feed.update(backend, apart.view, entries, l, 1, {begin, q.end()});
    }
  }
  CHECK(once.bytes() == apart.bytes());
  CHECK(once.bytes() == threaded.bytes());
}

TEST_CASE("summary_update: βS = 0 keeps the current query itself") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Feed feed;
  feed.options.beta_short = 0.0F;
  SummaryState state(feed.shape, feed.options);
  Random random(9);
  Row query;
  for (int step = 0; step < 4; ++step) {
    std::vector<float> q = feed.room(1);
    for (std::int32_t l = 0; l < 3; ++l) {
      for (std::int32_t h = 0; h < feed.shape.query_heads; ++h) {
        query = feed.put(q, 1, l, 0, h, random.normal_row(feed.shape.head_dim));
      }
    }
    feed.update(backend, state.view, {{2, step == 0}}, 0, 3, q);
  }
  CHECK(state.summary(2, 2, 0, feed.shape.query_heads - 1) == query);
  CHECK(state.summary(2, 2, 1, feed.shape.query_heads - 1) != query);
}

/// One layer, one slot, a constant query: the state after N steps has a closed form.
Row after(CpuBackend& backend, SummaryOptions options, std::int32_t dim, double start,
          double target, int steps, std::int32_t which, std::vector<std::byte>* bytes = nullptr) {
  Feed feed;
  feed.shape = {.layers = 1, .query_heads = 1, .kv_heads = 1, .head_dim = dim, .page_size = 16};
  feed.options = options;
  SummaryState state(feed.shape, options);
  std::vector<float> q = feed.room(1);
  feed.put(q, 1, 0, 0, 0, Row(static_cast<std::size_t>(dim), start));
  feed.update(backend, state.view, {{0, 1}}, 0, 1, q);
  feed.put(q, 1, 0, 0, 0, Row(static_cast<std::size_t>(dim), target));
  for (int i = 0; i < steps; ++i) feed.update(backend, state.view, {{0, 0}}, 0, 1, q);
  if (bytes != nullptr) *bytes = state.bytes();
  return state.summary(0, 0, which, 0);
}

double mean(const Row& x) {
  double sum = 0;
  for (const double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

TEST_CASE("summary_update: thousands of steps in f32 stay on the closed form") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  const SummaryOptions options{.beta_long = 0.999F, .slots = 1};
  const double beta = double{options.beta_long};
  for (const int steps : {1, 10, 1000, 5000}) {
    CAPTURE(steps);
    const double want = 3.0 + (1.0 - 3.0) * std::pow(beta, steps);
    // Rounding: at most half an ulp a step, remembered for about 1000 steps.
    CHECK(std::abs(after(backend, options, 4, 1.0, 3.0, steps, 1)[3] - want) < 2e-4);
  }
  CHECK(std::abs(after(backend, options, 4, 1.0, 3.0, 1, 0)[0] - 1.2) < 1e-6);
  CHECK(std::abs(after(backend, options, 4, 1.0, 3.0, 400, 0)[0] - 3.0) < 1e-5);
}

TEST_CASE("summary_update: f16 storage rounds up and down in proportion") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  SummaryOptions options{
      .beta_long = 0.999F, .slots = 1, .storage = SummaryOptions::Storage::f16_stochastic};
  constexpr std::int32_t dim = 4096;
  constexpr int seeds = 8;
  constexpr double ulp = 0x1p-10;  // of half precision in [1, 2)
  // One step of weight 0.001 from 1 towards 1 + x moves 0.001·x: 0.3 of an ulp.
  const double x = 0.3 * ulp / (1.0 - double{options.beta_long});
  std::int64_t up = 0;
  std::int64_t elsewhere = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    options.seed = static_cast<std::uint64_t>(seed);
    for (const double v : after(backend, options, dim, 1.0, 1.0 + x, 1, 1)) {
      up += v == 1.0 + ulp ? 1 : 0;
      elsewhere += v != 1.0 + ulp && v != 1.0 ? 1 : 0;
    }
  }
  CHECK(elsewhere == 0);
  // Six standard deviations of a binomial count.
  constexpr double n = dim * seeds;
  CHECK(std::abs(static_cast<double>(up) / n - 0.3) < 6 * std::sqrt(0.21 / n));
  // Values the storage holds exactly are not disturbed.
  CHECK(after(backend, options, 64, 0.5, 0.5, 20, 1) == Row(64, 0.5));
}

TEST_CASE("summary_update: f16 storage moves the long summary by steps far below its ulp") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  SummaryOptions options{
      .beta_long = 0.999F, .slots = 1, .storage = SummaryOptions::Storage::f16_stochastic};
  options.seed = 6;
  // 0.2 of an ulp a step at first: rounding to nearest would never leave 1.
  for (const double sign : {1.0, -1.0}) {
    CAPTURE(sign);
    const Row got = after(backend, options, 4096, sign, sign * 1.2, 1000, 1);
    const double want = sign * (1.2 - 0.2 * std::pow(double{options.beta_long}, 1000));
    CHECK(std::abs(mean(got) - want) < 2e-3);
  }
}

TEST_CASE("summary_update: stochastic rounding is a function of the seed") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  SummaryOptions options{
      .beta_long = 0.999F, .slots = 1, .storage = SummaryOptions::Storage::f16_stochastic};
  std::vector<std::byte> first, again, other;
  options.seed = 1;
  after(backend, options, 256, 1.0, 1.3, 20, 1, &first);
  after(backend, options, 256, 1.0, 1.3, 20, 1, &again);
  options.seed = 2;
  after(backend, options, 256, 1.0, 1.3, 20, 1, &other);
  CHECK(first == again);
  CHECK(first != other);
}

/// Bits of the halves, with all NaNs alike: which NaN comes out of arithmetic is not defined.
std::vector<std::uint16_t> canonical_halves(const SummaryState& state) {
  std::vector<Float16> halves(state.bytes().size() / sizeof(Float16));
  std::memcpy(halves.data(), state.bytes().data(), state.bytes().size());
  std::vector<std::uint16_t> bits;
  for (const Float16 half : halves) {
    bits.push_back(std::isnan(half.to_float()) ? std::uint16_t{0x7e00} : half.bits);
  }
  return bits;
}

/// Normal numbers of a scale, and what rounding has to look at twice: halves that are subnormal or
/// saturate, neighbours of powers of two, zeros.
float rounding_value(Random& random, bool nonfinite) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const float specials[] = {6e-8F, 3e-5F,  6.1e-5F, 6.10352e-5F, 65504.0F, 65519.0F, 7e4F,
                            3e38F, 1e-42F, 0.0F,    1.0F,        0.99951F, inf,      std::nanf("")};
  float value = static_cast<float>(random.normal() * 0.05);
  if (random.below(6) == 0) value = specials[random.below(nonfinite ? 14 : 12)];
  return random.below(2) == 0 ? value : -value;
}

TEST_CASE("summary_update: f16 storage has equal bits in the scalar and the SIMD form") {
  const DType q_dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  // 1 − 0.003 has more bits than a float.
  const float beta_short = GENERATE(0.9F, 0.3F, 0.003F, 0.0F);
  const bool nonfinite = GENERATE(false, true);
  CpuBackend scalar({}, Isa::scalar);
  CpuBackend simd({}, Isa::simd);
  Random random(12);
  // Whole vectors, none, and some with elements left over, whose indices are then not aligned.
  for (const std::int32_t dim : {1, 7, 8, 20, 24, 33, 64, 80, 100, 128, 320}) {
    CAPTURE(dim, dtype_name(q_dtype), beta_short, nonfinite);
    Feed feed;
    feed.q_dtype = q_dtype;
    feed.shape = {.layers = 1, .query_heads = 3, .kv_heads = 1, .head_dim = dim, .page_size = 16};
    feed.options = {.beta_short = beta_short,
                    .beta_long = 0.999F,
                    .slots = 2,
                    .window = 2,
                    .storage = SummaryOptions::Storage::f16_stochastic,
                    .seed = random.bits()};
    SummaryState want(feed.shape, feed.options), got(feed.shape, feed.options);
    for (int step = 0; step < 40; ++step) {
      std::vector<float> q = feed.room(1);
      for (std::int32_t head = 0; head < 3; ++head) {
        Row row;
        for (std::int32_t i = 0; i < dim; ++i) {
          row.push_back(double{rounding_value(random, nonfinite)});
        }
        feed.put(q, 1, 0, 0, head, row);
      }
      const SummaryEntry entry{1, step % 20 == 0};
      feed.update(scalar, want.view, {entry}, 0, 1, q);
      feed.update(simd, got.view, {entry}, 0, 1, q);
      REQUIRE(canonical_halves(got) == canonical_halves(want));
    }
    for (std::int64_t i = 0; i < std::int64_t{2} * 3 * dim; ++i) {  // the ring of slot 1
      const float a = got.view.window[2 * 3 * dim + i];
      const float b = want.view.window[2 * 3 * dim + i];
      REQUIRE((std::isnan(a) ? std::isnan(b) : a == b));
    }
  }
}

TEST_CASE("summary_update: the RMS of queries whose squares leave float's range") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  for (const double scale : {1e-30, 1e-22, 1e-12, 1.0, 1e18, 1e25, 3e37, 0.0}) {
    for (const std::int32_t dim : {8, 24, 512, 600}) {
      CAPTURE(static_cast<int>(isa), scale, dim);
      Feed feed;
      feed.shape = {.layers = 1, .query_heads = 1, .kv_heads = 1, .head_dim = dim, .page_size = 16};
      SummaryState state(feed.shape, feed.options);
      Random random(13);
      std::vector<float> q = feed.room(1);
      const Row query = feed.put(q, 1, 0, 0, 0, random.normal_row(dim, scale));
      feed.update(backend, state.view, {{0, 1}}, 0, 1, q);
      const double rms = reference::rms(query);
      CHECK(std::abs(double{state.view.query_rms[0]} - rms) <= 1e-6 * rms);
    }
  }
}

}  // namespace
}  // namespace growpage
