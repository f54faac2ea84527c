// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "growpage/cache/batch_tables.hpp"
#include "support/allocation_counter.hpp"
#include "support/catch.hpp"
#include "support/manager_engine.hpp"

using namespace growpage;
using test::Engine;
using test::text;

namespace {

using I32 = std::vector<std::int32_t>;
using I64 = std::vector<std::int64_t>;

/// Sequences of 40, 0, 32 and 7 slots (the third was 48 long and compacted), pages as they come.
struct Batch {
  Engine e{32};
  std::vector<SequenceId> ids;

  Batch() {
    ids.push_back(e.prefill(text(40)));        // pages 0 1 2
    ids.push_back(e.admit({}));                // none
    ids.push_back(e.prefill(text(48, 1000)));  // pages 3 4 5
    ids.push_back(e.prefill(text(7, 2000)));   // page 6
    e.compact(ids[2], 0);                      // pages 4 5 3
    REQUIRE(e.m.grow(ids[3]).ok());            // page 7, empty
  }
};

}  // namespace

TEST_CASE("padded tables") {
  const Batch b;
  CHECK(padded_stride(b.e.m, b.ids).value() == 3);
  I32 table(4 * 5, 99), lengths(4, 99);
  REQUIRE(fill_padded_tables(b.e.m, b.ids, {table, 5, -1, lengths}).ok());
  CHECK(table == I32{0,  1,  2,  -1, -1,  //
                     -1, -1, -1, -1, -1,  //
                     4,  5,  3,  -1, -1,  //
                     6,  7,  -1, -1, -1});
  CHECK(lengths == I32{40, 0, 32, 7});

  SECTION("lengths are optional, larger buffers stay as they are behind the batch") {
    I32 larger(4 * 3 + 2, 99);
    REQUIRE(fill_padded_tables(b.e.m, b.ids, {larger, 3, 0, {}}).ok());
    CHECK(larger == I32{0, 1, 2, 0, 0, 0, 4, 5, 3, 6, 7, 0, 99, 99});
  }
  SECTION("an empty batch") {
    CHECK(padded_stride(b.e.m, {}).value() == 0);
    CHECK(fill_padded_tables(b.e.m, {}, {}).ok());
  }
}

TEST_CASE("compressed tables hold pages with used slots only") {
  const Batch b;
  CHECK(compressed_size(b.e.m, b.ids).value() == 6);
  I32 indptr(5, 99), indices(6, 99), last(4, 99);
  REQUIRE(fill_compressed_tables(b.e.m, b.ids, {indptr, indices, last}).ok());
  CHECK(indptr == I32{0, 3, 3, 5, 6});
  CHECK(indices == I32{0, 1, 2, 4, 5, 6});
  CHECK(last == I32{8, 0, 16, 7});
  I32 zero(1, 99);
  REQUIRE(fill_compressed_tables(b.e.m, {}, {zero, {}, {}}).ok());
  CHECK(zero == I32{0});
}

TEST_CASE("slot mapping and positions of the last tokens") {
  Batch b;
  b.e.append(b.ids[2], text(3, 1048));
  const I32 counts = {9, 0, 4, 7};
  I64 slots(20, 99), positions(20, 99);
  REQUIRE(fill_token_tables(b.e.m, b.ids, counts, {slots, positions}).ok());
  CHECK(slots == I64{31,          32,         33,         34,         35,
                     36,          37,         38,         39,          //
                     5 * 16 + 15, 3 * 16,     3 * 16 + 1, 3 * 16 + 2,  //
                     6 * 16,      6 * 16 + 1, 6 * 16 + 2, 6 * 16 + 3, 6 * 16 + 4,
                     6 * 16 + 5,  6 * 16 + 6});
  // True positions: the third sequence has 35 slots, but 51 tokens.
  CHECK(positions == I64{31, 32, 33, 34, 35, 36, 37, 38, 39,  //
                         47, 48, 49, 50,                      //
                         0,  1,  2,  3,  4,  5,  6});
  I64 only(20, 99);
  REQUIRE(fill_token_tables(b.e.m, b.ids, counts, {{}, only}).ok());
  CHECK(only == positions);
  REQUIRE(fill_token_tables(b.e.m, b.ids, counts, {only, {}}).ok());
  CHECK(only == slots);
}

