// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "capi/caches.hpp"

/// Caches that hold the pages of a prompt, which is looked up.
namespace growpage::bench {

class CppMatch {
 public:
  CppMatch() : cache_(capi::cpp_cache()), prompt_(capi::prompt(8 * 256 + 1, 0)) {
    const SequenceId id = cache_.admit({})->sequence;
    const auto size = static_cast<std::int32_t>(prompt_.size());
    std::vector<PageCopy> copies;
    check(cache_.reserve(id, size).ok() && cache_.append(id, size, prompt_.data(), copies).ok() &&
          cache_.mark_computed(id, size).ok());
  }
  void match() { benchmark::DoNotOptimize(cache_.match_length(prompt_)); }

 private:
  PageManager cache_;
  std::vector<TokenId> prompt_;
};

class CMatch {
 public:
  CMatch() : cache_(capi::c_cache()), prompt_(capi::prompt(8 * 256 + 1, 0)) {
    std::uint64_t id = 0;
    growpage_page_copy copy;
    const auto size = static_cast<std::int32_t>(prompt_.size());
    capi::ok(growpage_cache_admit(cache_.get(), nullptr, 0, nullptr, &id, nullptr));
    capi::ok(growpage_cache_reserve(cache_.get(), id, size));
    capi::ok(growpage_cache_append(cache_.get(), id, size, prompt_.data(), &copy));
    capi::ok(growpage_cache_mark_computed(cache_.get(), id, size));
  }
  void match() {
    benchmark::DoNotOptimize(growpage_cache_match_length(cache_.get(), prompt_.data(),
                                                         prompt_.size(), nullptr, &matched));
  }

  std::int64_t matched = 0;

 private:
  capi::Handle<growpage_cache> cache_;
  std::vector<TokenId> prompt_;
};

}  // namespace growpage::bench
