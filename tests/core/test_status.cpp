// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "growpage/core/status.hpp"
#include "support/catch.hpp"

namespace growpage {
namespace {

struct Pinned {
  StatusCode code;
  std::int32_t value;
  const char* name;
};

// The C ABI hands these numbers to engines: they can never change.
constexpr Pinned pinned[] = {
    {StatusCode::ok, 0, "ok"},
    {StatusCode::out_of_pages, 1, "out_of_pages"},
    {StatusCode::out_of_sequences, 2, "out_of_sequences"},
    {StatusCode::out_of_slots, 3, "out_of_slots"},
    {StatusCode::at_capacity, 4, "at_capacity"},
    {StatusCode::out_of_fences, 5, "out_of_fences"},
    {StatusCode::out_of_host_pages, 6, "out_of_host_pages"},
    {StatusCode::busy, 7, "busy"},
    {StatusCode::invalid_argument, -1, "invalid_argument"},
    {StatusCode::stale_id, -2, "stale_id"},
    {StatusCode::behind_compaction, -3, "behind_compaction"},
    {StatusCode::request_too_large, -4, "request_too_large"},
    {StatusCode::unsupported, -5, "unsupported"},
    {StatusCode::protocol_error, -6, "protocol_error"},
    {StatusCode::out_of_memory, -7, "out_of_memory"},
    {StatusCode::internal_error, -8, "internal_error"},
    {StatusCode::device_error, -9, "device_error"},
};

TEST_CASE("StatusCode: values and names are pinned") {
  for (const Pinned& p : pinned) {
    CAPTURE(p.name);
    CHECK(static_cast<std::int32_t>(p.code) == p.value);
    CHECK(std::string(status_name(p.code)) == p.name);
    const Status status = p.code;
    CHECK(status.ok() == (p.value == 0));
    CHECK(status.retryable() == (p.value > 0));
    CHECK(status == p.code);
    CHECK(status.detail() == nullptr);
    CHECK(status.message() == p.name);
  }
  CHECK(status_name(static_cast<StatusCode>(1234)) != nullptr);
}

TEST_CASE("Status: an error names the argument, its value and what is allowed") {
  const Status s = Status::invalid("CacheShape::kv_heads", std::int64_t{3}, "a divisor of 2");
  REQUIRE(s.detail() != nullptr);
  CHECK(s == StatusCode::invalid_argument);
  CHECK_FALSE(s.ok());
  CHECK_FALSE(s.retryable());
  CHECK(s.detail()->argument == "CacheShape::kv_heads");
  CHECK(s.detail()->value == "3");
  CHECK(s.detail()->allowed == "a divisor of 2");
  CHECK(s.message() == "invalid_argument: CacheShape::kv_heads is 3; allowed: a divisor of 2");

  CHECK(Status::invalid("p", 1.5, "0 < p ≤ 1").detail()->value == "1.5");
  CHECK(Status::invalid("storage", "bf16", "f32").detail()->value == "bf16");
  CHECK(Status::invalid("n", std::int64_t{-9223372036854775807}, "more").detail()->value ==
        "-9223372036854775807");
  const Status other = Status::error(StatusCode::unsupported, "a", "b", "c");
  CHECK(other.message() == "unsupported: a is b; allowed: c");
  const Status copy = other;  // the detail is shared, not lost
  CHECK(copy.message() == other.message());
  CHECK(Status{}.ok());
}

TEST_CASE("Result: a value or the status that explains its absence") {
  Result<std::int32_t> good = 7;
  REQUIRE(good.ok());
  CHECK(static_cast<bool>(good));
  CHECK(*good == 7);
  CHECK(good.code() == StatusCode::ok);
  *good = 8;
  CHECK(good.value() == 8);

  const Result<std::int32_t> retry = StatusCode::out_of_pages;
  CHECK_FALSE(retry.ok());
  CHECK(retry.status().retryable());

  const Result<std::string> bad = Status::invalid("a", "b", "c");
  CHECK_FALSE(static_cast<bool>(bad));
  CHECK(bad.status().message() == "invalid_argument: a is b; allowed: c");

  Result<std::unique_ptr<int>> owner = std::make_unique<int>(3);  // move-only values come out whole
  REQUIRE(owner.ok());
  CHECK(**owner == 3);
  const std::unique_ptr<int> taken = std::move(owner).value();
  CHECK(*taken == 3);
  const Result<std::string> text = std::string("abc");
  CHECK(text->size() == 3);
}

}  // namespace
}  // namespace growpage
