// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "growpage/memory/block_table.hpp"
#include "support/catch.hpp"
#include "support/sanitizer.hpp"

using namespace growpage;

TEST_CASE("rows of block tables are apart") {
  BlockTables tables = BlockTables::create(3, 5).value();
  CHECK(tables.max_pages() == 5);
  for (std::uint32_t s = 0; s < 3; ++s) {
    for (int k = 0; k < 5; ++k) tables.row(s)[k] = PageId{static_cast<int>(s) * 10 + k};
  }
  const BlockTables& read = tables;
  CHECK(read.row(1) == read.row(0) + 5);
  CHECK(read.row(0)[4] == PageId{4});
  CHECK(read.row(1)[0] == PageId{10});
  CHECK(read.row(2)[4] == PageId{24});
}

TEST_CASE("sizes of block tables are checked") {
  CHECK(BlockTables::create(0, 5).code() == StatusCode::invalid_argument);
  CHECK(BlockTables::create(3, 0).code() == StatusCode::invalid_argument);
}

TEST_CASE("row offsets are 64-bit") {
  if (test::shadow_memory) return;
  Result<BlockTables> made = BlockTables::create(2, 0x7fffffff);  // 16 GiB of address space
  if (!made.ok()) {
    CHECK(made.code() == StatusCode::out_of_memory);
    WARN("this machine does not grant the address space");
    return;
  }
  made->row(1)[0x7ffffffe] = PageId{42};
  CHECK(made->row(1) - made->row(0) == 0x7fffffff);
  CHECK(made->row(1)[0x7ffffffe] == PageId{42});
}

TEST_CASE("a device view finds a slot's place, in 64 bits") {
  static_assert(std::is_trivially_copyable_v<BlockTableView>);
  const std::int32_t pages[] = {7, 3, 0, 0x7ffffffe, 1, 2};
  const std::int32_t lengths[] = {20, 40};
  const BlockTableView view{pages, lengths, 3, 2, 16};
  CHECK(view.slot(0, 0) == 112);
  CHECK(view.slot(0, 19) == 51);
  CHECK(view.slot(1, 5) == std::int64_t{0x7ffffffe} * 16 + 5);
  CHECK(view.slot(1, 33) == 33);
}
