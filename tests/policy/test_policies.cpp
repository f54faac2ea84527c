// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>

#include "growpage/policy/any_policy.hpp"
#include "policy/conformance.hpp"

namespace growpage {
namespace {

using test::boundary;

TEST_CASE("every policy conforms") {
  test::check_policy_conformance(FullPolicy{});
  test::check_policy_conformance(FixedPolicy{});
  test::check_policy_conformance(ZipagePolicy{});
  test::check_policy_conformance(GrowPagePolicy{});
  test::check_policy_conformance(RandomPolicy{});
  test::check_policy_conformance(InversePolicy{});
  test::check_policy_conformance(ShrinkPolicy{});
  UserPolicy user;
  user.callback = [](void*, const BoundaryContext& c) {
    return c.pages < 12 ? Decision::grow : Decision::compact;
  };
  test::check_policy_conformance(user);
  for (const char* name : {"full", "fixed", "zipage", "growpage", "random", "inverse", "shrink"}) {
    const auto policy = AnyPolicy::named(name);
    REQUIRE(policy.ok());
    CHECK(policy->name() == std::string(name));
    test::check_policy_conformance(*policy);
  }
}

TEST_CASE("full always grows and never lets a request be compacted") {
  FullPolicy policy;
  CHECK(policy.decide(boundary(-1)) == Decision::grow);
  CHECK_FALSE(policy.may_compact());
  CHECK_FALSE(policy.needs_demand());
}

TEST_CASE("fixed grows to its budget, then holds") {
  FixedPolicy policy;
  CHECK(policy.limits(256).initial_pages == 16);
  CHECK(policy.decide(boundary(1, 15)) == Decision::grow);
  CHECK(policy.decide(boundary(1, 16)) == Decision::compact);
  CHECK(policy.decide(boundary(1, 17)) == Decision::compact);
  CHECK(policy.decide(boundary(1, 63, 64)) == Decision::grow);
  CHECK(policy.decide(boundary(1, 64, 64)) == Decision::compact);
}

TEST_CASE("zipage compacts at 8 pages + 1 with its own scoring") {
  ZipagePolicy policy;
  CHECK(policy.decide(boundary(1, 8)) == Decision::grow);
  CHECK(policy.decide(boundary(1, 9)) == Decision::compact);
  const RetentionOptions r = policy.retention();
  CHECK(r.score == ScoreKind::window);
  CHECK(r.window == 16);
  CHECK(r.max_pool == 5);
  CHECK(r.global_decay == Approx(0.8));
  CHECK(r.sinks == 4);
  CHECK(r.local_per_256 == 0);
}

TEST_CASE("growpage grows strictly above its threshold and never shrinks") {
  GrowPagePolicy policy;
  CHECK(policy.decide(boundary(1e-12)) == Decision::grow);
  CHECK(policy.decide(boundary(0.0)) == Decision::compact);
  CHECK(policy.decide(boundary(-1e-12)) == Decision::compact);
  CHECK(policy.decide(boundary(-0.9)) == Decision::compact);
  CHECK(policy.decide(boundary(std::numeric_limits<double>::quiet_NaN())) == Decision::compact);
  policy.threshold = 0.02;
  CHECK(policy.decide(boundary(0.0199)) == Decision::compact);
  CHECK(policy.decide(boundary(0.0201)) == Decision::grow);
  BoundaryContext blind = boundary(-1);
  blind.measured = false;
  CHECK(policy.decide(blind) == Decision::grow);  // one page or no candidates: grow
}

TEST_CASE("inverse mirrors growpage at threshold 0") {
  GrowPagePolicy forward;
  InversePolicy inverse;
  for (const double delta : {-0.5, -1e-9, 0.0, 1e-9, 0.5}) {
    CHECK(forward.decide(boundary(delta)) != inverse.decide(boundary(delta)));
  }
  CHECK(inverse.decide(boundary(0.0)) == Decision::grow);
}

TEST_CASE("shrink holds on [-0.005, 0], and at its floor") {
  ShrinkPolicy policy;
  // Δ = short − long is a difference of doubles near 0.5: test just beside the ends, not on them.
  CHECK(policy.decide(boundary(-0.0051)) == Decision::shrink);
  CHECK(policy.decide(boundary(-0.0049)) == Decision::compact);
  CHECK(policy.decide(boundary(0.0)) == Decision::compact);
  CHECK(policy.decide(boundary(0.001)) == Decision::grow);
  CHECK(policy.decide(boundary(-1, 5)) == Decision::shrink);   // to 4 pages = 1024 tokens
  CHECK(policy.decide(boundary(-1, 4)) == Decision::compact);  // 3 pages would be below
  // Exactly −0.005 holds.
  BoundaryContext exact = boundary(0);
  exact.demand = {-0.005, 0.0, 1};
  CHECK(policy.decide(exact) == Decision::compact);
}

TEST_CASE("random compacts with its probability, seeded, by request and boundary") {
  RandomPolicy policy;
  int compacted = 0;
  constexpr int n = 20000;
  for (int i = 0; i < n; ++i) {
    BoundaryContext context = boundary(0);
    context.request = static_cast<std::uint64_t>(i / 20);
    context.boundary = i % 20;
    compacted += policy.decide(context) == Decision::compact ? 1 : 0;
  }
  CHECK(compacted > n * 0.69);  // 3 sigma of 20,000 draws is 0.0097
  CHECK(compacted < n * 0.71);

  RandomPolicy other = policy;
  other.seed = 1;
  int differ = 0;
  for (int i = 0; i < 1000; ++i) {
    BoundaryContext context = boundary(0);
    context.boundary = i;
    differ += policy.decide(context) != other.decide(context) ? 1 : 0;
  }
  CHECK(differ > 300);  // 2 · 0.7 · 0.3 of them
  policy.compact_probability = 0;
  CHECK(policy.decide(boundary(0)) == Decision::grow);
  policy.compact_probability = 1;
  CHECK(policy.decide(boundary(0)) == Decision::compact);
}

TEST_CASE("a user policy sees the boundary and its own context") {
  int calls = 0;
  UserPolicy user;
  user.context = &calls;
  user.callback = [](void* context, const BoundaryContext& c) {
    ++*static_cast<int*>(context);
    return c.demand.delta() > 0.1 ? Decision::grow : Decision::shrink;
  };
  AnyPolicy policy(user);
  CHECK(policy.decide(boundary(0.2)) == Decision::grow);
  CHECK(policy.decide(boundary(0.0)) == Decision::shrink);
  CHECK(calls == 2);
}

template <class P>
void refuses(const P& policy, const char* argument) {
  const Status s = policy.validate(256);
  REQUIRE(s == StatusCode::invalid_argument);
  REQUIRE(s.detail() != nullptr);
  CHECK(s.detail()->argument == argument);
  CHECK_FALSE(s.detail()->value.empty());
  CHECK_FALSE(s.detail()->allowed.empty());
}

TEST_CASE("parameters out of range are refused by name") {
  FixedPolicy fixed;
  fixed.budget_tokens = 256;
  refuses(fixed, "FixedPolicy::budget_tokens");
  fixed.budget_tokens = 4000;
  refuses(fixed, "FixedPolicy::budget_tokens");
  ZipagePolicy zipage;
  zipage.pages = 1;
  refuses(zipage, "ZipagePolicy::pages");
  GrowPagePolicy grow;
  grow.threshold = std::numeric_limits<double>::quiet_NaN();
  refuses(grow, "GrowPagePolicy::threshold");
  grow = {};
  grow.capacity.initial_pages = 0;
  refuses(grow, "GrowPagePolicy::capacity.initial_pages");
  grow = {};
  grow.capacity.max_pages = 1;
  refuses(grow, "GrowPagePolicy::capacity.max_pages");
  RandomPolicy random;
  random.compact_probability = 1.5;
  refuses(random, "RandomPolicy::compact_probability");
  random = {};
  random.capacity.initial_pages = -1;
  refuses(random, "RandomPolicy::capacity.initial_pages");
  InversePolicy inverse;
  inverse.capacity.initial_pages = 0;
  refuses(inverse, "InversePolicy::capacity.initial_pages");
  ShrinkPolicy shrink;
  shrink.low = 0.1;
  refuses(shrink, "ShrinkPolicy::low");
  shrink = {};
  shrink.min_tokens = 10;
  refuses(shrink, "ShrinkPolicy::min_tokens");
  shrink = {};
  shrink.capacity.initial_pages = 0;
  refuses(shrink, "ShrinkPolicy::capacity.initial_pages");
  refuses(UserPolicy{}, "UserPolicy::callback");
  UserPolicy user;
  user.callback = [](void*, const BoundaryContext&) { return Decision::grow; };
  user.capacity.initial_pages = 0;
  refuses(user, "UserPolicy::capacity.initial_pages");
  CHECK(AnyPolicy::named("grow").code() == StatusCode::invalid_argument);
}

}  // namespace
}  // namespace growpage
