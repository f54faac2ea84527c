// SPDX-License-Identifier: Apache-2.0
// Whole replays, small ones: every policy, both signals, both ways of preemption.
#include <cstdint>
#include <string>
#include <vector>

#include "growpage/observe/decision_log.hpp"
#include "mixed_workload.hpp"
#include "options.hpp"
#include "run.hpp"
#include "support/catch.hpp"
#include "tensor_generator.hpp"

using namespace growpage::replay;  // NOLINT(google-build-using-namespace)
using growpage::DecisionKind;
using growpage::DecisionRecord;
using growpage::Preemption;

namespace {

std::vector<TraceRequest> small_workload(std::int32_t questions, double mean_output) {
  const Benchmark benchmark{"small", questions, 4, mean_output, 12};
  MixedWorkloadOptions options;
  options.output_cap = 3 * static_cast<std::int64_t>(mean_output);
  return mixed_workload({&benchmark, 1}, options);
}

/// Pages of 16 tokens, few of them, little promised to a request before its decisions.
ReplayOptions small_options(SignalKind signal) {
  ReplayOptions options;
  options.signal = signal;
  options.shape = {2, 4, 2, 32, 0, 16};
  options.pages = 48;
  options.initial_pages = 1;
  options.budget = 128;
  options.max_running = 32;
  options.max_batched_tokens = 256;
  options.check_every = 1;
  fill_defaults(options);
  return options;
}

}  // namespace

TEST_CASE("process: every policy replays to the end in a pool too small, with invariants checked") {
  const std::vector<TraceRequest> workload = small_workload(15, 180);
  const auto preemption = GENERATE(Preemption::recompute, Preemption::swap);
  ReplayOptions options = small_options(SignalKind::process);
  options.preemption = preemption;
  for (const std::string& policy : all_policies()) {
    CAPTURE(policy, static_cast<int>(preemption));
    const RunResult r = run_policy(options, workload, policy, {});
    CHECK(r.failure == "");
    CHECK(r.policy == policy);
    CHECK(r.counters.finished == 60);
    CHECK(r.counters.decode_tokens == totals(workload).output_tokens);
    CHECK(r.seconds > 0);
    CHECK(r.tpot_ms > 4);  // at least the overhead of a step
    CHECK(r.resident() > 1);
    CHECK(r.kv_tokens() * r.resident() <= 48 * 16);
    // Under fixed budgets admission promises every page a request may come to hold.
    const bool promised = policy == "fixed" || policy == "zipage";
    if (!promised) CHECK(r.counters.preempt > 0);
    if (policy == "full") CHECK(r.counters.compact == 0);
    if (policy != "full") CHECK(r.counters.compact > 0);
    if (policy == "shrink") CHECK(r.counters.shrink > 0);
    if (preemption == Preemption::swap && !promised) CHECK(r.counters.swap_out > 0);
    if (preemption == Preemption::recompute) CHECK(r.counters.swap_out == 0);
  }
}

TEST_CASE("process: overcommitting admission preempts under every policy and loses nothing") {
  const std::vector<TraceRequest> workload = small_workload(15, 180);
  ReplayOptions options = small_options(SignalKind::process);
  options.preemption = GENERATE(Preemption::recompute, Preemption::swap);
  options.overcommit = true;
  options.initial_pages = 8;
  for (const std::string& policy : all_policies()) {
    CAPTURE(policy);
    const RunResult r = run_policy(options, workload, policy, {});
    CHECK(r.failure == "");
    CHECK(r.counters.finished == 60);
    CHECK(r.counters.preempt > 0);
  }
}

