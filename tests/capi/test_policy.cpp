// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>

#include "capi/engine.hpp"
#include "growpage/growpage.h"
#include "growpage/policy/any_policy.hpp"
#include "support/catch.hpp"

namespace growpage::test {
namespace {

growpage_policy* make(const char* name) {
  growpage_policy* policy = nullptr;
  REQUIRE(growpage_policy_create(name, nullptr, &policy) == GROWPAGE_OK);
  return policy;
}

growpage_boundary boundary(double delta) {
  growpage_boundary b{};
  b.struct_size = sizeof b;
  b.pages = 9;
  b.page_size = 256;
  b.length = 9 * 256;
  b.measured = 1;
  b.demand = {0.5 + delta, 0.5, 1};
  return b;
}

struct Asked {
  int calls = 0;
  std::int32_t answer = GROWPAGE_COMPACT;
  bool throws = false;
  int warnings = 0;
};

std::int32_t decide(void* context, const growpage_boundary* b) {
  auto& asked = *static_cast<Asked*>(context);
  ++asked.calls;
  if (b->struct_size != sizeof *b) return -1;
  if (asked.throws) throw std::runtime_error("no");
  return asked.answer;
}

void warn(void* context, std::int32_t level, const char*) {
  if (level == GROWPAGE_LOG_WARNING) ++static_cast<Asked*>(context)->warnings;
}

}  // namespace

TEST_CASE("C: every parameter of every policy is listed, set and got", "[capi]") {
  const std::pair<const char*, std::size_t> policies[] = {
      {"full", 0},    {"fixed", 13},   {"zipage", 13}, {"growpage", 15},
      {"random", 16}, {"inverse", 14}, {"shrink", 16}};
  for (const auto& [name, expected] : policies) {
    INFO(name);
    growpage_policy* policy = make(name);
    std::set<std::string> names;
    growpage_parameter p{};
    p.struct_size = sizeof p;
    std::size_t count = 0;
    while (growpage_policy_get_parameter(policy, count, &p) == GROWPAGE_OK) {
      ++count;
      INFO(p.name);
      CHECK(names.insert(p.name).second);
      double d = -1;
      std::int64_t i = -1;
      if (p.kind == GROWPAGE_PARAMETER_DOUBLE) {
        CHECK(growpage_policy_set_double(policy, p.name, 0.25) == GROWPAGE_OK);
        CHECK(growpage_policy_get_double(policy, p.name, &d) == GROWPAGE_OK);
        CHECK(d == 0.25);
        CHECK(growpage_policy_set_int(policy, p.name, 1) == GROWPAGE_INVALID_ARGUMENT);
      } else {
        CHECK(growpage_policy_set_int(policy, p.name, 1) == GROWPAGE_OK);
        CHECK(growpage_policy_get_int(policy, p.name, &i) == GROWPAGE_OK);
        CHECK(i == 1);
        CHECK(growpage_policy_get_double(policy, p.name, &d) == GROWPAGE_INVALID_ARGUMENT);
      }
    }
    CHECK(count == expected);
    CHECK(growpage_policy_destroy(policy) == GROWPAGE_OK);
  }
  growpage_policy* none = nullptr;
  CHECK(growpage_policy_create("nobody", nullptr, &none) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_policy_create(nullptr, nullptr, &none) == GROWPAGE_INVALID_ARGUMENT);
}

TEST_CASE("C: values that do not fit a parameter are refused", "[capi]") {
  growpage_policy* policy = make("random");
  CHECK(growpage_policy_set_int(policy, "initial_pages", std::int64_t{1} << 31) ==
        GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_policy_set_int(policy, "retention.score", 2) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_policy_set_double(policy, "retention.global_decay", 1e300) ==
        GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_policy_set_int(policy, "threshold", 1) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_policy_set_int(policy, nullptr, 1) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_policy_set_int(policy, "seed", -1) == GROWPAGE_OK);
  growpage_policy_options options;
  growpage_policy_options_init(&options, sizeof options);
  REQUIRE(growpage_policy_get_options(policy, &options) == GROWPAGE_OK);
  CHECK(options.seed == ~std::uint64_t{0});
  CHECK(growpage_policy_set_double(policy, "compact_probability", 2) == GROWPAGE_OK);
  CHECK(growpage_policy_validate(policy, 256) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_policy_set_double(policy, "compact_probability", 1) == GROWPAGE_OK);
  CHECK(growpage_policy_validate(policy, 256) == GROWPAGE_OK);
  CHECK(growpage_policy_validate(policy, 0) == GROWPAGE_INVALID_ARGUMENT);
  CHECK(growpage_policy_destroy(policy) == GROWPAGE_OK);
}

TEST_CASE("C: options typed, retention, and what a policy is", "[capi]") {
  growpage_policy* policy = make("fixed");
  growpage_policy_options options;
  growpage_policy_options_init(&options, sizeof options);
  CHECK(options.budget_tokens == FixedPolicy{}.budget_tokens);
  CHECK(options.compact_probability == 0.7);
  CHECK(options.initial_pages == 12);
  options.budget_tokens = 512;
  options.threshold = 99;  // not a parameter of this policy
  REQUIRE(growpage_policy_set_options(policy, &options) == GROWPAGE_OK);
  std::int64_t budget = 0;
  REQUIRE(growpage_policy_get_int(policy, "budget_tokens", &budget) == GROWPAGE_OK);
  CHECK(budget == 512);
  growpage_policy_info info{};
  info.struct_size = sizeof info;
  REQUIRE(growpage_policy_get_info(policy, 256, &info) == GROWPAGE_OK);
  CHECK(std::string(info.name) == "fixed");
  CHECK(info.initial_pages == 2);
  CHECK(info.needs_demand == 0);
  CHECK(info.may_compact == 1);
  CHECK(growpage_policy_get_info(policy, 0, &info) == GROWPAGE_INVALID_ARGUMENT);

  growpage_retention_options retention;
  growpage_retention_options_init(&retention, sizeof retention);
  CHECK(retention.local_per_256 == 64);
  retention.recent = 8;
  REQUIRE(growpage_policy_set_retention(policy, &retention) == GROWPAGE_OK);
  retention.recent = 0;
  REQUIRE(growpage_policy_get_retention(policy, &retention) == GROWPAGE_OK);
  CHECK(retention.recent == 8);
  CHECK(growpage_policy_destroy(policy) == GROWPAGE_OK);

  growpage_policy* full = make("full");
  CHECK(growpage_policy_set_retention(full, &retention) == GROWPAGE_UNSUPPORTED);
  CHECK(growpage_policy_destroy(full) == GROWPAGE_OK);
  growpage_policy* zipage = make("zipage");
  REQUIRE(growpage_policy_get_retention(zipage, &retention) == GROWPAGE_OK);
  CHECK(retention.score == GROWPAGE_SCORE_WINDOW);
  CHECK(retention.sinks == 4);
  CHECK(growpage_policy_destroy(zipage) == GROWPAGE_OK);
}

TEST_CASE("C: decisions for engines with a scheduler of their own", "[capi]") {
  growpage_policy* policy = make("growpage");
  std::int32_t decision = -1;
  growpage_boundary b = boundary(0.1);
  REQUIRE(growpage_policy_decide(policy, &b, &decision) == GROWPAGE_OK);
  CHECK(decision == GROWPAGE_GROW);
  b = boundary(-0.1);
  REQUIRE(growpage_policy_decide(policy, &b, &decision) == GROWPAGE_OK);
  CHECK(decision == GROWPAGE_COMPACT);
  CHECK(growpage_demand_delta(&b.demand) == Approx(-0.1));
  CHECK(growpage_demand_delta(nullptr) == 0.0);
  REQUIRE(growpage_policy_set_double(policy, "threshold", -0.2) == GROWPAGE_OK);
  REQUIRE(growpage_policy_decide(policy, &b, &decision) == GROWPAGE_OK);
  CHECK(decision == GROWPAGE_GROW);
  CHECK(growpage_policy_destroy(policy) == GROWPAGE_OK);
}

TEST_CASE("C: the engine's own policy decides, and cannot do harm", "[capi]") {
  Asked asked;
  growpage_hooks hooks;
  growpage_hooks_init(&hooks, sizeof hooks);
  hooks.log = &warn;
  hooks.log_context = &asked;
  growpage_policy* policy = nullptr;
  REQUIRE(growpage_policy_create_user(&decide, &asked, 1, &hooks, &policy) == GROWPAGE_OK);
  std::int32_t decision = -1;
  growpage_boundary b = boundary(0);
  REQUIRE(growpage_policy_decide(policy, &b, &decision) == GROWPAGE_OK);
  CHECK(decision == GROWPAGE_COMPACT);
  CHECK(asked.warnings == 0);
  asked.answer = 17;
  REQUIRE(growpage_policy_decide(policy, &b, &decision) == GROWPAGE_OK);
  CHECK(decision == GROWPAGE_GROW);
  CHECK(asked.warnings == 1);
  asked.throws = true;
  REQUIRE(growpage_policy_decide(policy, &b, &decision) == GROWPAGE_OK);
  CHECK(decision == GROWPAGE_GROW);
  CHECK(asked.warnings == 2);
  asked = {};

  // The scheduler keeps working after the policy's handle is gone.
  REQUIRE(growpage_policy_set_int(policy, "initial_pages", 2) == GROWPAGE_OK);
  const Engine engine(EngineOptions(), nullptr, policy);
  REQUIRE(growpage_policy_destroy(policy) == GROWPAGE_OK);
  engine.submit_all();
  while (engine.step()) {
  }
  CHECK(asked.calls > 0);
  CHECK(engine.stats().compact == asked.calls);
  CHECK(engine.stats().decode_tokens == 900);
  CHECK(growpage_policy_create_user(nullptr, nullptr, 0, nullptr, &policy) ==
        GROWPAGE_INVALID_ARGUMENT);
}

}  // namespace growpage::test
