// SPDX-License-Identifier: Apache-2.0
#include "setup.hpp"

#include <fmt/format.h>

#include <type_traits>

namespace growpage::eval {

Setup make_setup(const EvalOptions& options, const std::string& name, std::int32_t budget) {
  Setup setup{name, *AnyPolicy::named(name), options.summary, options.demand, false};
  if (budget > 0) setup.name += fmt::format(" {}", budget);
  std::visit(
      [&](auto& p) {
        using P = std::remove_reference_t<decltype(p)>;
        if constexpr (requires { p.capacity; }) p.capacity.initial_pages = options.initial_pages;
        if constexpr (requires { p.retention_options; } && !std::is_same_v<P, ZipagePolicy>) {
          p.retention_options = options.retention;
        }
        if constexpr (std::is_same_v<P, FixedPolicy>) p.budget_tokens = budget * options.page_size;
        if constexpr (std::is_same_v<P, ZipagePolicy>) p.pages = budget;
        if constexpr (std::is_same_v<P, GrowPagePolicy>) p.threshold = options.threshold;
        if constexpr (std::is_same_v<P, RandomPolicy>) {
          p.compact_probability = options.random_compact;
        }
        if constexpr (std::is_same_v<P, ShrinkPolicy>) {
          p.min_tokens = options.shrink_min_pages * options.page_size;
        }
      },
      setup.policy.variant());
  return setup;
}

}  // namespace growpage::eval
