// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>

#include "growpage/retention/compaction_plan.hpp"
#include "support/catch.hpp"

namespace growpage {
namespace {

TEST_CASE("compaction room: what may be rewritten, emptied, and what must stay") {
  RetentionOptions retention;
  retention.recent = 4;
  // Shared, protected and private, private, private (newest); pages of 16.
  const std::array<std::uint8_t, 4> marks = {page_protected, page_private | page_protected,
                                             page_private, page_private};

  // 20 protected slots: 4 of them lie in the second page, the first is shared.
  CompactionRoom room = compaction_room(marks, 16, 20, retention, SharedPages::keep);
  CHECK(room.rewritable == 3);
  CHECK(room.candidates == 1);
  CHECK(room.required == 4 + 4);
  CHECK(room.keep(1, 16) == 32);
  CHECK(room.fits(1, 16));
  CHECK_FALSE(room.fits(2, 16));  // one candidate

  room = compaction_room(marks, 16, 20, retention, SharedPages::copy);
  CHECK(room.rewritable == 4);
  CHECK(room.candidates == 1);
  CHECK(room.required == 20 + 4);

  retention.strategy = CompactionStrategy::in_order;
  room = compaction_room(marks, 16, 20, retention, SharedPages::keep);
  CHECK(room.candidates == 3);
  CHECK(room.fits(2, 16));

  // Protected up to the end: recent slots are not counted twice, and nothing fits.
  room = compaction_room(marks, 16, 64, retention, SharedPages::keep);
  CHECK(room.required == 48);
  CHECK_FALSE(room.fits(1, 16));
}

}  // namespace
}  // namespace growpage
