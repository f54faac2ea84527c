// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <algorithm>
#include <cstdlib>

namespace growpage::fuzz {

namespace {

void require(growpage_status s) {
  if (s != GROWPAGE_OK && s != GROWPAGE_INVALID_ARGUMENT) std::abort();  // a destroyed handle is
}

}  // namespace

Session::Session(const std::uint8_t* data, std::size_t size) : in_(data, size) {
  for (std::size_t i = 0; i < floats_.size(); ++i) {
    floats_[i] = static_cast<float>(static_cast<int>(i * 7919 % 2001) - 1000) / 500.0F;
  }
  create_policy();
  create_cache();
  create_scheduler();
}

Session::~Session() {
  for (auto* s : schedulers_) (void)growpage_scheduler_destroy(s);
  for (auto* c : caches_) (void)growpage_cache_destroy(c);
  for (auto* p : policies_) (void)growpage_policy_destroy(p);
  for (auto* x : indices_) (void)growpage_prefix_index_destroy(x);
}

void Session::run() {
  for (int calls = 0; !in_.done() && calls < 400; ++calls) {
    call();
    for (auto* c : caches_) require(growpage_cache_check_invariants(c));
    for (auto* s : schedulers_) require(growpage_scheduler_check_invariants(s));
  }
}

std::uint64_t Session::id(const std::vector<std::uint64_t>& from) {
  const std::uint8_t b = in_.byte();
  if (b < 240 && !from.empty())
    return from[from.size() - 1 - b % std::min<std::size_t>(from.size(), 12)];
  return b & 1 ? in_.word() : b;
}

void Session::destroy() {
  switch (in_.byte() % 3) {
    case 0:
      (void)growpage_scheduler_destroy(scheduler());
      create_scheduler();
      break;
    case 1:
      (void)growpage_policy_destroy(pick(policies_));
      break;
    default:
      (void)growpage_cache_destroy(cache());
  }
  std::erase_if(caches_, [](growpage_cache* c) {
    growpage_cache_info info{};
    info.struct_size = sizeof info;
    return growpage_cache_get_info(c, &info) != GROWPAGE_OK;
  });
  std::erase_if(schedulers_, [](growpage_scheduler* s) {
    growpage_stats stats{};
    stats.struct_size = sizeof stats;
    return growpage_scheduler_get_stats(s, &stats) != GROWPAGE_OK;
  });
  create_policy();
  create_cache();
  create_scheduler();
}

void Session::call() {
  switch (in_.byte() % 26) {
    case 0:
    case 1:
      return submit();
    case 2:
    case 3:
    case 4:
    case 5:
      return step();
    case 6:
      for (int i = 0; i < 20; ++i) step();
      return;
    case 7:
      return admit();
    case 8:
      return in_.byte() & 1 ? append() : append_batch();
    case 9:
      return tables();
    case 10:
      return compaction();
    case 11:
      return swap();
    case 12:
      return kernels();
    case 13:
      return own_kernels();
    case 14:
      return index();
    case 15:
      return look();
    case 16:
      return policy();
    case 17:
      return destroy();
    case 18:
      (void)growpage_cache_complete_fence(cache(), id(fences_));
      return;
    case 19:
      (void)growpage_cache_release(cache(), sequence());
      return;
    case 20: {
      std::uint64_t made = 0;
      if (growpage_cache_fork(cache(), sequence(), &made) == GROWPAGE_OK)
        sequences_.push_back(made);
      return;
    }
    case 21:
      (void)growpage_cache_truncate(cache(), sequence(), in_.value(0, 80));
      return;
    case 22:
      return values();
    case 23:
      return dlpack();
    case 24: {
      std::uint64_t made = 0;
      if (growpage_cache_guard(cache(), sequence(), &made) == GROWPAGE_OK) fences_.push_back(made);
      (void)growpage_cache_grow(cache(), sequence());
      return;
    }
    default:
      abort_request();
      if (in_.rarely()) (void)growpage_cache_clear_prefix_cache(cache());
  }
}

}  // namespace growpage::fuzz
