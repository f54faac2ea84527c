// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/demand/demand.hpp"

namespace growpage {

GROWPAGE_INLINE Status DemandOptions::validate() const {
  if (!(p > 0.0F && p <= 1.0F)) {
    return Status::invalid("DemandOptions::p", double{p}, "0 < p ≤ 1");
  }
  return {};
}

}  // namespace growpage