TEST_CASE("a buffer that is too small is refused with the size it needs, and left alone") {
  const Batch b;
  const auto refused = [](const Status& s, const std::string& needed) {
    CHECK(s == StatusCode::invalid_argument);
    REQUIRE(s.detail() != nullptr);
    CHECK(s.detail()->allowed == needed);
  };
  I32 table(19, 99), lengths(3, 99), four(4, 99), five(5, 99), six(6, 99);
  refused(fill_padded_tables(b.e.m, b.ids, {table, 5, 0, {}}), "at least 20");
  refused(fill_padded_tables(b.e.m, b.ids, {table, 4, 0, lengths}), "at least 4");
  refused(fill_padded_tables(b.e.m, b.ids, {table, 2, 0, {}}), "3 to 2147483647");
  refused(fill_padded_tables(b.e.m, b.ids, {table, -1, 0, {}}), "3 to 2147483647");
  refused(fill_compressed_tables(b.e.m, b.ids, {four, six, four}), "at least 5");
  refused(fill_compressed_tables(b.e.m, b.ids, {five, five, four}), "at least 6");
  refused(fill_compressed_tables(b.e.m, b.ids, {five, six, lengths}), "at least 4");
  const I32 counts = {9, 0, 4, 7}, too_many = {41, 0, 0, 0}, negative = {0, 0, -1, 0}, few = {1};
  I64 slots(19, 99);
  refused(fill_token_tables(b.e.m, b.ids, counts, {slots, {}}), "at least 20");
  refused(fill_token_tables(b.e.m, b.ids, counts, {{}, slots}), "at least 20");
  refused(fill_token_tables(b.e.m, b.ids, too_many, {slots, {}}), "0 to 40");
  refused(fill_token_tables(b.e.m, b.ids, negative, {slots, {}}), "0 to 32");
  refused(fill_token_tables(b.e.m, b.ids, few, {slots, {}}), "at least 4");
  for (const I32* untouched : {&table, &lengths, &four, &five, &six}) {
    for (const std::int32_t x : *untouched) CHECK(x == 99);
  }
  for (const std::int64_t x : slots) CHECK(x == 99);
}

TEST_CASE("sequences that are gone or busy are refused, and nothing is written") {
  Batch b;
  I32 table(20, 99), indptr(5, 99), indices(6, 99), last(4, 99);
  const I32 counts = {1, 0, 1, 1};
  I64 slots(3, 99);
  StatusCode expected = StatusCode::ok;
  SECTION("gone") {
    b.e.release(b.ids[3]);
    expected = StatusCode::stale_id;
  }
  SECTION("busy") {
    b.e.append(b.ids[2], text(16, 1048));
    REQUIRE(b.e.m.begin_compaction(b.ids[2], 1, {}, {}, b.e.copies).ok());
    expected = StatusCode::busy;
  }
  CHECK(padded_stride(b.e.m, b.ids).code() == expected);
  CHECK(compressed_size(b.e.m, b.ids).code() == expected);
  CHECK(fill_padded_tables(b.e.m, b.ids, {table, 5, 0, {}}) == expected);
  CHECK(fill_compressed_tables(b.e.m, b.ids, {indptr, indices, last}) == expected);
  CHECK(fill_token_tables(b.e.m, b.ids, counts, {slots, {}}) == expected);
  CHECK(table[0] == 99);
  CHECK(indptr[0] == 99);
  CHECK(slots[0] == 99);
}

TEST_CASE("batch tables allocate nothing") {
  const Batch b;
  I32 table(12), lengths(4), indptr(5), indices(6), last(4);
  const I32 counts = {1, 0, 1, 1};
  I64 slots(3), positions(3);
  const test::AllocationCounter allocations;
  const bool good = fill_padded_tables(b.e.m, b.ids, {table, 3, 0, lengths}).ok() &&
                    fill_compressed_tables(b.e.m, b.ids, {indptr, indices, last}).ok() &&
                    fill_token_tables(b.e.m, b.ids, counts, {slots, positions}).ok();
  const std::int64_t count = allocations.count();
  CHECK(good);
  CHECK(count == 0);
}
