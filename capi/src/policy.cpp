// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

#include "convert.hpp"
#include "defaults.hpp"
#include "layouts.hpp"
#include "parameters.hpp"
#include "structs.hpp"

namespace growpage::capi {

Decision UserCallback::call(void* self, const BoundaryContext& boundary) noexcept {
  const auto& user = *static_cast<const UserCallback*>(self);
  growpage_boundary in{};
  in.struct_size = sizeof in;
  in.request = boundary.request;
  in.boundary = boundary.boundary;
  in.length = boundary.length;
  in.pages = boundary.pages;
  in.page_size = boundary.page_size;
  in.measured = boundary.measured ? 1 : 0;
  in.demand = {boundary.demand.short_sum, boundary.demand.long_sum, boundary.demand.count};
  in.pressure = boundary.pressure;
  try {
    const std::int32_t answer = user.decide(user.context, &in);
    if (answer >= GROWPAGE_GROW && answer <= GROWPAGE_SHRINK) {
      return static_cast<Decision>(answer);
    }
    user.hooks->log(GROWPAGE_LOG_WARNING, "a policy call-back answered no decision: grow");
  } catch (...) {
    user.hooks->log(GROWPAGE_LOG_WARNING, "a policy call-back threw: grow");
  }
  return Decision::grow;
}

AnyPolicy rebind(const Policy& from, UserCallback& user, const Hooks& hooks) {
  AnyPolicy policy = from.policy;
  if (auto* own = std::get_if<UserPolicy>(&policy.variant())) {
    user = from.user;
    user.hooks = &hooks;
    own->context = &user;
  }
  return policy;
}

namespace {

Status check_page_size(std::int32_t page_size) {
  CacheShape shape;
  shape.layers = shape.query_heads = shape.kv_heads = shape.head_dim = 1;
  shape.page_size = page_size;
  return shape.validate();
}

template <class T>
Status set(Policy& p, const char* name, std::int32_t kind, T value) {
  Parameter parameter;
  if (Status s = Parameters(p.policy).find(name, kind, parameter); !s.ok()) return s;
  return parameter.set(value);
}

template <class T>
Status get(const Policy& p, const char* name, std::int32_t kind, T* value) {
  Status s;
  if (!detail::require_not_null(s, "value", value)) return s;
  AnyPolicy copy = p.policy;  // the list points into a mutable policy
  Parameter parameter;
  if (s = Parameters(copy).find(name, kind, parameter); !s.ok()) return s;
  parameter.get(*value);
  return {};
}

/// Calls f(a, b) for every field of the options that is a parameter of the policy.
template <class P, class F>
void each_option(P& p, growpage_policy_options& o, F&& f) {
  if constexpr (requires { p.threshold; }) f(p.threshold, o.threshold);
  if constexpr (requires { p.low; }) f(p.low, o.low);
  if constexpr (requires { p.compact_probability; }) {
    f(p.compact_probability, o.compact_probability);
  }
  if constexpr (requires { p.seed; }) f(p.seed, o.seed);
  if constexpr (requires { p.min_tokens; }) f(p.min_tokens, o.min_tokens);
  if constexpr (requires { p.budget_tokens; }) f(p.budget_tokens, o.budget_tokens);
  if constexpr (requires { p.pages; }) f(p.pages, o.pages);
  if constexpr (requires { p.capacity; }) {
    f(p.capacity.initial_pages, o.initial_pages);
    f(p.capacity.max_pages, o.max_pages);
  }
}

}  // namespace

}  // namespace growpage::capi

using namespace growpage;
using namespace growpage::capi;
using growpage::detail::require_not_null;
using growpage::detail::require_range;

