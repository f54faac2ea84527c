// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <type_traits>
#include <unordered_set>

#include "growpage/core/ids.hpp"
#include "support/catch.hpp"

namespace growpage {
namespace {

static_assert(std::is_trivially_copyable_v<PageId> && sizeof(PageId) == 4);
static_assert(std::is_trivially_copyable_v<SequenceId> && sizeof(SequenceId) == 8);
static_assert(!std::is_same_v<SequenceId, RequestId> && !std::is_same_v<SequenceId, FenceId>);

TEST_CASE("PageId: none is negative, offsets are 64-bit") {
  CHECK_FALSE(PageId{}.valid());
  CHECK_FALSE(PageId{-7}.valid());
  CHECK(PageId{0}.valid());
  const PageId last{std::numeric_limits<std::int32_t>::max()};
  CHECK(last.offset() * 4096 == 8796093018112);
  CHECK(PageId{3} < PageId{4});
  CHECK(PageId{3} == PageId{3});
}

TEST_CASE("GenerationId: 64 bits and back, a default id is never a live one") {
  CHECK(SequenceId{}.generation == 0);
  const SequenceId id{0xfffffffeu, 0x80000001u};
  CHECK(id.bits() == 0x80000001fffffffeu);
  CHECK(SequenceId::from_bits(id.bits()) == id);
  CHECK(SequenceId::from_bits(0) == SequenceId{});
  // The same slot in another generation is another object.
  CHECK(SequenceId{5, 1} != SequenceId{5, 2});
  std::unordered_set<SequenceId> set{{5, 1}, {5, 2}, {6, 1}, {5, 1}};
  CHECK(set.size() == 3);
  CHECK(set.count(SequenceId{6, 1}) == 1);
}

TEST_CASE("SummarySlot: none is negative") {
  CHECK_FALSE(SummarySlot{}.valid());
  CHECK(SummarySlot{0}.valid());
}

}  // namespace
}  // namespace growpage
