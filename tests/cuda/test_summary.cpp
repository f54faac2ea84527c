// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "cuda/device_array.hpp"
#include "growpage/backend/cpu.hpp"
#include "growpage/backend/cuda/summary.hpp"
#include "support/catch.hpp"
#include "support/random_cache.hpp"

using namespace growpage;

namespace {

struct SummaryCase {
  std::int32_t layers = 3;
  std::int32_t slots = 5;
  std::int32_t query_heads = 3;
  std::int32_t head_dim = 64;
  std::int32_t window = 3;
  SummaryOptions::Storage storage = SummaryOptions::Storage::f32;
  DType q_dtype = DType::f32;
  std::int64_t gap = 0;  ///< elements between the heads of a query
  float beta_short = 0.9F;
  bool special =
      false;  ///< infinities, NaN, the smallest and the largest numbers among the queries
  std::uint64_t seed = 1;
};

/// The four arrays of a summary state; absurd values to begin with.
struct State {
  explicit State(const SummaryCase& in)
      : element(in.storage == SummaryOptions::Storage::f32 ? 4 : 2),
        summaries(rows(in) * 2 * query(in) * element, std::byte{0x7e}),
        rms(rows(in) * static_cast<std::size_t>(in.query_heads), -1.0F),
        window(rows(in) * static_cast<std::size_t>(in.window) * query(in), -2.0F),
        steps(rows(in), 77) {}

  static std::size_t rows(const SummaryCase& in) {
    return static_cast<std::size_t>(in.layers * in.slots);
  }
  static std::size_t query(const SummaryCase& in) {
    return static_cast<std::size_t>(in.query_heads * in.head_dim);
  }

  std::size_t element;
  std::vector<std::byte> summaries;
  std::vector<float> rms;
  std::vector<float> window;
  std::vector<std::int64_t> steps;
};

SummaryView view(const SummaryCase& in, void* summaries, float* rms, float* window,
                 std::int64_t* steps) {
  return {summaries,
          rms,
          in.window > 0 ? window : nullptr,
          steps,
          in.storage,
          in.layers,
          in.slots,
          in.query_heads,
          in.head_dim,
          in.window};
}

/// Bits, with all NaNs alike: which NaN comes out of arithmetic is not defined.
template <class T>
std::vector<std::uint32_t> canonical(const std::vector<std::byte>& bytes) {
  std::vector<std::uint32_t> result;
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    const auto* values = reinterpret_cast<const T*>(bytes.data());
    if constexpr (sizeof(T) == 4) {
      result.push_back(std::isnan(values[i]) ? 0x7fc00000U
                                             : std::bit_cast<std::uint32_t>(values[i]));
    } else {
      const bool nan = std::isnan(values[i].to_float());
      result.push_back(nan ? 0x7e00U : values[i].bits);
    }
  }
  return result;
}

bool within_one_ulp(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::abs(std::bit_cast<std::int32_t>(a) - std::bit_cast<std::int32_t>(b)) <= 1;
}

