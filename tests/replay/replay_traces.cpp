// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "trace.hpp"
#include "workload.hpp"

using namespace growpage::replay;  // NOLINT(google-build-using-namespace)
using growpage::TokenId;

namespace {

Trace read(const std::string& text, TraceFormat format = TraceFormat::guess,
           std::int64_t limit = 0) {
  std::istringstream in(text);
  return read_trace(in, "t", format, limit);
}

std::vector<TokenId> prompt(const TraceRequest& request) {
  std::vector<TokenId> tokens;
  make_prompt(request, tokens);
  return tokens;
}

const std::string azure_header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

}  // namespace

TEST_CASE("a Mooncake trace is read with its blocks") {
  const Trace trace =
      read(R"({"timestamp": 500, "input_length": 700, "output_length": 3, "hash_ids": [4, 9]})"
           "\n\n"
           R"({"timestamp": 2000.5, "input_length": 512, "output_length": 10, "hash_ids": [4]})"
           "\r\n"
           R"({"timestamp": 3000, "input_length": 600, "output_length": 1})"
           "\n");
  REQUIRE_FALSE(trace.error);
  CHECK(trace.format == TraceFormat::mooncake);
  REQUIRE(trace.requests.size() == 3);
  CHECK(trace.requests[0].arrival_s == Approx(0.0));
  CHECK(trace.requests[1].arrival_s == Approx(1.5005));
  CHECK(trace.requests[2].arrival_s == Approx(2.5));
  CHECK(trace.requests[0].prompt_tokens == 700);
  CHECK(trace.requests[1].output_tokens == 10);
  CHECK(trace.requests[0].blocks == std::vector<std::uint64_t>{4, 9});
  CHECK(trace.requests[2].blocks.empty());

  const std::vector<TokenId> a = prompt(trace.requests[0]);
  const std::vector<TokenId> b = prompt(trace.requests[1]);
  const std::vector<TokenId> c = prompt(trace.requests[2]);
  REQUIRE(a.size() == 700);
  REQUIRE(b.size() == 512);
  CHECK(std::equal(b.begin(), b.end(), a.begin()));                // block 4 in both
  CHECK_FALSE(std::equal(a.begin() + 512, a.end(), a.begin()));    // block 9 is another
  CHECK_FALSE(std::equal(c.begin(), c.begin() + 512, a.begin()));  // no ids: its own
}

TEST_CASE("requests without block ids get prompts of their own") {
  const Trace trace =
      read(R"({"timestamp": 17, "input_length": 64, "output_length": 618, "reasoning_length": 564})"
           "\n"
           R"({"timestamp": 18, "input_length": 64, "output_length": 1})"
           "\n");
  REQUIRE_FALSE(trace.error);
  CHECK(trace.format == TraceFormat::servegen);
  REQUIRE(trace.requests.size() == 2);
  CHECK(trace.requests[0].output_tokens == 618);
  CHECK(prompt(trace.requests[0]) != prompt(trace.requests[1]));
  CHECK(prompt(trace.requests[0]) == prompt(trace.requests[0]));
}

TEST_CASE("an Azure trace is read; times are relative to the first arrival") {
  const Trace trace = read(azure_header +
                           "2023-11-16 23:59:59.5000000,4808,10\r\n"
                           "2023-11-17 00:00:01.2500000,3180,8\n"
                           "2023-11-16 23:59:58.5000000,7,1");
  REQUIRE_FALSE(trace.error);
  CHECK(trace.format == TraceFormat::azure);
  REQUIRE(trace.requests.size() == 3);
  CHECK(trace.requests[0].prompt_tokens == 7);  // sorted by arrival
  CHECK(trace.requests[0].arrival_s == Approx(0.0));
  CHECK(trace.requests[1].arrival_s == Approx(1.0));
  CHECK(trace.requests[2].arrival_s == Approx(2.75));
  CHECK(trace.requests[2].output_tokens == 8);
}

TEST_CASE("a limit ends reading early, before what is wrong behind it") {
  const std::string good = R"({"timestamp": 1, "input_length": 2, "output_length": 3})";
  const Trace trace = read(good + "\n" + good + "\nnonsense\n", TraceFormat::guess, 2);
  CHECK_FALSE(trace.error);
  CHECK(trace.requests.size() == 2);
}

