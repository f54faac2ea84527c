// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "cuda/device_array.hpp"
#include "cuda/mirrored_tensor.hpp"
#include "growpage/backend/cpu.hpp"
#include "growpage/backend/cuda/compaction.hpp"
#include "growpage/retention/compaction_plan.hpp"
#include "support/catch.hpp"
#include "support/random_cache.hpp"

using namespace growpage;
using test::Arrangement;

namespace {

struct Request {
  std::int32_t slots = 0;
  std::int32_t victims = 0;
  bool shared_pages = false;
};

struct CompactionCase {
  CacheShape shape{.layers = 2, .query_heads = 2, .kv_heads = 2, .head_dim = 20, .page_size = 16};
  DType dtype = DType::bf16;
  Arrangement arrangement = Arrangement::hnd;
  CompactionStrategy strategy = CompactionStrategy::fill_holes;
  bool v_in_k = false;
  bool scores = true;
  std::vector<Request> requests;
  std::uint64_t seed = 1;
};

/// A batch with random marks and keep bits: planned and compacted on the device, and request by
/// request by plan_compaction and the scalar CPU backend. Plans, every byte of the pool and the
/// scores of the slots that remain are equal.
class Batch {
 public:
  explicit Batch(const CompactionCase& spec)
      : in_(spec),
        random_(spec.seed),
        heads_(spec.shape.layers * spec.shape.kv_heads),
        max_slots_(1) {
    for (const Request& r : in_.requests) max_slots_ = std::max(max_slots_, r.slots);
    const std::int32_t b = in_.shape.page_size;
    pages_ = (max_slots_ + b - 1) / b;
    words_ = (max_slots_ + 63) / 64;
    const auto n = in_.requests.size();
    table_.resize(n * static_cast<std::size_t>(pages_) + 2);  // and two pages that nobody has
    std::iota(table_.begin(), table_.end(), 0);
    random_.shuffle(table_);
    cache_ =
        std::make_unique<test::MirroredCache>(in_.shape, static_cast<std::int32_t>(table_.size()),
                                              in_.dtype, in_.arrangement, random_, in_.v_in_k);
    marks_.resize(n * static_cast<std::size_t>(pages_));
    kept_.resize(marks_.size(), 0);
    bits_.resize(n * static_cast<std::size_t>(heads_ * words_), 0);
    scores_.resize(n * static_cast<std::size_t>(heads_ * max_slots_));
    for (float& s : scores_) s = static_cast<float>(random_.normal());
    for (std::size_t r = 0; r < n; ++r) prepare(r);
  }

  void check() {
    const auto n = static_cast<std::int32_t>(in_.requests.size());
    const test::DeviceArray<cuda::RetentionRequest> inputs(inputs_);
    const test::DeviceArray<std::uint8_t> marks(marks_);
    const test::DeviceArray<std::int32_t> kept(kept_);
    const test::DeviceArray<std::uint64_t> bits(bits_);
    const test::DeviceArray<std::int32_t> table(table_);
    const test::DeviceArray<float> scores(scores_);
    const test::DeviceArray<cuda::RequestPlan> plans(
        std::vector<cuda::RequestPlan>(in_.requests.size(), {-9, -9, {-9, -9}}));
    const cuda::PlanBatch plan{in_.shape.page_size, in_.strategy, n,
                               inputs.get(),        marks.get(),  pages_,
                               kept.get(),          pages_,       plans.get()};
    REQUIRE(cuda::plan_compaction(plan, {}).ok());
    cuda::CompactionBatch batch;
    batch.shape = in_.shape;
    batch.kv = cache_->device();
    batch.strategy = in_.strategy;
    batch.requests = n;
    batch.inputs = inputs.get();
    batch.plans = plans.get();
    batch.block_table = table.get();
    batch.block_table_stride = pages_;
    batch.marks = marks.get();
    batch.mark_stride = pages_;
    batch.bits = bits.get();
    batch.words = words_;
    batch.scores = in_.scores ? scores.get() : nullptr;
    batch.score_stride = max_slots_;
    batch.score_request_stride = std::int64_t{heads_} * max_slots_;
    REQUIRE(cuda::compact(batch, {}).ok());

    const std::vector<cuda::RequestPlan> got_plans = plans.download();
    const std::vector<float> got_scores = scores.download();
    CAPTURE(in_.seed, in_.shape.page_size, in_.shape.head_dim, static_cast<int>(in_.arrangement),
            static_cast<int>(in_.strategy), dtype_name(in_.dtype));
    for (std::size_t r = 0; r < in_.requests.size(); ++r) {
      CAPTURE(r);
      compact_on_host(r, got_plans[r], got_scores);
    }
    CHECK(cache_->equal());
  }

