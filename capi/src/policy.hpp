// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/growpage.h"
#include "growpage/policy/any_policy.hpp"
#include "handle.hpp"
#include "hooks.hpp"

namespace growpage::capi {

/// The engine's own policy: what UserPolicy::context points to.
struct UserCallback {
  growpage_decide_callback decide = nullptr;
  void* context = nullptr;
  const Hooks* hooks = nullptr;

  /// UserPolicy::callback.
  static Decision call(void* self, const BoundaryContext& boundary) noexcept;
};

/// Behind a growpage_policy.
struct Policy {
  using Handle = growpage_policy;
  static constexpr HandleKind kind = HandleKind::policy;
  static constexpr const char* name = "growpage_policy";

  explicit Policy(const Hooks& h) : hooks(h) {}

  Hooks hooks;
  AnyPolicy policy{FullPolicy{}};
  UserCallback user;
};

/// `from` with the user call-back, if it is one, in `user`, which the policy then points to.
[[nodiscard]] AnyPolicy rebind(const Policy& from, UserCallback& user, const Hooks& hooks);

}  // namespace growpage::capi
