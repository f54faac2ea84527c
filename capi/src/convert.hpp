// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/backend/cpu.hpp"
#include "growpage/cache/paged_kv_cache_options.hpp"
#include "growpage/core/executor.hpp"
#include "growpage/growpage.h"
#include "growpage/prefix/page_hash.hpp"

/// C structs to and from the C++ ones. Enums are checked here; ranges by the C++ `validate`s.
/// A null input is the default.
namespace growpage::capi {

Status read_executor(const growpage_executor* in, Executor& out);
Status read_key(const growpage_key* in, ExtraKey& out);
Status read_summary(const growpage_summary_options* in, SummaryOptions& out);
Status read_rope(const growpage_rope* in, RopeParams& out);
Status read_demand(const growpage_demand_options* in, DemandOptions& out);
Status read_retention(const growpage_retention_options* in, RetentionOptions& out);
[[nodiscard]] growpage_retention_options to_c_retention(const RetentionOptions& in) noexcept;

/// The value of a C enum in [0, last] as the C++ one.
template <class E>
bool read_enum(Status& status, const char* argument, std::int32_t value, E last, E& out);

}  // namespace growpage::capi

#include "growpage/detail/require.hpp"

template <class E>
bool growpage::capi::read_enum(Status& status, const char* argument, std::int32_t value, E last,
                               E& out) {
  if (!detail::require_range(status, argument, value, 0, static_cast<std::int32_t>(last))) {
    return false;
  }
  out = static_cast<E>(value);
  return true;
}