  [[nodiscard]] std::int32_t planned() const { return planned_; }

 private:
  [[nodiscard]] std::int32_t page_count(std::size_t r) const {
    return (in_.requests[r].slots + in_.shape.page_size - 1) / in_.shape.page_size;
  }
  [[nodiscard]] std::size_t page_index(std::size_t r) const {
    return r * static_cast<std::size_t>(pages_);
  }

  void prepare(std::size_t r) {
    const Request& request = in_.requests[r];
    const std::int32_t b = in_.shape.page_size;
    inputs_.push_back({request.slots, 0, 0, request.victims});
    std::int32_t private_slots = 0;
    for (std::int32_t p = 0; p < page_count(r); ++p) {
      std::uint8_t& mark = marks_[page_index(r) + static_cast<std::size_t>(p)];
      if (!request.shared_pages || random_.below(4) != 0) {
        mark |= page_private;
        private_slots += std::min(b, request.slots - p * b);
      }
      if (request.shared_pages && random_.below(4) == 0) mark |= page_protected;
    }
    const std::int32_t keep = std::max(0, private_slots - request.victims * b);
    for (std::int32_t h = 0; h < heads_; ++h) {
      std::vector<std::int32_t> mine;
      for (std::int32_t s = 0; s < request.slots; ++s) {
        if ((marks_[page_index(r) + static_cast<std::size_t>(s / b)] & page_private) != 0) {
          mine.push_back(s);
        } else {
          keep_slot(r, h, s);
        }
      }
      // Uneven: the pages have quite different numbers of retained rows.
      std::stable_sort(mine.begin(), mine.end(),
                       [&](std::int32_t x, std::int32_t y) { return x / b % 3 < y / b % 3; });
      for (std::size_t i = mine.size(); i > 1 && random_.below(6) != 0; --i) {
        std::swap(mine[i - 1], mine[static_cast<std::size_t>(random_.below(static_cast<int>(i)))]);
      }
      for (std::int32_t i = 0; i < keep; ++i) keep_slot(r, h, mine[static_cast<std::size_t>(i)]);
    }
  }
  void keep_slot(std::size_t r, std::int32_t h, std::int32_t s) {
    const std::size_t row = (r * static_cast<std::size_t>(heads_) + static_cast<std::size_t>(h)) *
                            static_cast<std::size_t>(words_);
    bits_[row + static_cast<std::size_t>(s / 64)] |= std::uint64_t{1} << (s % 64);
    ++kept_[page_index(r) + static_cast<std::size_t>(s / in_.shape.page_size)];
  }

  void compact_on_host(std::size_t r, const cuda::RequestPlan& got,
                       const std::vector<float>& got_scores) {
    const Request& request = in_.requests[r];
    const auto count = static_cast<std::size_t>(page_count(r));
    const std::span<const std::uint8_t> marks(marks_.data() + page_index(r), count);
    const std::span<const std::int32_t> kept(kept_.data() + page_index(r), count);
    if (request.victims == 0) {
      CHECK((got.status == 0 && got.victims == 0));
      return;
    }
    const Result<CompactionPlan> plan = plan_compaction(marks, kept, request.victims, in_.strategy);
    CHECK(got.status == static_cast<std::int32_t>(plan.code()));
    if (!plan.ok()) {
      CHECK(got.victims == 0);
      return;
    }
    ++planned_;
    CHECK(got.victims == plan->victims);
    CHECK(got.victim[0] == plan->victim[0]);
    CHECK(got.victim[1] == plan->victim[1]);

    std::vector<PageId> pages;
    for (std::size_t p = 0; p < count; ++p) pages.push_back(PageId{table_[page_index(r) + p]});
    const std::size_t row = r * static_cast<std::size_t>(heads_);
    CompactionMove move;
    move.shape = in_.shape;
    move.kv = cache_->host();
    move.pages = pages.data();
    move.marks = marks.data();
    move.plan = *plan;
    move.keep = {bits_.data() + row * static_cast<std::size_t>(words_),
                 nullptr,
                 in_.shape.layers,
                 in_.shape.kv_heads,
                 request.slots,
                 static_cast<std::int32_t>(count),
                 words_};
    if (in_.scores) move.scores = scores_.data() + row * static_cast<std::size_t>(max_slots_);
    move.score_stride = max_slots_;
    CpuBackend({}, CpuBackend::Isa::scalar).compact(move);
    if (!in_.scores) return;
    std::int32_t left = request.slots;
    for (std::int32_t i = 0; i < plan->victims; ++i) {  // the last page need not be full
      const std::int32_t b = in_.shape.page_size;
      left -= std::min(b, request.slots - plan->victim[i] * b);
    }
    for (std::int32_t h = 0; h < heads_; ++h) {
      const auto first = static_cast<std::ptrdiff_t>((row + static_cast<std::size_t>(h)) *
                                                     static_cast<std::size_t>(max_slots_));
      CHECK(std::equal(scores_.begin() + first, scores_.begin() + first + left,
                       got_scores.begin() + first));
    }
  }

