// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "growpage/policy/any_policy.hpp"

namespace growpage {

GROWPAGE_INLINE Result<AnyPolicy> AnyPolicy::named(std::string_view name) {
  if (name == "full") return AnyPolicy(FullPolicy{});
  if (name == "fixed") return AnyPolicy(FixedPolicy{});
  if (name == "zipage") return AnyPolicy(ZipagePolicy{});
  if (name == "growpage") return AnyPolicy(GrowPagePolicy{});
  if (name == "random") return AnyPolicy(RandomPolicy{});
  if (name == "inverse") return AnyPolicy(InversePolicy{});
  if (name == "shrink") return AnyPolicy(ShrinkPolicy{});
  return Status::invalid("policy", name,
                         "full, fixed, zipage, growpage, random, inverse or shrink");
}

}  // namespace growpage