TEST_CASE("what is wrong with a trace is named by file, line and field") {
  struct Case {
    std::string text;
    std::int64_t line;
    const char* field;
    const char* message;
  };
  const std::string good = R"({"timestamp": 1, "input_length": 2, "output_length": 3})"
                           "\n";
  const std::vector<Case> cases{
      {"", 0, "", "t: holds no request"},
      {good + "{\"timestamp\": 1,", 2, "", "t:2: is not a JSON object"},
      {good + "\n[1, 2]\n", 3, "", "t:3: is not a JSON object"},
      {R"({"input_length": 2, "output_length": 3})", 1, "timestamp",
       "t:1: field timestamp: is missing"},
      {R"({"timestamp": -1, "input_length": 2, "output_length": 3})", 1, "timestamp",
       "t:1: field timestamp: is -1; allowed: milliseconds from 0"},
      {R"({"timestamp": "now", "input_length": 2, "output_length": 3})", 1, "timestamp",
       "t:1: field timestamp: is \"now\"; allowed: milliseconds from 0"},
      {good + R"({"timestamp": 1, "input_length": 2})", 2, "output_length",
       "t:2: field output_length: is missing"},
      {R"({"timestamp": 1, "input_length": 0, "output_length": 3})", 1, "input_length",
       "t:1: field input_length: is 0; allowed: a whole number from 1 to 10000000"},
      {R"({"timestamp": 1, "input_length": 2.5, "output_length": 3})", 1, "input_length",
       "t:1: field input_length: is 2.5; allowed: a whole number from 1 to 10000000"},
      {R"({"timestamp": 1, "input_length": 18446744073709551615, "output_length": 3})", 1,
       "input_length",
       "t:1: field input_length: is 18446744073709551615; allowed: a whole number from 1 to "
       "10000000"},
      {R"({"timestamp": 1, "input_length": 513, "output_length": 3, "hash_ids": [1]})", 1,
       "hash_ids", "t:1: field hash_ids: has 1 entries; an input_length of 513 needs 2"},
      {R"({"timestamp": 1, "input_length": 5, "output_length": 3, "hash_ids": [-1]})", 1,
       "hash_ids", "t:1: field hash_ids: holds -1; allowed: whole numbers from 0"},
      {R"({"timestamp": 1, "input_length": 5, "output_length": 3, "hash_ids": 7})", 1, "hash_ids",
       "t:1: field hash_ids: is a number; allowed: an array"},
      {R"({"timestamp": 1, "input_length": 5, "output_length": 3, "reasoning_length": 4})", 1,
       "reasoning_length",
       "t:1: field reasoning_length: is 4; allowed: a whole number from 0 to 3"},
      {"time,in,out\n", 1, "", "t:1: the header is not TIMESTAMP,ContextTokens,GeneratedTokens"},
      {azure_header + "2023-11-16 18:17:03,5\n", 2, "ContextTokens",
       "t:2: field ContextTokens: is the last field; allowed: 3 of them"},
      {azure_header + "2023-11-16 18:17:03,5,6,7\n", 2, "GeneratedTokens",
       "t:2: field GeneratedTokens: is followed by more fields"},
      {azure_header + "2023-02-30 18:17:03,5,6\n", 2, "TIMESTAMP",
       "t:2: field TIMESTAMP: is \"2023-02-30 18:17:03\"; allowed: a time like 2023-11-16 "
       "18:17:03.97"},
      {azure_header + "2023-11-16 24:17:03,5,6\n", 2, "TIMESTAMP",
       "t:2: field TIMESTAMP: is \"2023-11-16 24:17:03\"; allowed: a time like 2023-11-16 "
       "18:17:03.97"},
      {azure_header + "2023-11-16 18:17:03,5,0\n", 2, "GeneratedTokens",
       "t:2: field GeneratedTokens: is \"0\"; allowed: a whole number from 1 to 10000000"},
      {azure_header + "2023-11-16 18:17:03,5x,6\n", 2, "ContextTokens",
       "t:2: field ContextTokens: is \"5x\"; allowed: a whole number from 1 to 10000000"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const Trace trace = read(c.text);
    REQUIRE(trace.error);
    CHECK(trace.error->file == "t");
    CHECK(trace.error->line == c.line);
    CHECK(trace.error->field == c.field);
    CHECK(trace.error->message() == c.message);
  }
}

TEST_CASE("a file that is not there is an error") {
  const Trace trace = read_trace("no-such-file.jsonl", TraceFormat::mooncake, 0);
  REQUIRE(trace.error);
  CHECK(trace.error->message() == "no-such-file.jsonl: cannot be opened");
}
