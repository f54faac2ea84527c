// SPDX-License-Identifier: Apache-2.0
#include "parameters.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "growpage/detail/require.hpp"

namespace growpage::capi {

namespace {

template <class T>
concept Number = std::is_same_v<T, double> || std::is_same_v<T, float>;

}  // namespace

Parameters::Parameters(AnyPolicy& policy) {
  std::visit([this](auto& p) { list(p); }, policy.variant());
}

template <class P>
void Parameters::list(P& p) {
  if constexpr (requires { p.threshold; }) add("threshold", &p.threshold);
  if constexpr (requires { p.low; }) add("low", &p.low);
  if constexpr (requires { p.compact_probability; }) {
    add("compact_probability", &p.compact_probability);
  }
  if constexpr (requires { p.seed; }) add("seed", &p.seed);
  if constexpr (requires { p.min_tokens; }) add("min_tokens", &p.min_tokens);
  if constexpr (requires { p.budget_tokens; }) add("budget_tokens", &p.budget_tokens);
  if constexpr (requires { p.pages; }) add("pages", &p.pages);
  if constexpr (requires { p.demand; }) add("needs_demand", &p.demand);
  if constexpr (requires { p.capacity; }) {
    add("initial_pages", &p.capacity.initial_pages);
    add("max_pages", &p.capacity.max_pages);
  }
  if constexpr (requires { p.retention_options; }) list_retention(p.retention_options);
}

void Parameters::list_retention(RetentionOptions& r) {
  add("retention.score", &r.score);
  add("retention.strategy", &r.strategy);
  add("retention.shared", &r.shared);
  add("retention.recent", &r.recent);
  add("retention.local_per_256", &r.local_per_256);
  add("retention.sinks", &r.sinks);
  add("retention.protect_prompt", &r.protect_prompt);
  add("retention.window", &r.window);
  add("retention.max_pool", &r.max_pool);
  add("retention.global_decay", &r.global_decay);
  add("retention.redundancy_weight", &r.redundancy_weight);
  add("retention.redundancy_temperature", &r.redundancy_temperature);
}

Status Parameters::find(const char* name, std::int32_t kind, Parameter& out) const {
  Status s;
  if (!detail::require_not_null(s, "name", name)) return s;
  std::string names;
  for (std::size_t i = 0; i < size_; ++i) {
    if (all_[i].kind() != kind) continue;
    if (std::string_view(name) == all_[i].name) {
      out = all_[i];
      return {};
    }
    names += (names.empty() ? "" : ", ") + std::string(all_[i].name);
  }
  return Status::invalid("name", std::string_view(name),
                         names.empty() ? "none: the policy has no parameter of this kind" : names);
}

Status Parameter::set(double value) const {
  if (auto* const* d = std::get_if<double*>(&place)) {
    **d = value;
    return {};
  }
  // A float that the double overflows would be undefined, not infinite.
  if (std::isfinite(value) && std::abs(value) > double{std::numeric_limits<float>::max()}) {
    return Status::invalid(name, value, "a 32-bit floating-point number");
  }
  *std::get<float*>(place) = static_cast<float>(value);
  return {};
}

Status Parameter::set(std::int64_t value) const {
  return std::visit(
      [&](auto* to) -> Status {
        using T = std::remove_pointer_t<decltype(to)>;
        if constexpr (!Number<T>) {  // find() gave a parameter of this kind
          constexpr bool wide = std::is_same_v<T, std::uint64_t>;
          constexpr bool full = wide || std::is_same_v<T, std::int32_t>;  // else bool, enum of two
          Status s;
          if (!wide &&
              !detail::require_range(s, name, value, full ? INT32_MIN : 0, full ? INT32_MAX : 1)) {
            return s;
          }
          *to = static_cast<T>(value);
        }
        return {};
      },
      place);
}

void Parameter::get(double& value) const noexcept {
  if (auto* const* d = std::get_if<double*>(&place)) {
    value = **d;
  } else if (auto* const* f = std::get_if<float*>(&place)) {
    value = double{**f};
  }
}

void Parameter::get(std::int64_t& value) const noexcept {
  std::visit(
      [&](auto* from) {
        using T = std::remove_pointer_t<decltype(from)>;
        if constexpr (!Number<T>) value = static_cast<std::int64_t>(*from);
      },
      place);
}

}  // namespace growpage::capi
