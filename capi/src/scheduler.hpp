// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cache.hpp"
#include "growpage/growpage.h"
#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/scheduler.hpp"
#include "handle.hpp"
#include "hooks.hpp"
#include "policy.hpp"

namespace growpage::capi {

/// Behind a growpage_scheduler.
struct SchedulerObject {
  using Handle = growpage_scheduler;
  using Core = Scheduler<AnyPolicy, PageManager>;
  static constexpr HandleKind kind = HandleKind::scheduler;
  static constexpr const char* name = "growpage_scheduler";

  explicit SchedulerObject(const Hooks& h) : hooks(h) {}
  SchedulerObject(const SchedulerObject&) = delete;
  SchedulerObject& operator=(const SchedulerObject&) = delete;

  /// Gives the cache everything back.
  ~SchedulerObject() {
    if (!core) return;
    for (const std::uint64_t id : requests) (void)core->abort(RequestId::from_bits(id));
    for (const std::uint64_t fence : fences) {
      (void)cache->manager->complete_fence(FenceId::from_bits(fence));
    }
    --cache->schedulers;
  }

  // By slot index, the last id given out: an older one with the same index is stale.
  static void remember(std::vector<std::uint64_t>& ids, std::uint32_t index, std::uint64_t bits) {
    if (index >= ids.size()) ids.resize(index + 1);
    ids[index] = bits;
  }

  Hooks hooks;
  UserCallback user;
  Cache* cache = nullptr;
  std::optional<Core> core;
  const StepPlan* plan = nullptr;  // open: between schedule and complete
  bool before_done = false;
  bool after_done = false;
  std::vector<FenceId> done_fences;     // of run_before_forward
  std::vector<MeasuredDemand> demand;   // of run_after_forward
  std::vector<std::uint64_t> requests;  // [request slot]
  std::vector<std::uint64_t> fences;    // [fence slot]
};

}  // namespace growpage::capi
