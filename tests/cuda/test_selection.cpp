// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "cuda/device_array.hpp"
#include "growpage/backend/cpu.hpp"
#include "growpage/backend/cuda/selection.hpp"
#include "growpage/retention/keep_set.hpp"
#include "select.hpp"
#include "support/catch.hpp"
#include "support/random_cache.hpp"

using namespace growpage;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// One request of a batch and what its scores are like.
struct RequestCase {
  std::int32_t slots = 0;
  std::int32_t keep = 0;
  std::int32_t protected_slots = 0;
  enum class Scores { normal, softmax, few_values, equal, special } scores = Scores::normal;
  bool shared_pages = false;
};

float score(RequestCase::Scores kind, test::Random& random) {
  switch (kind) {
    case RequestCase::Scores::softmax:
      return static_cast<float>(std::exp(8.0 * random.normal() - 20.0));
    case RequestCase::Scores::few_values:
      return static_cast<float>(random.below(3)) - 1.0F;
    case RequestCase::Scores::equal:
      return 0.25F;
    case RequestCase::Scores::special: {
      const float values[] = {nan, -nan, inf, -inf, 0.0F, -0.0F, 1e-42F, -1e-42F, 1.0F, -1.0F};
      return values[random.below(10)];
    }
    case RequestCase::Scores::normal:
      break;
  }
  return static_cast<float>(random.normal());
}

struct Batch {
  CacheShape shape{.layers = 2, .query_heads = 2, .kv_heads = 2, .head_dim = 8, .page_size = 16};
  RetentionOptions retention;
  std::vector<RequestCase> requests;
  std::int64_t key_bytes = 1 << 16;
  std::uint64_t seed = 1;
};

/// Selects on the device and, request by request, with the scalar CPU backend: the same bits.
void check(const Batch& in) {
  test::Random random(in.seed);
  const std::int32_t heads = in.shape.layers * in.shape.kv_heads;
  const std::int32_t b = in.shape.page_size;
  std::int32_t max_slots = 1;
  for (const RequestCase& r : in.requests) max_slots = std::max(max_slots, r.slots);
  const std::int64_t stride = max_slots + 3;
  const std::int64_t words = (max_slots + 63) / 64 + 1;
  const std::int64_t pages = (max_slots + b - 1) / b + 1;
  const auto requests = static_cast<std::int64_t>(in.requests.size());

  std::vector<cuda::RetentionRequest> inputs;
  std::vector<float> scores(static_cast<std::size_t>(requests * heads * stride), nan);
  std::vector<std::uint8_t> marks(static_cast<std::size_t>(requests * pages), 0);
  for (std::int64_t r = 0; r < requests; ++r) {
    const RequestCase& request = in.requests[static_cast<std::size_t>(r)];
    inputs.push_back({request.slots, request.protected_slots, request.keep, 1});
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t s = 0; s < request.slots; ++s) {
        scores[static_cast<std::size_t>((r * heads + h) * stride + s)] =
            score(request.scores, random);
      }
    }
    for (std::int64_t p = 0; p < pages; ++p) {
      const bool shared = request.shared_pages && random.below(3) == 0;
      marks[static_cast<std::size_t>(r * pages + p)] =
          shared ? std::uint8_t{page_protected} : std::uint8_t{page_private};
    }
  }

  const test::DeviceArray<cuda::RetentionRequest> device_inputs(inputs);
  const test::DeviceArray<float> device_scores(scores);
  const test::DeviceArray<std::uint8_t> device_marks(marks);
  const test::DeviceArray<std::uint64_t> device_bits(
      std::vector<std::uint64_t>(static_cast<std::size_t>(requests * heads * words), ~0ULL));
  const test::DeviceArray<std::int32_t> device_kept(
      std::vector<std::int32_t>(static_cast<std::size_t>(requests * pages), -7));
  cuda::SelectionBatch batch;
  batch.shape = in.shape;
  batch.retention = in.retention;
  batch.requests = static_cast<std::int32_t>(requests);
  batch.max_slots = max_slots;
  batch.inputs = device_inputs.get();
  batch.scores = device_scores.get();
  batch.score_stride = stride;
  batch.score_request_stride = heads * stride;
  batch.marks = device_marks.get();
  batch.mark_stride = pages;
  batch.bits = device_bits.get();
  batch.words = words;
  batch.page_kept = device_kept.get();
  batch.page_kept_stride = pages;
  REQUIRE(cuda::select_within(batch, in.key_bytes, {}).ok());
  const std::vector<std::uint64_t> bits = device_bits.download();
  const std::vector<std::int32_t> kept = device_kept.download();

  CpuBackend oracle({}, CpuBackend::Isa::scalar);
  for (std::int64_t r = 0; r < requests; ++r) {
    const RequestCase& request = in.requests[static_cast<std::size_t>(r)];
    const auto used_pages = static_cast<std::int32_t>((request.slots + b - 1) / b);
    std::vector<std::uint64_t> want_bits(static_cast<std::size_t>(heads * words), ~0ULL);
    std::vector<std::int32_t> want_kept(static_cast<std::size_t>(pages), 0);
    if (request.slots > 0) {
      Selection selection;
      selection.shape = in.shape;
      selection.retention = in.retention;
      selection.scores = scores.data() + r * heads * stride;
      selection.score_stride = stride;
      selection.marks = marks.data() + r * pages;
      selection.protected_slots = request.protected_slots;
      selection.keep = request.keep;
      selection.out = {want_bits.data(),
                       want_kept.data(),
                       in.shape.layers,
                       in.shape.kv_heads,
                       request.slots,
                       used_pages,
                       words};
      std::vector<std::byte> workspace(
          static_cast<std::size_t>(oracle.workspace_bytes(in.shape, request.slots)));
      oracle.select(selection, workspace.data());
    }
    CAPTURE(r, request.slots, request.keep, b, in.seed);
    CHECK(std::equal(want_bits.begin(), want_bits.end(), bits.begin() + r * heads * words));
    CHECK(std::equal(want_kept.begin(), want_kept.end(), kept.begin() + r * pages));
  }
}

