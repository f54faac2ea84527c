// SPDX-License-Identifier: Apache-2.0
// Swap, and the engine's own guards.
#include <cstdint>
#include <vector>

#include "growpage/cache/page_manager.hpp"
#include "support/catch.hpp"
#include "support/manager_engine.hpp"

using namespace growpage;
using test::Engine;
using test::text;

TEST_CASE("swap out and in: pages, fences and copies to run") {
  Engine e(4, 4);
  const SequenceId id = e.prefill(text(40));
  REQUIRE(e.m.grow(id).ok());  // an empty fourth page
  const std::vector<int> before = e.table(id);
  const auto out = e.m.swap_out(id, e.transfers);
  REQUIRE(out.ok());
  e.check();
  REQUIRE(e.transfers.size() == 3);
  for (std::size_t k = 0; k < 3; ++k) {
    CHECK(e.transfers[k].device == PageId{before[k]});
    CHECK(e.transfers[k].host == PageId{e.table(id)[k]});
  }
  CHECK(e.view(id).busy);
  CHECK(e.view(id).swapped);
  CHECK(e.m.counts().in_flight == 4);
  CHECK(e.m.host_counts().referenced == 4);
  CHECK(e.m.swap_in(id, e.transfers).code() == StatusCode::busy);
  const SequenceId other = e.admit({});
  CHECK(e.m.grow(other) == StatusCode::out_of_pages);  // not before the fence
  REQUIRE(e.m.complete_fence(*out).ok());
  e.check();
  CHECK_FALSE(e.view(id).busy);
  CHECK(e.view(id).swapped);
  CHECK(e.m.counts().cached == 2);
  CHECK(e.m.counts().free == 2);
  CHECK(e.m.append(id, 1, nullptr, e.copies) == StatusCode::busy);
  CHECK(e.m.page_marks(id, 0, {}) == StatusCode::busy);
  CHECK(e.m.private_pages(id) == 0);

  REQUIRE(e.m.reserve(other, 16).ok());
  e.transfers.clear();
  CHECK(e.m.swap_in(id, e.transfers).code() == StatusCode::out_of_pages);  // all or none
  CHECK(e.transfers.empty());
  e.check();
  e.release(other);
  const std::vector<int> host = e.table(id);
  const auto in = e.m.swap_in(id, e.transfers);
  REQUIRE(in.ok());
  e.check();
  REQUIRE(e.transfers.size() == 3);
  for (std::size_t k = 0; k < 3; ++k) {
    CHECK(e.transfers[k].host == PageId{host[k]});
    CHECK(e.transfers[k].device == PageId{e.table(id)[k]});
  }
  CHECK(e.view(id).busy);
  CHECK_FALSE(e.view(id).swapped);
  CHECK(e.m.host_counts().in_flight == 4);  // still being read
  REQUIRE(e.m.complete_fence(*in).ok());
  e.check();
  CHECK(e.m.host_counts().free == 4);
  CHECK(e.view(id).length == 40);
  CHECK(e.view(id).computed == 40);
  CHECK(e.m.swap_in(id, e.transfers).code() == StatusCode::protocol_error);
}

TEST_CASE("a swapped sequence publishes again after its return") {
  Engine e(8, 8);
  const SequenceId id = e.prefill(text(40));
  REQUIRE(e.m.complete_fence(e.m.swap_out(id, e.transfers).value()).ok());
  const SequenceId other = e.admit({});
  REQUIRE(e.m.reserve(other, 8 * 16).ok());  // evicts what it left behind
  CHECK(e.m.match_length(text(40)) == 0);
  e.release(other);
  REQUIRE(e.m.complete_fence(e.m.swap_in(id, e.transfers).value()).ok());
  e.append(id, text(20, 40));
  CHECK(e.m.match_length(text(61)) == 48);
  e.release(id);
  CHECK(e.m.match_length(text(61)) == 48);
}

TEST_CASE("swap space is all or nothing") {
  Engine e(8, 2);
  const SequenceId id = e.prefill(text(40));
  CHECK(e.m.swap_out(id, e.transfers).code() == StatusCode::out_of_host_pages);
  CHECK(e.transfers.empty());
  CHECK_FALSE(e.view(id).busy);
  e.check();
  Engine none(8);
  const SequenceId other = none.prefill(text(16));
  CHECK(none.m.swap_out(other, none.transfers).code() == StatusCode::out_of_host_pages);
  CHECK(none.m.host_counts().total == 0);
}

