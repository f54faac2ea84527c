// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "growpage/core/hash128.hpp"
#include "growpage/core/ids.hpp"
#include "growpage/observe/ring.hpp"

namespace growpage {

/// What prefix-aware routers need to know of a cache: which page hashes it holds.
struct KvEvent {
  enum class Kind : std::int32_t {
    stored = 0,   ///< `hash` (child of `parent`) can now be matched
    removed = 1,  ///< the last page with `hash` is gone
    cleared = 2,  ///< everything is gone
  };
  Kind kind = Kind::stored;
  PageId page;
  Hash128 hash;
  Hash128 parent;
  std::int32_t tokens = 0;  ///< tokens in the page
};

using KvEventRing = EventRing<KvEvent>;

}  // namespace growpage