  CompactionCase in_;
  test::Random random_;
  std::int32_t heads_;
  std::int32_t max_slots_;
  std::int64_t pages_;
  std::int64_t words_;
  std::vector<std::int32_t> table_;
  std::unique_ptr<test::MirroredCache> cache_;
  std::vector<cuda::RetentionRequest> inputs_;
  std::vector<std::uint8_t> marks_;
  std::vector<std::int32_t> kept_;
  std::vector<std::uint64_t> bits_;
  std::vector<float> scores_;
  std::int32_t planned_ = 0;
};

void check(const CompactionCase& in) {
  Batch batch(in);
  batch.check();
  CHECK(batch.planned() > 0);  // something was compacted
}

std::vector<Request> mixed(std::int32_t b, std::int32_t pages) {
  return {{b * pages, 1, false},
          {b * pages, 2, false},
          {b * (pages - 1), 1, true},
          {0, 0, false},
          {b * pages, 2, true},
          {b, 1, false},
          {b * (pages - 1) + 5, 1, false},
          {b * (pages - 1) + 5, 2, true},
          {b * pages, 0, false}};
}

}  // namespace

TEST_CASE("layouts, types and head dims: every byte as the CPU moves it") {
  CompactionCase in;
  in.strategy = GENERATE(CompactionStrategy::fill_holes, CompactionStrategy::in_order);
  in.arrangement =
      GENERATE(Arrangement::nhd, Arrangement::hnd, Arrangement::padded, Arrangement::per_layer);
  in.dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  in.shape.head_dim = GENERATE(64, 20);
  in.requests = mixed(16, 5);
  in.requests.resize(5);
  check(in);
}

TEST_CASE("head dims up to 256, other value dims, V in K, no scores") {
  CompactionCase in;
  in.strategy = GENERATE(CompactionStrategy::fill_holes, CompactionStrategy::in_order);
  in.shape.head_dim = GENERATE(40, 80, 128, 256);
  in.shape.value_dim = in.shape.head_dim / 2;
  in.shape.layers = 1;
  in.v_in_k = GENERATE(false, true);
  in.scores = !in.v_in_k;
  in.requests = mixed(16, 4);
  check(in);
}

TEST_CASE("page sizes, several rounds of pairs, one and two victims") {
  CompactionCase in;
  in.strategy = GENERATE(CompactionStrategy::fill_holes, CompactionStrategy::in_order);
  in.shape.page_size = GENERATE(16, 32, 64, 256, 512);
  in.shape.head_dim = 8;
  in.shape.layers = 1;
  in.dtype = DType::f16;
  in.requests = mixed(in.shape.page_size, in.shape.page_size >= 256 ? 4 : 9);
  for (in.seed = 1; in.seed <= 3; ++in.seed) check(in);
}

TEST_CASE("pages larger than a round of pairs") {
  CompactionCase in;
  in.strategy = GENERATE(CompactionStrategy::fill_holes, CompactionStrategy::in_order);
  in.shape = {.layers = 1, .query_heads = 1, .kv_heads = 1, .head_dim = 4, .page_size = 2048};
  in.requests = {{3 * 2048, 1, false}};
  check(in);
}

TEST_CASE("compactions of nothing") {
  CHECK(cuda::plan_compaction({}, {}).ok());
  CHECK(cuda::compact({}, {}).ok());
}
