// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>
#include <variant>

#include "growpage/policy/capacity_policy.hpp"
#include "growpage/policy/fixed.hpp"
#include "growpage/policy/full.hpp"
#include "growpage/policy/growpage.hpp"
#include "growpage/policy/inverse.hpp"
#include "growpage/policy/random.hpp"
#include "growpage/policy/shrink.hpp"
#include "growpage/policy/zipage.hpp"

namespace growpage {

/// The engine's own policy as a plain call-back, for C, bindings and run-time choice. A C++ engine
/// can also pass any type that models CapacityPolicy to the Scheduler directly.
struct UserPolicy {
  /// Called at every boundary; must be deterministic and must not call back into the scheduler.
  Decision (*callback)(void* context, const BoundaryContext& boundary) = nullptr;
  void* context = nullptr;  ///< borrowed; outlives the policy
  bool demand = true;       ///< whether Δ is measured for it
  CapacityLimits capacity;
  RetentionOptions retention_options;

  [[nodiscard]] const char* name() const noexcept { return "user"; }
  [[nodiscard]] bool needs_demand() const noexcept { return demand; }
  [[nodiscard]] bool may_compact() const noexcept { return true; }
  [[nodiscard]] CapacityLimits limits(std::int32_t) const noexcept { return capacity; }
  [[nodiscard]] RetentionOptions retention() const noexcept { return retention_options; }
  [[nodiscard]] Status validate(std::int32_t page_size) const {
    Status s;
    if (!detail::require_not_null(s, "UserPolicy::callback",
                                  reinterpret_cast<const void*>(callback))) {
      return s;
    }
    s = detail::validate_limits("UserPolicy", capacity.initial_pages, capacity.max_pages);
    return s.ok() ? retention_options.validate(page_size) : s;
  }
  [[nodiscard]] Decision decide(const BoundaryContext& boundary) noexcept {
    return callback(context, boundary);
  }
};

static_assert(CapacityPolicy<UserPolicy>);

/// One of the policies, chosen at run time. Itself a CapacityPolicy.
class AnyPolicy {
 public:
  using Variant = std::variant<FullPolicy, FixedPolicy, ZipagePolicy, GrowPagePolicy, RandomPolicy,
                               InversePolicy, ShrinkPolicy, UserPolicy>;

  AnyPolicy(Variant policy) : policy_(std::move(policy)) {}  // NOLINT(google-explicit-constructor)

  /// The policy called `name` with its defaults: "full", "fixed", "zipage", "growpage", "random",
  /// "inverse" or "shrink"; invalid_argument otherwise ("user" needs a call-back: construct it).
  [[nodiscard]] static Result<AnyPolicy> named(std::string_view name);

  [[nodiscard]] const char* name() const noexcept {
    return std::visit([](const auto& p) { return p.name(); }, policy_);
  }
  [[nodiscard]] bool needs_demand() const noexcept {
    return std::visit([](const auto& p) { return p.needs_demand(); }, policy_);
  }
  [[nodiscard]] bool may_compact() const noexcept {
    return std::visit([](const auto& p) { return p.may_compact(); }, policy_);
  }
  [[nodiscard]] CapacityLimits limits(std::int32_t page_size) const noexcept {
    return std::visit([=](const auto& p) { return p.limits(page_size); }, policy_);
  }
  [[nodiscard]] RetentionOptions retention() const noexcept {
    return std::visit([](const auto& p) { return p.retention(); }, policy_);
  }
  [[nodiscard]] Status validate(std::int32_t page_size) const {
    return std::visit([=](const auto& p) { return p.validate(page_size); }, policy_);
  }
  [[nodiscard]] Decision decide(const BoundaryContext& context) noexcept {
    return std::visit([&](auto& p) { return p.decide(context); }, policy_);
  }
  [[nodiscard]] Variant& variant() noexcept { return policy_; }
  [[nodiscard]] const Variant& variant() const noexcept { return policy_; }

 private:
  Variant policy_;
};

static_assert(CapacityPolicy<AnyPolicy>);

}  // namespace growpage

#ifdef GROWPAGE_HEADER_ONLY
#include "growpage/detail/any_policy.ipp"
#endif
