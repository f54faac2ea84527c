// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/core/status.hpp"
#include "growpage/growpage.h"
#include "hooks.hpp"

namespace growpage::capi {

/// Remembers `status`, which is not ok, as the thread's last one, tells the log hook (null: none),
/// and gives its code.
growpage_status fail(const Status& status, const Hooks* hooks) noexcept;

/// Runs `f`, which returns a Status, and turns everything that leaves it into a status: the one
/// place where exceptions end.
template <class F>
growpage_status run(const Hooks* hooks, F&& f) noexcept {
  try {
    const Status status = f();
    if (status.ok()) [[likely]] {
      return GROWPAGE_OK;
    }
    return fail(status, hooks);
  } catch (const std::bad_alloc&) {
    return fail(StatusCode::out_of_memory, hooks);
  } catch (const std::length_error&) {  // a container asked for more than there can be
    return fail(StatusCode::out_of_memory, hooks);
  } catch (...) {
    return fail(StatusCode::internal_error, hooks);
  }
}

}  // namespace growpage::capi
