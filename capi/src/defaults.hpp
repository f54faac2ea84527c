// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/growpage.h"

/// The structs that *_init gives out, with struct_size set.
namespace growpage::capi {

[[nodiscard]] growpage_hooks default_hooks() noexcept;
[[nodiscard]] growpage_tensor default_tensor() noexcept;
[[nodiscard]] growpage_executor default_executor() noexcept;
[[nodiscard]] growpage_key default_key() noexcept;
[[nodiscard]] growpage_summary_options default_summary() noexcept;
[[nodiscard]] growpage_rope default_rope() noexcept;
[[nodiscard]] growpage_demand_options default_demand() noexcept;
[[nodiscard]] growpage_retention_options default_retention() noexcept;
[[nodiscard]] growpage_cache_options default_cache() noexcept;
[[nodiscard]] growpage_policy_options default_policy() noexcept;
[[nodiscard]] growpage_scheduler_options default_scheduler() noexcept;
[[nodiscard]] growpage_request default_request() noexcept;
[[nodiscard]] growpage_step_result default_step_result() noexcept;
[[nodiscard]] growpage_kernel default_kernel() noexcept;
[[nodiscard]] growpage_query default_query() noexcept;

}  // namespace growpage::capi
