// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "choices.hpp"
#include "growpage/growpage.h"

namespace growpage::fuzz {

inline constexpr std::int32_t max_layers = 2, max_query_heads = 4, max_dim = 8, max_page = 32,
                              max_pages = 12, max_slots = 4, max_sequences = 6, max_batch = 8;
inline constexpr std::size_t max_text = 96;

/// Call sequences through the C API: right ones, wrong ones, on handles and ids that are alive,
/// gone or never were. Nothing may crash, and the bookkeeping must hold whatever was called. Only
/// memory is always as long as it is said to be: that the library cannot check.
class Session {
 public:
  Session(const std::uint8_t* data, std::size_t size);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void run();

 private:
  /// A live handle as a rule; else null, a destroyed one, or nonsense.
  template <class Handle>
  Handle* pick(const std::vector<Handle*>& from) {
    const std::uint8_t b = in_.byte();
    if (b < 245 && !from.empty()) return from[b % from.size()];
    if (b < 250) return nullptr;
    if (b < 253) return reinterpret_cast<Handle*>(std::uintptr_t{b} * 0x9E3779B97F4A7C15U);
    if (!caches_.empty()) return reinterpret_cast<Handle*>(caches_[0]);
    return nullptr;
  }
  std::uint64_t id(const std::vector<std::uint64_t>& from);
  growpage_cache* cache() { return pick(caches_); }
  growpage_scheduler* scheduler() { return pick(schedulers_); }
  std::uint64_t sequence() { return id(sequences_); }

  void call();  // one of those below
  void create_policy();
  void create_cache();
  void create_scheduler();
  void destroy();
  void submit();
  void step();  // whole, with mistakes now and then
  void abort_request();
  void admit();
  void append();
  void append_batch();
  void tables();
  void compaction();
  void apply_ticket(growpage_cache* c, const growpage_ticket& t, std::int32_t protected_slots);
  void swap();
  void update(growpage_cache* c, const growpage_summary_entry* entries, std::size_t count);
  void kernels();
  void own_kernels();  // on memory of our own
  void index();
  void look();
  void policy();
  void policy_options(growpage_policy* p);
  void values();
  void dlpack();
  static std::int32_t decide(void* context, const growpage_boundary* boundary);

  Choices in_;
  std::vector<growpage_cache*> caches_;
  std::vector<growpage_scheduler*> schedulers_;
  std::vector<growpage_policy*> policies_;
  std::vector<growpage_prefix_index*> indices_;
  std::vector<std::uint64_t> sequences_, requests_, fences_;
  std::vector<growpage_ticket> tickets_;
  std::vector<float> floats_ = std::vector<float>(std::size_t{2} * 6 * 2 * max_page * max_dim);
};

}  // namespace growpage::fuzz
