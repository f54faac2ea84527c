// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <array>
#include <cstring>

namespace growpage::fuzz {

void Session::create_policy() {
  constexpr std::array<const char*, 9> names = {"growpage", "full",   "fixed",  "zipage", "random",
                                                "inverse",  "shrink", "nobody", nullptr};
  growpage_policy* p = nullptr;
  const std::uint8_t b = in_.byte();
  const growpage_status s = b < 40 ? growpage_policy_create_user(&decide, this, b & 1, nullptr, &p)
                                   : growpage_policy_create(names[b % names.size()], nullptr, &p);
  if (s != GROWPAGE_OK) return;
  (void)growpage_policy_set_int(p, "initial_pages", in_.value(1, 3));
  (void)growpage_policy_set_int(p, "budget_tokens", in_.within(2, 4) * max_page);
  (void)growpage_policy_set_int(p, "pages", in_.value(2, 4));
  (void)growpage_policy_set_int(p, "min_tokens", 32);
  (void)growpage_policy_set_int(p, "retention.shared", in_.value(0, 1));
  (void)growpage_policy_set_int(p, "retention.strategy", in_.value(0, 1));
  (void)growpage_policy_set_int(p, "retention.recent", in_.value(0, 16));
  if (policies_.size() == 4) {
    (void)growpage_policy_destroy(policies_[0]);
    policies_.erase(policies_.begin());
  }
  policies_.push_back(p);
}

std::int32_t Session::decide(void* context, const growpage_boundary* boundary) {
  return static_cast<Session*>(context)->in_.byte() % 4 + (boundary->pages & 0);
}

void Session::policy() {
  growpage_policy* p = pick(policies_);
  growpage_boundary b{};
  b.struct_size = sizeof b;
  b.request = in_.byte();
  b.pages = in_.small(0, 9);
  b.page_size = in_.small(1, 32);
  b.measured = in_.small(0, 1);
  b.demand = {in_.byte() / 8.0, in_.byte() / 8.0, in_.value(0, 9)};
  std::int32_t decision = 0;
  (void)growpage_policy_decide(p, &b, &decision);
  (void)growpage_policy_validate(p, in_.small(0, 40));
  if (in_.byte() & 1) policy_options(p);
  growpage_parameter parameter{};
  parameter.struct_size = sizeof parameter;
  if (growpage_policy_get_parameter(p, in_.byte() % 26, &parameter) != GROWPAGE_OK) return;
  double d = 0;
  const std::uint64_t w = in_.word();
  std::memcpy(&d, &w, sizeof d);
  (void)growpage_policy_set_double(p, parameter.name, d);
  (void)growpage_policy_get_double(p, parameter.name, &d);
  std::int64_t value = 0;
  (void)growpage_policy_set_int(p, parameter.name, static_cast<std::int64_t>(in_.value(0, 8)));
  (void)growpage_policy_get_int(p, parameter.name, &value);
}

void Session::policy_options(growpage_policy* p) {
  growpage_policy_options options;
  growpage_policy_options_init(&options, sizeof options);
  (void)growpage_policy_get_options(p, &options);
  // Each byte of it may be anything, struct_size too.
  std::array<char, sizeof options> bytes{};
  std::memcpy(bytes.data(), &options, sizeof options);
  for (int i = 0; i < 3; ++i) bytes[in_.word() % bytes.size()] ^= static_cast<char>(in_.byte());
  std::memcpy(&options, bytes.data(), sizeof options);
  if (options.struct_size <= sizeof options) (void)growpage_policy_set_options(p, &options);
  growpage_retention_options retention;
  growpage_retention_options_init(&retention, sizeof retention);
  (void)growpage_policy_get_retention(p, &retention);
  retention.recent = in_.small(0, 16);
  retention.score = in_.small(0, 1);
  (void)growpage_policy_set_retention(p, in_.rarely() ? nullptr : &retention);
  growpage_policy_info info{};
  info.struct_size = in_.rarely() ? in_.byte() % (sizeof info + 1) : sizeof info;
  (void)growpage_policy_get_info(p, in_.small(1, 32), &info);
}

}  // namespace growpage::fuzz