extern "C" {

growpage_status growpage_policy_create(const char* name, const growpage_hooks* hooks,
                                       growpage_policy** policy) {
  return run(nullptr, [&]() -> Status {
    Status s;
    if (!require_not_null(s, "name", name) || !require_not_null(s, "policy", policy)) return s;
    Hooks memory;
    if (s = Hooks::read(hooks, memory); !s.ok()) return s;
    Result<AnyPolicy> named = AnyPolicy::named(name);
    if (!named.ok()) return named.status();
    Owned<Policy> made(memory);
    made->policy = *named;
    return made.publish(policy);
  });
}

growpage_status growpage_policy_create_user(growpage_decide_callback decide, void* context,
                                            int32_t needs_demand, const growpage_hooks* hooks,
                                            growpage_policy** policy) {
  return run(nullptr, [&]() -> Status {
    Status s;
    if (!require_not_null(s, "decide", reinterpret_cast<const void*>(decide)) ||
        !require_not_null(s, "policy", policy) ||
        !require_range(s, "needs_demand", needs_demand, 0, 1)) {
      return s;
    }
    Hooks memory;
    if (s = Hooks::read(hooks, memory); !s.ok()) return s;
    Owned<Policy> made(memory);
    made->user = {decide, context, &made->hooks};
    UserPolicy user;
    user.callback = &UserCallback::call;
    user.context = &made->user;
    user.demand = needs_demand != 0;
    made->policy = AnyPolicy(user);
    return made.publish(policy);
  });
}

growpage_status growpage_policy_destroy(growpage_policy* policy) {
  return destroy<Policy>(policy, [](Policy&) -> Status { return {}; });
}

growpage_status growpage_policy_get_parameter(const growpage_policy* policy, size_t index,
                                              growpage_parameter* parameter) {
  return with<Policy>(policy, [&](Policy& p) -> Status {
    Status s = check_output("growpage_parameter", parameter);
    if (!s.ok()) return s;
    AnyPolicy copy = p.policy;
    const Parameters all(copy);
    if (index >= all.size()) {
      return Status::invalid("index", std::to_string(index),
                             "below the number of parameters (" + std::to_string(all.size()) + ")");
    }
    write_struct(parameter, {sizeof *parameter, all[index].name, all[index].kind(), 0});
    return {};
  });
}

growpage_status growpage_policy_set_double(growpage_policy* policy, const char* name,
                                           double value) {
  return with<Policy>(policy,
                      [&](Policy& p) { return set(p, name, GROWPAGE_PARAMETER_DOUBLE, value); });
}

growpage_status growpage_policy_set_int(growpage_policy* policy, const char* name, int64_t value) {
  return with<Policy>(
      policy, [&](Policy& p) { return set(p, name, GROWPAGE_PARAMETER_INT, std::int64_t{value}); });
}

growpage_status growpage_policy_get_double(const growpage_policy* policy, const char* name,
                                           double* value) {
  return with<Policy>(policy,
                      [&](Policy& p) { return get(p, name, GROWPAGE_PARAMETER_DOUBLE, value); });
}

growpage_status growpage_policy_get_int(const growpage_policy* policy, const char* name,
                                        int64_t* value) {
  return with<Policy>(policy,
                      [&](Policy& p) { return get(p, name, GROWPAGE_PARAMETER_INT, value); });
}

growpage_status growpage_policy_set_options(growpage_policy* policy,
                                            const growpage_policy_options* options) {
  return with<Policy>(policy, [&](Policy& p) -> Status {
    growpage_policy_options in = default_policy();
    if (Status s = read_required("growpage_policy_options", options, in); !s.ok()) return s;
    std::visit([&](auto& own) { each_option(own, in, [](auto& to, auto& from) { to = from; }); },
               p.policy.variant());
    return {};
  });
}

growpage_status growpage_policy_get_options(const growpage_policy* policy,
                                            growpage_policy_options* options) {
  return with<Policy>(policy, [&](Policy& p) -> Status {
    growpage_policy_options out = default_policy();
    if (Status s = read_required("growpage_policy_options", options, out); !s.ok()) return s;
    std::visit([&](auto& own) { each_option(own, out, [](auto& from, auto& to) { to = from; }); },
               p.policy.variant());
    write_struct(options, out);
    return {};
  });
}

growpage_status growpage_policy_set_retention(growpage_policy* policy,
                                              const growpage_retention_options* options) {
  return with<Policy>(policy, [&](Policy& p) -> Status {
    Status s;
    RetentionOptions retention;
    if (!require_not_null(s, "growpage_retention_options", options)) return s;
    if (s = read_retention(options, retention); !s.ok()) return s;
    return std::visit(
        [&](auto& own) -> Status {
          if constexpr (requires { own.retention_options; }) {
            own.retention_options = retention;
            return {};
          } else {
            return Status::error(StatusCode::unsupported, "growpage_policy", own.name(),
                                 "a policy that evicts");
          }
        },
        p.policy.variant());
  });
}

growpage_status growpage_policy_get_retention(const growpage_policy* policy,
                                              growpage_retention_options* options) {
  return with<Policy>(policy, [&](Policy& p) -> Status {
    if (Status s = check_output("growpage_retention_options", options); !s.ok()) return s;
    write_struct(options, to_c_retention(p.policy.retention()));
    return {};
  });
}

growpage_status growpage_policy_get_info(const growpage_policy* policy, int32_t page_size,
                                         growpage_policy_info* info) {
  return with<Policy>(policy, [&](Policy& p) -> Status {
    if (Status s = check_output("growpage_policy_info", info); !s.ok()) return s;
    if (Status s = check_page_size(page_size); !s.ok()) return s;
    const CapacityLimits limits = p.policy.limits(page_size);
    write_struct(info, {sizeof *info, p.policy.name(), p.policy.needs_demand() ? 1 : 0,
                        p.policy.may_compact() ? 1 : 0, limits.initial_pages, limits.max_pages});
    return {};
  });
}

growpage_status growpage_policy_validate(const growpage_policy* policy, int32_t page_size) {
  return with<Policy>(policy, [&](Policy& p) -> Status {
    if (Status s = check_page_size(page_size); !s.ok()) return s;
    return p.policy.validate(page_size);
  });
}

growpage_status growpage_policy_decide(growpage_policy* policy, const growpage_boundary* boundary,
                                       int32_t* decision) {
  return with<Policy>(policy, [&](Policy& p) -> Status {
    Status s;
    growpage_boundary in{};
    if (!require_not_null(s, "decision", decision)) return s;
    if (s = read_required("growpage_boundary", boundary, in); !s.ok()) return s;
    if (!require_range(s, "growpage_boundary.pages", in.pages, 0, INT32_MAX) ||
        !require_range(s, "growpage_boundary.page_size", in.page_size, 1, 1 << 20) ||
        !require_range(s, "growpage_boundary.measured", in.measured, 0, 1)) {
      return s;
    }
    BoundaryContext context;
    context.request = in.request;
    context.boundary = in.boundary;
    context.length = in.length;
    context.pages = in.pages;
    context.page_size = in.page_size;
    context.measured = in.measured != 0;
    context.demand = {in.demand.short_sum, in.demand.long_sum, in.demand.count};
    context.pressure = in.pressure;
    *decision = static_cast<std::int32_t>(p.policy.decide(context));
    return {};
  });
}
}