TEST_CASE("a sequence released while it swaps frees host pages after the fence only") {
  Engine e(4, 2);
  const SequenceId id = e.prefill(text(32));
  const auto out = e.m.swap_out(id, e.transfers);
  REQUIRE(out.ok());
  e.release(id);
  CHECK(e.m.host_counts().in_flight == 2);
  const SequenceId next = e.prefill(text(20, 300));
  CHECK(e.m.swap_out(next, e.transfers).code() == StatusCode::out_of_host_pages);
  REQUIRE(e.m.complete_fence(*out).ok());
  e.check();
  CHECK(e.m.host_counts().free == 2);
  CHECK(e.m.swap_out(next, e.transfers).ok());
}

TEST_CASE("a shared page is swapped as a copy, its other reader keeps it") {
  Engine e(8, 8);
  const SequenceId a = e.prefill(text(40));
  const SequenceId b = e.m.fork(a).value();
  const auto out = e.m.swap_out(b, e.transfers);
  REQUIRE(out.ok());
  e.check();
  CHECK(e.m.counts().referenced == 3);
  CHECK(e.m.counts().in_flight == 0);
  // The transfer reads rows 0 … 7 of the tail: a may add to them, but not overwrite them.
  e.append(a, text(1, 600));
  CHECK(e.copies.empty());
  REQUIRE(e.m.truncate(a, 35).ok());
  e.append(a, text(1, 700));
  CHECK(e.copies.size() == 1);
  REQUIRE(e.m.complete_fence(*out).ok());
  e.check();
}

TEST_CASE("a guard holds the pages of a sequence that goes on, or is gone") {
  Engine e(4);
  const SequenceId id = e.prefill(text(40));
  const auto fence = e.m.guard(id);
  REQUIRE(fence.ok());
  CHECK_FALSE(e.view(id).busy);
  e.append(id, text(2, 40));
  CHECK(e.copies.empty());
  // Rows under a guard do not move.
  std::vector<std::uint8_t> marks(3);
  REQUIRE(e.m.page_marks(id, 0, marks).ok());
  CHECK(marks == std::vector<std::uint8_t>{0, 0, 0});
  e.release(id);
  CHECK(e.m.counts().in_flight == 3);
  CHECK(e.m.match_length(text(40)) == 32);  // but they can be read
  REQUIRE(e.m.complete_fence(*fence).ok());
  e.check();
  CHECK(e.m.counts().cached == 2);
  CHECK(e.m.counts().free == 2);
  // Children first, also after a fence.
  const SequenceId other = e.admit({});
  REQUIRE(e.m.reserve(other, 48).ok());
  CHECK(e.m.match_length(text(40)) == 16);
}

TEST_CASE("fences and guards run out with a retryable answer") {
  PageManagerOptions options;
  options.pages = 4;
  options.page_size = 16;
  options.max_sequences = 4;
  options.max_pages_per_sequence = 4;
  options.max_fences = 3;
  options.host_pages = 4;
  Engine e(options);
  const SequenceId id = e.prefill(text(48));
  std::vector<FenceId> fences;
  for (int i = 0; i < 2; ++i) fences.push_back(e.m.guard(id).value());
  CHECK(e.m.guard(id).code() == StatusCode::out_of_fences);  // 2 × 4 guards, 6 are taken
  CHECK(e.m.swap_out(id, e.transfers).code() == StatusCode::out_of_fences);
  CHECK(e.transfers.empty());
  CHECK(e.m.host_counts().free == 4);
  e.check();
  const SequenceId empty = e.admit({});
  fences.push_back(e.m.guard(empty).value());
  CHECK(e.m.guard(empty).code() == StatusCode::out_of_fences);  // three fences are open
  for (const FenceId fence : fences) CHECK(e.m.complete_fence(fence).ok());
  CHECK(e.m.guard(id).ok());
  CHECK(e.m.complete_fence(FenceId{}) == StatusCode::stale_id);
  CHECK(e.m.complete_fence(FenceId{1000, 1}) == StatusCode::stale_id);
  e.check();
}
