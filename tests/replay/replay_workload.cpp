// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "mixed_workload.hpp"
#include "support/catch.hpp"
#include "workload.hpp"

using namespace growpage::replay;  // NOLINT(google-build-using-namespace)

namespace {

double mean_output(const std::vector<TraceRequest>& requests) {
  return static_cast<double>(totals(requests).output_tokens) / static_cast<double>(requests.size());
}

}  // namespace

TEST_CASE("the mixed workload has the published shape, whatever the seed") {
  const std::uint64_t seed = GENERATE(1U, 2U, 77U);
  MixedWorkloadOptions options;
  options.seed = seed;
  const std::vector<TraceRequest> requests = mixed_workload(mixed_benchmarks, options);
  REQUIRE(requests.size() == 3559);
  CHECK(std::ranges::all_of(requests, [](const TraceRequest& r) {
    return r.arrival_s == 0 && r.prompt_tokens >= 1 && r.output_tokens >= 1 &&
           r.output_tokens <= 32768;
  }));
  const double sum = 1280 * 9030.0 + 960 * 16824.0 + 1319 * 2328.0;
  CHECK(mean_output(requests) == Approx(sum / 3559).epsilon(1e-3));

  // 70 questions were asked 32 times, 1319 once; samples of one share its prompt.
  std::map<std::uint64_t, std::vector<const TraceRequest*>> questions;
  for (const TraceRequest& r : requests) questions[r.prompt_id].push_back(&r);
  CHECK(questions.size() == 40 + 30 + 1319);
  CHECK(std::ranges::count_if(questions, [](const auto& q) { return q.second.size() == 32; }) ==
        70);
  for (const auto& [id, samples] : questions) {
    for (const TraceRequest* sample : samples) {
      REQUIRE(sample->prompt_tokens == samples[0]->prompt_tokens);
    }
  }
}

TEST_CASE("each benchmark's mean output is the published one and its spread the assumed one") {
  for (const Benchmark& benchmark : mixed_benchmarks) {
    CAPTURE(benchmark.name);
    MixedWorkloadOptions options;
    const std::vector<TraceRequest> requests = mixed_workload({&benchmark, 1}, options);
    CHECK(requests.size() == static_cast<std::size_t>(benchmark.questions * benchmark.samples));
    CHECK(mean_output(requests) == Approx(benchmark.mean_output).epsilon(1e-3));
    std::vector<double> logs;
    double mean = 0;
    for (const TraceRequest& r : requests) {
      if (r.output_tokens == options.output_cap) continue;
      logs.push_back(std::log(static_cast<double>(r.output_tokens)));
      mean += logs.back();
    }
    mean /= static_cast<double>(logs.size());
    double variance = 0;
    for (const double l : logs) variance += (l - mean) * (l - mean);
    const double sigma = std::sqrt(variance / static_cast<double>(logs.size()));
    CHECK(sigma > 0.45);  // √(0.45² + 0.45²) = 0.64, less what the cap takes
    CHECK(sigma < 0.80);
  }
}

TEST_CASE("equal seeds give equal workloads in an equal order, others do not") {
  MixedWorkloadOptions options;
  const auto lengths = [&](std::uint64_t seed) {
    options.seed = seed;
    std::vector<std::int64_t> out;
    for (const TraceRequest& r : mixed_workload({&amc23_benchmark, 1}, options)) {
      out.push_back(r.output_tokens);
    }
    return out;
  };
  CHECK(lengths(3) == lengths(3));
  CHECK(lengths(3) != lengths(4));
  // Shuffled: the first 32 requests are not one question's samples.
  options.seed = 3;
  const std::vector<TraceRequest> requests = mixed_workload({&amc23_benchmark, 1}, options);
  std::set<std::uint64_t> first;
  for (std::size_t i = 0; i < 32; ++i) first.insert(requests[i].prompt_id);
  CHECK(first.size() > 10);
}

TEST_CASE("samples of a question have one prompt, generated tokens depend on the request alone") {
  TraceRequest a;
  a.prompt_tokens = 300;
  a.prompt_id = 5;
  TraceRequest b = a;
  b.output_tokens = 9;
  TraceRequest c = a;
  c.prompt_id = 6;
  std::vector<growpage::TokenId> pa, pb, pc;
  make_prompt(a, pa);
  make_prompt(b, pb);
  make_prompt(c, pc);
  CHECK(pa.size() == 300);
  CHECK(pa == pb);
  CHECK(pa != pc);
  CHECK(std::ranges::all_of(pa, [](growpage::TokenId t) { return t >= 0; }));
  CHECK(generated_token(1, 7) == generated_token(1, 7));
  CHECK(generated_token(1, 7) != generated_token(2, 7));
  CHECK(generated_token(1, 7) != generated_token(1, 8));
}

TEST_CASE("reshape cuts the list and scales lengths, never to nothing") {
  std::vector<TraceRequest> requests(3);
  requests[0].prompt_tokens = 100;
  requests[0].output_tokens = 1000;
  requests[1].prompt_tokens = 1;
  requests[1].output_tokens = 2;
  reshape(requests, 2, 0.25);
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].prompt_tokens == 25);
  CHECK(requests[0].output_tokens == 250);
  CHECK(requests[1].prompt_tokens == 1);
  CHECK(requests[1].output_tokens == 1);
  CHECK(totals(requests).longest == 275);
}