using Scores = RequestCase::Scores;

/// Batches that mix lengths around page boundaries, kinds of scores, shared pages and budgets.
Batch mixed(std::int32_t page_size, std::int32_t pages, std::uint64_t seed) {
  Batch batch;
  batch.shape.page_size = page_size;
  batch.seed = seed;
  const std::int32_t n = page_size * pages;
  batch.requests = {
      {n, n - page_size, 0, Scores::normal, false},
      {n - 1, n - page_size - 1, 5, Scores::softmax, true},
      {0, 0, 0, Scores::normal, false},  // padding
      {n + 1, n - page_size + 1, 0, Scores::few_values, false},
      {n, n / 2, 0, Scores::equal, true},
      {page_size, page_size / 2, 0, Scores::special, false},
      {n, n - 2 * page_size, page_size + 3, Scores::special, true},
      {1, 1, 0, Scores::normal, false},
  };
  return batch;
}

}  // namespace

TEST_CASE("the device keeps the CPU backend's slots for every page size") {
  const std::int32_t page_size = GENERATE(16, 32, 64, 128, 256, 512);
  check(mixed(page_size, page_size >= 256 ? 2 : 5, 10 + static_cast<std::uint64_t>(page_size)));
}

TEST_CASE("pages larger than the register path selects from") { check(mixed(1024, 2, 5)); }

TEST_CASE("rows that do not fit in shared memory are ranked from global memory") {
  const std::int32_t page_size = GENERATE(16, 64, 512);
  Batch batch =
      mixed(page_size, page_size == 512 ? 2 : 5, 20 + static_cast<std::uint64_t>(page_size));
  batch.key_bytes = 0;
  check(batch);
}

TEST_CASE("budgets smaller than what is always kept, than the quotas, and none") {
  Batch batch;
  batch.retention.recent = 16;
  batch.retention.local_per_256 = GENERATE(0, 64, 256);
  batch.retention.sinks = GENERATE(0, 4);
  batch.key_bytes = GENERATE(0, 1 << 16);
  for (const std::int32_t keep : {0, 1, 15, 16, 17, 20, 24, 31, 80, 96}) {
    batch.requests.push_back({96, keep, 0, Scores::few_values, keep % 2 == 0});
    batch.requests.push_back({96, keep, 40, Scores::normal, false});
  }
  check(batch);
}

TEST_CASE("every page shared, one private page, protection longer than the request") {
  Batch batch;
  batch.retention.recent = 0;
  batch.requests = {{64, 32, 1000, Scores::normal, false},
                    {64, 64, 0, Scores::normal, false},
                    {64, 100, 0, Scores::special, false},
                    {48, 16, 48, Scores::equal, true}};
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    batch.seed = seed;
    check(batch);
  }
}

TEST_CASE("selection of nothing") {
  cuda::SelectionBatch batch;
  CHECK(cuda::select(batch, {}).ok());
}
