// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "growpage/cache/page_manager.hpp"
#include "growpage/growpage.h"
#include "support/check.hpp"

/// The same cache over the C++ API and over the C ABI, for the pairs of engines of this folder.
namespace growpage::bench {

inline constexpr std::int32_t capi_requests = 64;

namespace capi {

inline std::vector<TokenId> prompt(std::size_t size, TokenId first) {
  std::vector<TokenId> tokens(size);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}
inline PageManager cpp_cache() {
  PageManagerOptions options;
  options.pages = 1 << 15;
  options.page_size = 256;
  options.max_pages_per_sequence = 1 << 14;
  return std::move(PageManager::create(options)).value();
}

inline void ok(growpage_status status) { check(status == GROWPAGE_OK); }

struct Destroy {
  void operator()(growpage_cache* cache) const { ok(growpage_cache_destroy(cache)); }
  void operator()(growpage_policy* policy) const { ok(growpage_policy_destroy(policy)); }
  void operator()(growpage_scheduler* scheduler) const {
    ok(growpage_scheduler_destroy(scheduler));
  }
};
template <class T>
using Handle = std::unique_ptr<T, Destroy>;

inline Handle<growpage_cache> c_cache() {
  growpage_cache_options options;
  growpage_cache_options_init(&options, sizeof options);
  options.pages = 1 << 15;
  options.page_size = 256;
  options.max_pages_per_sequence = 1 << 14;
  growpage_cache* cache = nullptr;
  ok(growpage_cache_create(&options, nullptr, &cache));
  return Handle<growpage_cache>(cache);
}

}  // namespace capi
}  // namespace growpage::bench
