// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capi/caches.hpp"

/// Engines that append a token to each of 64 sequences.
namespace growpage::bench {

inline constexpr std::int64_t append_rounds = 256;

class CppAppend {
 public:
  CppAppend() : cache_(capi::cpp_cache()) {
    for (std::int32_t i = 0; i < capi_requests; ++i) ids_.push_back(cache_.admit({})->sequence);
  }
  void rewind() {
    for (const SequenceId id : ids_) {
      check(cache_.truncate(id, 0).ok() && cache_.reserve(id, append_rounds).ok());
    }
  }
  void append() {
    const TokenId token = 1;
    for (const SequenceId id : ids_) {
      copies_.clear();
      check(cache_.append(id, 1, &token, copies_).ok());
    }
  }

 private:
  PageManager cache_;
  std::vector<SequenceId> ids_;
  std::vector<PageCopy> copies_;
};

/// A call for each sequence.
class CAppend {
 public:
  CAppend() : cache_(capi::c_cache()), ids_(capi_requests) {
    for (auto& id : ids_) {
      capi::ok(growpage_cache_admit(cache_.get(), nullptr, 0, nullptr, &id, nullptr));
    }
  }
  void rewind() {
    for (const auto id : ids_) {
      capi::ok(growpage_cache_truncate(cache_.get(), id, 0));
      capi::ok(growpage_cache_reserve(cache_.get(), id, append_rounds));
    }
  }
  void append() {
    const TokenId token = 1;
    growpage_page_copy copy;
    for (const auto id : ids_) {
      capi::ok(growpage_cache_append(cache_.get(), id, 1, &token, &copy));
    }
  }

 protected:
  capi::Handle<growpage_cache> cache_;
  std::vector<std::uint64_t> ids_;
};

/// One call for the step.
class CBatchAppend : public CAppend {
 public:
  void append() {
    std::size_t count = 0;
    std::size_t done = 0;
    capi::ok(growpage_cache_append_batch(cache_.get(), ids_.data(), tokens_.data(), ids_.size(),
                                         copies_.data(), &count, &done));
  }

 private:
  std::vector<TokenId> tokens_ = std::vector<TokenId>(capi_requests, 1);
  std::vector<growpage_page_copy> copies_ = std::vector<growpage_page_copy>(capi_requests);
};

}  // namespace growpage::bench