/// Runs a few steps on the device and with the scalar CPU backend and compares the whole state.
void check(const SummaryCase& in) {
  test::Random random(in.seed);
  State host(in);
  test::DeviceArray<std::byte> summaries(host.summaries);
  test::DeviceArray<float> rms(host.rms);
  test::DeviceArray<float> window(host.window);
  test::DeviceArray<std::int64_t> steps(host.steps);
  const SummaryOptions options{.beta_short = in.beta_short,
                               .beta_long = 0.999F,
                               .slots = in.slots,
                               .window = in.window,
                               .storage = in.storage,
                               .seed = in.seed};
  const std::int64_t head_stride = in.head_dim + in.gap;
  const std::int64_t request_stride = head_stride * in.query_heads + in.gap;
  CpuBackend oracle({}, CpuBackend::Isa::scalar);
  for (std::int32_t step = 0; step < 5; ++step) {
    const std::vector<SummaryEntry> entries{{3, step == 0}, {0, step <= 2}, {4, step == 0}};
    const auto requests = static_cast<std::int32_t>(entries.size());
    const std::int32_t layers = step == 4 ? 1 : in.layers;  // the last one in a single layer
    const std::int32_t first_layer = step == 4 ? in.layers - 1 : 0;
    const std::int64_t layer_stride = request_stride * (requests + 1);
    std::vector<std::byte> q(static_cast<std::size_t>(layer_stride * layers) *
                             dtype_bytes(in.q_dtype));
    for (std::int64_t i = 0; i < layer_stride * layers; ++i) {
      constexpr float inf = std::numeric_limits<float>::infinity();
      const float values[] = {inf, -inf, std::nanf(""), 1e-42F, 3e38F, 6e-8F, -65520.0F, 0.0F};
      const bool special = in.special && random.below(8) == 0;
      store_element(q.data(), in.q_dtype, i,
                    special ? values[random.below(8)] : static_cast<float>(random.normal()));
    }
    SummaryUpdate update{
        view(in, host.summaries.data(), host.rms.data(), host.window.data(), host.steps.data()),
        options,
        entries.data(),
        requests,
        first_layer,
        layers,
        q.data(),
        in.q_dtype,
        layer_stride,
        request_stride,
        head_stride};
    oracle.summary_update(update);

    // One more entry, of a slot below 0: padding.
    std::vector<SummaryEntry> padded = entries;
    padded.push_back({-1, 1});
    const test::DeviceArray<SummaryEntry> device_entries(padded);
    const test::DeviceArray<std::byte> device_q(q);
    const cuda::SummaryBatch batch{view(in, summaries.get(), rms.get(), window.get(), steps.get()),
                                   options,
                                   device_entries.get(),
                                   requests + 1,
                                   first_layer,
                                   layers,
                                   device_q.get(),
                                   in.q_dtype,
                                   layer_stride,
                                   request_stride,
                                   head_stride};
    REQUIRE(cuda::summary_update(batch, {}).ok());
  }
  CAPTURE(in.head_dim, in.gap, in.window, in.special, dtype_name(in.q_dtype));
  if (in.storage == SummaryOptions::Storage::f32) {
    CHECK(canonical<float>(summaries.download()) == canonical<float>(host.summaries));
  } else {
    CHECK(canonical<Float16>(summaries.download()) == canonical<Float16>(host.summaries));
  }
  CHECK(steps.download() == host.steps);
  const std::vector<float> got_rms = rms.download();
  CHECK(std::equal(got_rms.begin(), got_rms.end(), host.rms.begin(), within_one_ulp));
  const std::vector<float> got_window = window.download();
  CHECK(std::equal(got_window.begin(), got_window.end(), host.window.begin(), [](float a, float b) {
    return std::isnan(a) ? std::isnan(b) : std::bit_cast<int>(a) == std::bit_cast<int>(b);
  }));
}

}  // namespace

TEST_CASE("the device's summaries are the CPU's bit for bit") {
  SummaryCase in;
  in.head_dim = GENERATE(64, 80, 128, 256, 20, 40, 33);
  in.q_dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  in.storage = GENERATE(SummaryOptions::Storage::f32, SummaryOptions::Storage::f16_stochastic);
  in.seed = static_cast<std::uint64_t>(in.head_dim);
  check(in);
}

TEST_CASE("any query stride, more heads than warps, no window, beta 0") {
  SummaryCase in;
  in.gap = GENERATE(1, 4, 6);
  in.q_dtype = GENERATE(DType::f32, DType::bf16);
  in.storage = GENERATE(SummaryOptions::Storage::f32, SummaryOptions::Storage::f16_stochastic);
  in.query_heads = 11;
  in.layers = 2;
  in.window = GENERATE(0, 2);
  in.beta_short = GENERATE(0.0F, 0.9F);
  check(in);
}

TEST_CASE("infinities, NaN, subnormal and huge queries") {
  SummaryCase in;
  in.special = true;
  in.q_dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  in.storage = GENERATE(SummaryOptions::Storage::f32, SummaryOptions::Storage::f16_stochastic);
  for (in.seed = 1; in.seed <= 3; ++in.seed) check(in);
}

TEST_CASE("a batch of nothing, and a storage that cannot work") {
  cuda::SummaryBatch batch;
  CHECK(cuda::summary_update(batch, {}).ok());
  batch.requests = 1;
  batch.state.storage = SummaryOptions::Storage::bf16;
  CHECK(cuda::summary_update(batch, {}) == StatusCode::unsupported);
}

TEST_CASE("a batch whose beta_long is still to be chosen by the page size") {
  cuda::SummaryBatch batch;
  batch.requests = 1;
  const Status refused = cuda::summary_update(batch, {});
  REQUIRE(refused == StatusCode::invalid_argument);
  CHECK(refused.detail()->argument == "SummaryBatch::options.beta_long");
}
