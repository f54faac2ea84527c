// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/detail/require.hpp"
#include "growpage/schedule/scheduler_options.hpp"

namespace growpage {

GROWPAGE_INLINE Status SchedulerOptions::validate() const {
  constexpr std::int64_t many = std::int64_t{1} << 31;
  Status s;
  const bool good =
      detail::require_range(s, "SchedulerOptions::max_batched_tokens", max_batched_tokens, 1,
                            many) &&
      detail::require_range(s, "SchedulerOptions::max_running", max_running, 1, 1 << 20) &&
      detail::require_range(s, "SchedulerOptions::summary_slots", summary_slots, 1, 1 << 20) &&
      detail::require_range(s, "SchedulerOptions::max_prefill_chunk", max_prefill_chunk, 0, many) &&
      detail::require_range(s, "SchedulerOptions::max_compacting_pages", max_compacting_pages, 1,
                            many) &&
      detail::require_range(s, "SchedulerOptions::early_slots", early_slots, 0, 4096) &&
      detail::require_range(s, "SchedulerOptions::aging_steps", aging_steps, 0, many) &&
      detail::require_range(s, "SchedulerOptions::decision_capacity", decision_capacity, 0, many);
  return good ? Status{} : s;
}

}  // namespace growpage