TEST_CASE("process: with memory to spare the decisions are those of the process") {
  const std::vector<TraceRequest> workload = small_workload(12, 600);
  ReplayOptions options = small_options(SignalKind::process);
  options.pages = 8000;
  options.initial_pages = 4;
  const RunResult growpage = run_policy(options, workload, "growpage", {});
  const RunResult inverse = run_policy(options, workload, "inverse", {});
  const RunResult random = run_policy(options, workload, "random", {});
  const RunResult shrink = run_policy(options, workload, "shrink", {});
  for (const RunResult* r : {&growpage, &inverse, &random, &shrink}) {
    CHECK(r->failure == "");
    CHECK(r->counters.fallback == 0);
    CHECK(r->counters.preempt == 0);
  }
  CHECK(growpage.grow_percent() == Approx(30.9).margin(4));
  CHECK(growpage.grow_percent() + inverse.grow_percent() == Approx(100).margin(1e-9));
  CHECK(random.grow_percent() == Approx(30).margin(4));
  CHECK(shrink.kv_tokens() < growpage.kv_tokens());
  CHECK(growpage.kv_tokens() < inverse.kv_tokens());
}

TEST_CASE("process: less KV a request, more tokens a second when memory is short") {
  const std::vector<TraceRequest> workload = small_workload(40, 600);
  ReplayOptions options = small_options(SignalKind::process);
  options.pages = 400;
  options.initial_pages = 4;
  options.check_every = 0;
  options.max_running = 512;
  // The paper's proportions: KV traffic, not the fixed costs, must rule the clock.
  options.costs.weight_bytes = 0;
  options.costs.parameters = 0;
  options.costs.step_overhead_s = 1e-6;
  options.costs.bandwidth = 1e9;
  std::vector<RunResult> r;
  for (const char* policy : {"shrink", "growpage", "inverse", "full"}) {
    r.push_back(run_policy(options, workload, policy, {}));
    CHECK(r.back().failure == "");
  }
  for (std::size_t i = 1; i < r.size(); ++i) {
    CAPTURE(r[i].policy);
    CHECK(r[i - 1].kv_tokens() < r[i].kv_tokens());
    CHECK(r[i - 1].tokens_per_s() > r[i].tokens_per_s());
  }
}

TEST_CASE("process: arrivals are honoured and shared prefixes hit") {
  std::vector<TraceRequest> workload(3);
  for (std::size_t i = 0; i < workload.size(); ++i) {
    workload[i].arrival_s = 100.0 * static_cast<double>(i);
    workload[i].prompt_tokens = 520;
    workload[i].output_tokens = 5;
    workload[i].blocks = {1, i};
  }
  ReplayOptions options = small_options(SignalKind::process);
  options.pages = 200;
  RunResult r = run_policy(options, workload, "growpage", {});
  CHECK(r.failure == "");
  CHECK(r.seconds > 200);
  CHECK(r.seconds < 201);
  CHECK(r.counters.prefix_query_tokens == 3 * 520);
  CHECK(r.counters.prefix_hit_tokens == 2 * 512);  // 32 whole pages each
  options.rate_scale = 100;
  r = run_policy(options, workload, "growpage", {});
  CHECK(r.seconds > 2);
  CHECK(r.seconds < 3);
}

TEST_CASE("process: fences may come late") {
  const std::vector<TraceRequest> workload = small_workload(10, 150);
  ReplayOptions options = small_options(SignalKind::process);
  options.preemption = Preemption::swap;
  for (const std::int64_t delay : {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}}) {
    CAPTURE(delay);
    options.fence_delay = delay;
    CHECK(run_policy(options, workload, "shrink", {}).failure == "");
    CHECK(run_policy(options, workload, "full", {}).failure == "");
  }
}

TEST_CASE("kernels: every policy replays to the end in a pool too small") {
  const std::vector<TraceRequest> workload = small_workload(6, 150);
  REQUIRE(workload.size() == 24);
  const auto preemption = GENERATE(Preemption::recompute, Preemption::swap);
  ReplayOptions options = small_options(SignalKind::kernels);
  options.preemption = preemption;
  for (const std::string& policy : all_policies()) {
    CAPTURE(policy, static_cast<int>(preemption));
    const RunResult r = run_policy(options, workload, policy, {});
    CHECK(r.failure == "");
    CHECK(r.counters.finished == 24);
    CHECK(r.counters.decode_tokens == totals(workload).output_tokens);
    CHECK(r.seconds > 0);
    if (policy == "full") CHECK(r.counters.preempt > 0);
    if (policy != "full") CHECK(r.counters.compact > 0);
  }
}

