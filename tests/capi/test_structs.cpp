// SPDX-License-Identifier: Apache-2.0
// Structs of an older caller are shorter, those of a newer one longer.
#include <array>
#include <cstddef>
#include <cstring>
#include <string>

#include "growpage/growpage.h"
#include "support/catch.hpp"

namespace growpage::test {
namespace {

/// A struct as a later version of the header would have it.
template <class T>
struct Newer {
  T known;
  std::int64_t added;
};

growpage_cache_options small_cache() {
  growpage_cache_options options;
  growpage_cache_options_init(&options, sizeof options);
  options.pages = 4;
  options.page_size = 16;
  return options;
}

growpage_cache_info info_of(growpage_cache* cache) {
  growpage_cache_info info{};
  info.struct_size = sizeof info;
  REQUIRE(growpage_cache_get_info(cache, &info) == GROWPAGE_OK);
  return info;
}

std::string argument() {
  growpage_error error{};
  growpage_last_error(&error, sizeof error);
  return error.argument;
}

}  // namespace

TEST_CASE("an older, shorter struct gets the defaults of what it lacks", "[capi]") {
  growpage_cache_options options = small_cache();
  // Past the end of the shorter struct: not looked at.
  options.max_pages_per_sequence = -1;
  options.struct_size = offsetof(growpage_cache_options, max_pages_per_sequence);
  growpage_cache* cache = nullptr;
  REQUIRE(growpage_cache_create(&options, nullptr, &cache) == GROWPAGE_OK);
  CHECK(info_of(cache).pages == 4);
  REQUIRE(growpage_cache_destroy(cache) == GROWPAGE_OK);

  options.struct_size = sizeof options;
  CHECK(growpage_cache_create(&options, nullptr, &cache) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(argument() == "PageManagerOptions::max_pages_per_sequence");
}

TEST_CASE("a newer, longer struct is taken while its tail is zero", "[capi]") {
  Newer<growpage_cache_options> newer = {small_cache(), 0};
  newer.known.struct_size = sizeof newer;
  growpage_cache* cache = nullptr;
  REQUIRE(growpage_cache_create(&newer.known, nullptr, &cache) == GROWPAGE_OK);
  REQUIRE(growpage_cache_destroy(cache) == GROWPAGE_OK);

  newer.added = 1;
  cache = nullptr;
  CHECK(growpage_cache_create(&newer.known, nullptr, &cache) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(argument() == "growpage_cache_options.struct_size");
  CHECK(cache == nullptr);
}

TEST_CASE("an output struct is written as far as it goes, a newer one zeroed behind", "[capi]") {
  growpage_cache_options options = small_cache();
  growpage_cache* cache = nullptr;
  REQUIRE(growpage_cache_create(&options, nullptr, &cache) == GROWPAGE_OK);

  growpage_cache_info info{};
  info.struct_size = offsetof(growpage_cache_info, free_pages);
  info.free_pages = 77;
  REQUIRE(growpage_cache_get_info(cache, &info) == GROWPAGE_OK);
  CHECK(info.pages == 4);
  CHECK(info.free_pages == 77);
  CHECK(info.struct_size == offsetof(growpage_cache_info, free_pages));

  Newer<growpage_cache_info> newer{};
  newer.added = 77;
  newer.known.struct_size = sizeof newer;
  REQUIRE(growpage_cache_get_info(cache, &newer.known) == GROWPAGE_OK);
  CHECK(newer.known.free_pages == 4);
  CHECK(newer.added == 0);
  CHECK(newer.known.struct_size == sizeof newer);
  REQUIRE(growpage_cache_destroy(cache) == GROWPAGE_OK);
}

TEST_CASE("init fills what the caller has, and zeroes what the library does not know", "[capi]") {
  growpage_summary_options options{};
  options.storage = 77;
  REQUIRE(growpage_summary_options_init(&options, offsetof(growpage_summary_options, storage)) ==
          GROWPAGE_OK);
  CHECK(options.beta_short == 0.9F);
  CHECK(options.beta_long == 0.0F);
  CHECK(options.slots == 512);
  CHECK(options.storage == 77);
  Newer<growpage_summary_options> newer{};
  newer.added = 77;
  REQUIRE(growpage_summary_options_init(&newer.known, sizeof newer) == GROWPAGE_OK);
  CHECK(newer.added == 0);
  CHECK(newer.known.struct_size == sizeof newer);
}

TEST_CASE("sizes that no struct has are refused", "[capi]") {
  growpage_cache_options options = small_cache();
  growpage_cache* cache = nullptr;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, sizeof options - 1, std::size_t{4104}, SIZE_MAX}) {
    options.struct_size = size;
    CHECK(growpage_cache_create(&options, nullptr, &cache) == GROWPAGE_INVALID_ARGUMENT);
    CHECK(growpage_cache_options_init(&options, size) == GROWPAGE_INVALID_ARGUMENT);
  }
  CHECK(growpage_cache_options_init(nullptr, sizeof options) == GROWPAGE_INVALID_ARGUMENT);
}

TEST_CASE("an error names argument, value and what is allowed", "[capi]") {
  growpage_cache_options options = small_cache();
  options.page_size = 17;
  growpage_cache* cache = nullptr;
  REQUIRE(growpage_cache_create(&options, nullptr, &cache) == GROWPAGE_INVALID_ARGUMENT);
  growpage_error error{};
  growpage_last_error(&error, sizeof error);
  CHECK(error.status == GROWPAGE_INVALID_ARGUMENT);
  CHECK(std::string(error.argument) == "PageManagerOptions::page_size");
  CHECK(std::string(error.value) == "17");
  CHECK(std::string(error.message) ==
        "invalid_argument: PageManagerOptions::page_size is 17; allowed: a power of two from 16 to "
        "1048576");
  growpage_last_error(nullptr, sizeof error);  // ignored
  growpage_error shorter = error;
  growpage_last_error(&shorter, 3);  // ignored
  CHECK(shorter.status == error.status);
  CHECK(std::string(growpage_status_text(GROWPAGE_OUT_OF_PAGES)) == "out_of_pages");
  CHECK(std::string(growpage_status_text(GROWPAGE_OUT_OF_MEMORY)) == "out_of_memory");
  CHECK(std::string(growpage_status_text(12345)) == "unknown");
  CHECK(growpage_api_revision() == GROWPAGE_API_REVISION);
  CHECK(std::string(growpage_version()).find('.') != std::string::npos);
}

}  // namespace growpage::test
