// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <vector>

#include "growpage/backend/cpu.hpp"
#include "support/catch.hpp"
#include "support/reference_keep.hpp"

namespace growpage {
namespace {

using reference::SelectionCase;
using test::OwnedKeepSet;
using test::Random;
using test::Workspace;
using Isa = CpuBackend::Isa;

struct Setup {
  CacheShape shape{.layers = 2, .query_heads = 3, .kv_heads = 3, .head_dim = 8, .page_size = 16};
  std::int32_t slots = 0;
  RetentionOptions retention;
  std::vector<std::uint8_t> marks;
  std::int32_t protected_slots = 0;
  std::int32_t keep = 0;
  std::vector<std::vector<float>> scores;  ///< [layer·kv_head][slot]
};

/// Number of (layer, head) whose selection differs from the reference, plus wrong page counts.
int differences(CpuBackend& backend, const Setup& setup) {
  const std::int64_t stride = setup.slots + 5;
  std::vector<float> scores(setup.scores.size() * static_cast<std::size_t>(stride), 1e30F);
  for (std::size_t row = 0; row < setup.scores.size(); ++row) {
    std::copy(setup.scores[row].begin(), setup.scores[row].end(),
              scores.begin() + static_cast<std::ptrdiff_t>(row) * stride);
  }
  OwnedKeepSet keep(setup.shape, setup.slots);
  Workspace workspace(backend.workspace_bytes(setup.shape, setup.slots));
  Selection selection;
  selection.shape = setup.shape;
  selection.retention = setup.retention;
  selection.scores = scores.data();
  selection.score_stride = stride;
  selection.marks = setup.marks.data();
  selection.protected_slots = setup.protected_slots;
  selection.keep = setup.keep;
  selection.out = keep.view;
  backend.select(selection, workspace.data());

  int wrong = workspace.intact() ? 0 : 1000;
  std::vector<std::int32_t> counts(setup.marks.size(), 0);
  for (std::int32_t l = 0; l < setup.shape.layers; ++l) {
    for (std::int32_t h = 0; h < setup.shape.kv_heads; ++h) {
      SelectionCase one;
      one.page_size = setup.shape.page_size;
      one.scores = setup.scores[static_cast<std::size_t>(l * setup.shape.kv_heads + h)];
      one.marks = setup.marks;
      one.recent = setup.retention.recent;
      one.protected_slots = setup.protected_slots;
      one.quota = setup.retention.local_quota(setup.shape.page_size);
      one.keep = setup.keep;
      const std::vector<bool> want = reference::selected(one);
      wrong += keep.row(l, h) == want ? 0 : 1;
      for (std::size_t s = 0; s < want.size(); ++s) {
        counts[s / static_cast<std::size_t>(setup.shape.page_size)] += want[s] ? 1 : 0;
      }
    }
  }
  if (keep.page_kept() != counts) wrong += 100;
  return wrong;
}

/// Everything random; `levels` > 0 quantises the scores, so that most of them tie.
Setup random_setup(Random& random, std::int32_t page_size, std::int32_t levels) {
  Setup s;
  s.shape.page_size = page_size;
  const std::int32_t pages = 3 + random.below(6);
  s.slots = pages * page_size;
  s.marks.assign(static_cast<std::size_t>(pages), page_private);
  const std::int32_t shared = random.below(pages - 1);
  for (std::int32_t p = 0; p < shared; ++p) s.marks[static_cast<std::size_t>(p)] = 0;
  const std::int32_t mine = pages - shared;
  const std::int32_t victims = mine > 2 ? 1 + random.below(2) : 1;
  s.keep = (mine - victims) * page_size;
  s.retention.recent = random.below(page_size / 2 + 1);
  s.retention.local_per_256 = random.below(129);
  for (std::int32_t i = 0; i < s.shape.layers * s.shape.kv_heads; ++i) {
    std::vector<float> row;
    for (std::int32_t slot = 0; slot < s.slots; ++slot) {
      row.push_back(levels > 0 ? static_cast<float>(random.below(levels)) / 8.0F
                               : static_cast<float>(random.normal()));
    }
    s.scores.push_back(row);
  }
  return s;
}

TEST_CASE("select: random scores, marks and quotas, slot for slot") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const std::int32_t page_size = GENERATE(16, 64, 256);
  const std::int32_t levels = GENERATE(0, 1, 2, 5, 100);
  CAPTURE(static_cast<int>(isa), page_size, levels);
  CpuBackend backend({}, isa);
  Random random(51);
  int wrong = 0;
  for (int round = 0; round < 20; ++round) {
    wrong += differences(backend, random_setup(random, page_size, levels));
  }
  CHECK(wrong == 0);
}

TEST_CASE("select: sinks and protected prompt tokens stay whatever their score") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Random random(52);
  int wrong = 0;
  for (int round = 0; round < 30; ++round) {
    Setup s = random_setup(random, 16, round % 2 == 0 ? 0 : 3);
    std::fill(s.marks.begin(), s.marks.end(), std::uint8_t{page_private});
    s.keep = s.slots - 16;
    s.retention.recent = 4;
    s.retention.local_per_256 = 0;
    s.protected_slots = random.below(s.slots - 16 - 4 + 1);  // up to the whole budget
    wrong += differences(backend, s);
  }
  CHECK(wrong == 0);
}