TEST_CASE("kernels: measured demand rises in diffuse phases and falls in concentrated ones") {
  const std::vector<TraceRequest> workload = small_workload(6, 600);
  ReplayOptions options = small_options(SignalKind::kernels);
  options.pages = 4000;
  options.initial_pages = 4;
  options.check_every = 0;
  const TensorGenerator generator(options.shape, options.seed);
  std::int64_t decisions[2] = {};
  std::int64_t rising[2] = {};
  RunHooks hooks;
  hooks.on_decision = [&](const DecisionRecord& d) {
    const std::int64_t position = d.length - 1;
    // Well inside a phase, when the short summary has forgotten the one before.
    if (!d.measured || position % TensorGenerator::phase_tokens < 40) return;
    const auto wide = static_cast<std::size_t>(generator.diffuse(d.tag, position));
    ++decisions[wide];
    rising[wide] += d.delta > 0 ? 1 : 0;
    CHECK((d.kind == DecisionKind::grow) == (d.delta > 0));
  };
  const RunResult r = run_policy(options, workload, "growpage", hooks);
  CHECK(r.failure == "");
  REQUIRE(decisions[0] > 50);
  REQUIRE(decisions[1] > 20);
  CAPTURE(rising[0], rising[1]);
  CHECK(static_cast<double>(rising[1]) > 0.7 * static_cast<double>(decisions[1]));
  CHECK(static_cast<double>(rising[0]) < 0.4 * static_cast<double>(decisions[0]));
}

TEST_CASE("equal options give equal decisions") {
  const std::vector<TraceRequest> workload = small_workload(6, 150);
  const auto signal = GENERATE(SignalKind::process, SignalKind::kernels);
  const ReplayOptions options = small_options(signal);
  const auto log = [&] {
    std::string out;
    RunHooks hooks;
    hooks.on_decision = [&](const DecisionRecord& d) { growpage::append_jsonl(out, d); };
    CHECK(run_policy(options, workload, "shrink", hooks).failure == "");
    return out;
  };
  const std::string first = log();
  CHECK(first.size() > 1000);
  CHECK(first == log());
}

TEST_CASE("what cannot run says why") {
  const std::vector<TraceRequest> workload = small_workload(2, 600);
  ReplayOptions options = small_options(SignalKind::process);
  options.pages = 4;
  RunResult r = run_policy(options, workload, "full", {});
  CHECK(r.failure.find("request_too_large") != std::string::npos);
  options = small_options(SignalKind::process);
  options.budget = 100;  // not a multiple of the page size
  r = run_policy(options, workload, "fixed", {});
  CHECK(r.failure.find("FixedPolicy::budget_tokens") != std::string::npos);
  options = small_options(SignalKind::kernels);
  options.shape.head_dim = 16;
  r = run_policy(options, workload, "growpage", {});
  CHECK(r.failure.find("head_dim") != std::string::npos);
  r = run_policy(options, workload, "nobody", {});
  CHECK(r.failure.find("nobody") != std::string::npos);
}

TEST_CASE("KV tokens are averaged over time, and over requests whatever their length") {
  std::vector<TraceRequest> workload = small_workload(1, 100);
  REQUIRE(workload.size() == 4);
  workload.resize(2);
  workload[0].output_tokens = 9;
  workload[1].output_tokens = 101;
  ReplayOptions options = small_options(SignalKind::process);
  options.pages = 64;
  const RunResult r = run_policy(options, workload, "full", {});
  REQUIRE(r.failure == "");
  // The first token comes from the prompt; the step of the next one attends to the prompt and it.
  const auto prompt = static_cast<double>(workload[0].prompt_tokens);
  REQUIRE(workload[1].prompt_tokens == workload[0].prompt_tokens);
  const double mean_short = prompt + (1.0 + 8) / 2;
  const double mean_long = prompt + (1.0 + 100) / 2;
  CHECK(r.kv_per_request == Approx((mean_short + mean_long) / 2));
  CHECK(r.kv_tokens() > r.kv_per_request);
}
