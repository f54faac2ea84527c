// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything: the cache, the scheduler, every policy, the CPU backend. Include single headers
/// instead where compile time matters; each compiles alone.
#include "growpage/backend/cpu.hpp"
#include "growpage/cache/batch_tables.hpp"
#include "growpage/cache/paged_kv_cache.hpp"
#include "growpage/policy/any_policy.hpp"
#include "growpage/schedule/execute.hpp"
#include "growpage/schedule/scheduler.hpp"
#include "growpage/version.hpp"