TEST_CASE("select: the local quota counts beside recent and protected slots") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Random random(53);
  int wrong = 0;
  for (int round = 0; round < 30; ++round) {
    Setup s = random_setup(random, 64, 0);
    std::fill(s.marks.begin(), s.marks.end(), std::uint8_t{page_private});
    s.keep = s.slots - 64;
    s.retention.recent = 16;
    s.retention.local_per_256 = 64;
    s.protected_slots = random.below(49);
    // The first and the newest page are the worst of all: only their quotas are left of them.
    for (std::vector<float>& row : s.scores) {
      for (std::size_t i = 0; i < 64; ++i) row[i] -= 100.0F;
      for (std::size_t i = row.size() - 64; i < row.size(); ++i) row[i] -= 100.0F;
    }
    wrong += differences(backend, s);
  }
  CHECK(wrong == 0);
}

TEST_CASE("select: quotas larger than the budget are clamped to equal shares") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const std::int32_t local = GENERATE(128, 200, 256);
  CAPTURE(static_cast<int>(isa), local);
  CpuBackend backend({}, isa);
  Random random(54);
  int wrong = 0;
  for (int round = 0; round < 20; ++round) {
    for (const std::int32_t page_size : {16, 64}) {
      Setup s = random_setup(random, page_size, round % 2 == 0 ? 0 : 4);
      s.retention.local_per_256 = local;
      wrong += differences(backend, s);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("select: equal scores keep the lower slots") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  const float level = GENERATE(0.0F, 1.0F, -2.0F, 1e-40F);
  CAPTURE(static_cast<int>(isa), level);
  CpuBackend backend({}, isa);
  Setup s;
  s.slots = 64;
  s.marks.assign(4, page_private);
  s.retention.recent = 3;
  s.retention.local_per_256 = 0;
  s.keep = 48;
  s.scores.assign(6, std::vector<float>(64, level));
  CHECK(differences(backend, s) == 0);
}

TEST_CASE("select: scores of every magnitude and sign") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  const std::vector<float> values{0.0F,  1e-45F,  1e-40F, 1.2e-38F, 1e-20F, 1.0F,   3e38F,
                                  -1.0F, -1e-40F, -3e38F, 1e-7F,    1e-8F,  -1e-45F};
  Random random(55);
  Setup s = random_setup(random, 16, 0);
  for (std::vector<float>& row : s.scores) {
    for (float& x : row) {
      x = values[static_cast<std::size_t>(random.below(static_cast<std::int32_t>(values.size())))];
    }
  }
  CHECK(differences(backend, s) == 0);
}

TEST_CASE("select: pages that are not full, budgets of none and of all") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Setup s;
  s.slots = 4 * 16 - 5;
  s.marks.assign(4, page_private);
  Random random(56);
  s.scores.assign(6, {});
  for (std::vector<float>& row : s.scores) {
    for (std::int32_t i = 0; i < s.slots; ++i) row.push_back(static_cast<float>(random.uniform()));
  }
  s.retention.recent = 0;
  for (const std::int32_t local : {0, 16, 64}) {
    s.retention.local_per_256 = local;
    for (const std::int32_t keep : {0, 1, 30, s.slots - 1, s.slots}) {
      CAPTURE(local, keep);
      s.keep = keep;
      CHECK(differences(backend, s) == 0);
    }
  }
  // Nothing private: nothing to give up.
  s.marks.assign(4, 0);
  s.keep = 0;
  s.retention.recent = 8;
  CHECK(differences(backend, s) == 0);
}

TEST_CASE("select: recent slots on a page others read are simply kept") {
  const Isa isa = GENERATE(Isa::scalar, Isa::simd);
  CpuBackend backend({}, isa);
  Random random(57);
  Setup s = random_setup(random, 16, 0);
  s.slots = 64;
  for (std::vector<float>& row : s.scores) row.resize(64, 0.5F);
  s.marks = {page_private, page_private, page_private, 0};
  s.retention.recent = 20;  // the whole shared page and four slots of a private one
  s.retention.local_per_256 = 32;
  s.keep = 32;
  CHECK(differences(backend, s) == 0);
}

TEST_CASE("select: the same answer on two workers") {
  Random random(58);
  const Setup s = random_setup(random, 64, 3);
  for (const Isa isa : {Isa::scalar, Isa::simd}) {
    CpuBackend backend(test::two_threads(), isa);
    CHECK(differences(backend, s) == 0);
  }
}

}  // namespace
}  // namespace growpage
