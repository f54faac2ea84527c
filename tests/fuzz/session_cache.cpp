// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <array>
#include <cstring>

namespace growpage::fuzz {

void Session::create_cache() {
  if (caches_.size() == 2) return;
  growpage_cache_options o;
  growpage_cache_options_init(&o, sizeof o);
  growpage_summary_options summary;
  growpage_summary_options_init(&summary, sizeof summary);
  growpage_retention_options retention;
  growpage_retention_options_init(&retention, sizeof retention);
  if (!policies_.empty()) (void)growpage_policy_get_retention(policies_.back(), &retention);
  o.backend = in_.rarely()          ? in_.small(0, 2)
              : in_.byte() % 3 == 0 ? GROWPAGE_BACKEND_NONE
                                    : GROWPAGE_BACKEND_CPU;
  o.isa = GROWPAGE_ISA_SCALAR;
  o.layers = static_cast<std::int32_t>(in_.within(0, max_layers));
  o.kv_heads = static_cast<std::int32_t>(in_.within(0, 2));
  o.query_heads = static_cast<std::int32_t>(in_.within(0, max_query_heads));
  o.head_dim = static_cast<std::int32_t>(in_.within(0, max_dim));
  o.value_dim = static_cast<std::int32_t>(in_.within(0, max_dim));
  if (in_.byte() < 200) {
    o.layers = 1;
    o.kv_heads = o.query_heads = 2;
    o.head_dim = 4;
  }
  o.page_size = in_.byte() & 1 ? 16 : max_page;
  o.pages = in_.within(0, max_pages);
  if (o.pages == 0 && !in_.rarely()) o.pages = 7;
  o.host_pages = in_.within(0, 6);
  o.max_sequences = static_cast<std::int32_t>(in_.within(0, max_sequences));
  if (o.max_sequences < 2) o.max_sequences = 4;
  o.max_pages_per_sequence = static_cast<std::int32_t>(in_.within(3, max_pages));
  o.max_fences = static_cast<std::int32_t>(in_.within(1, 6));
  o.event_capacity = in_.within(0, 5);
  o.prefix_caching = static_cast<std::int32_t>(in_.within(0, 1));
  o.dtype = in_.small(0, 2);
  o.layout = in_.small(0, 1);
  o.score_buffers = in_.small(1, 3);
  summary.slots = max_slots;
  summary.window = in_.byte() & 1 ? 16 : 0;
  summary.storage = in_.small(0, 1);
  o.summary = &summary;
  o.retention = &retention;
  // A struct of another version: shorter, or longer with something in its tail.
  alignas(8) std::array<char, 512> other{};
  if (in_.rarely()) {
    o.struct_size = in_.word() % other.size();
    if (in_.rarely()) other.back() = 1;
  }
  std::memcpy(other.data(), &o, sizeof o);
  growpage_cache* c = nullptr;
  if (growpage_cache_create(reinterpret_cast<const growpage_cache_options*>(other.data()), nullptr,
                            &c) != GROWPAGE_OK) {
    return;
  }
  caches_.push_back(c);
}

void Session::admit() {
  std::array<std::int32_t, max_text> tokens{};
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i / 24);
  std::uint64_t made = 0;
  std::int64_t matched = 0;
  growpage_cache* c = cache();
  const auto count = static_cast<std::size_t>(in_.within(0, max_text));
  (void)growpage_cache_match_length(c, tokens.data(), count, nullptr, &matched);
  if (growpage_cache_admit(c, tokens.data(), count, nullptr, &made, &matched) != GROWPAGE_OK)
    return;
  sequences_.push_back(made);
  if (!(in_.byte() & 1)) return;
  growpage_page_copy copy{};
  (void)growpage_cache_reserve(c, made, static_cast<std::int64_t>(count));
  const auto rest = static_cast<std::int64_t>(count) - matched;
  (void)growpage_cache_append(c, made, rest, tokens.data() + matched, &copy);
  (void)growpage_cache_mark_computed(c, made, static_cast<std::int32_t>(count));
}

void Session::append() {
  std::array<std::int32_t, max_text> tokens{};
  growpage_page_copy copy{};
  const std::int64_t count = in_.rarely() ? INT64_MIN : in_.within(0, max_text);
  growpage_cache* c = cache();
  const std::uint64_t s = sequence();
  if (growpage_cache_append(c, s, count, in_.byte() & 1 ? tokens.data() : nullptr, &copy) ==
          GROWPAGE_OK &&
      copy.source >= 0) {
    (void)growpage_cache_run_copies(c, &copy, 1, nullptr);
  }
}

void Session::append_batch() {
  std::array<std::uint64_t, max_batch> ids{};
  std::array<growpage_page_copy, max_batch> copies{};
  const std::array<std::int32_t, max_batch> tokens{};
  std::size_t count = 0;
  std::size_t done = 0;
  for (auto& one : ids) one = sequence();
  growpage_cache* c = cache();
  (void)growpage_cache_append_batch(c, ids.data(), in_.byte() & 1 ? tokens.data() : nullptr,
                                    static_cast<std::size_t>(in_.within(0, max_batch)),
                                    copies.data(), &count, &done);
  (void)growpage_cache_run_copies(c, copies.data(), count, nullptr);
}

void Session::tables() {
  std::array<std::uint64_t, max_batch> ids{};
  std::array<std::int32_t, max_batch> counts{};
  std::array<std::int32_t, std::size_t{max_batch} * max_pages> block{};
  std::array<std::int32_t, max_batch + 1> small{};
  std::array<std::int32_t, max_batch> last{};
  std::array<std::int64_t, 256> slots{};
  std::array<std::int64_t, 256> positions{};
  growpage_cache* c = cache();
  const auto batch = static_cast<std::size_t>(in_.within(0, max_batch));
  for (std::size_t i = 0; i < batch; ++i) {
    ids[i] = sequence();
    counts[i] = in_.small(0, 8);
  }
  std::int64_t stride = 0;
  std::size_t size = 0;
  (void)growpage_cache_padded_tables(c, ids.data(), batch, &stride, nullptr, 0, 0, nullptr);
  stride += in_.within(0, 2);
  (void)growpage_cache_padded_tables(c, ids.data(), batch, &stride, block.data(), block.size(), -1,
                                     in_.byte() & 1 ? last.data() : nullptr);
  (void)growpage_cache_compressed_tables(c, ids.data(), batch, nullptr, nullptr, 0, &size, nullptr);
  (void)growpage_cache_compressed_tables(c, ids.data(), batch, small.data(), block.data(),
                                         in_.byte() & 1 ? block.size() : size, &size, last.data());
  (void)growpage_cache_token_tables(c, ids.data(), batch, counts.data(), slots.data(),
                                    in_.byte() & 1 ? positions.data() : nullptr, slots.size(),
                                    &size);
}

void Session::swap() {
  growpage_cache* c = cache();
  std::array<growpage_page_transfer, max_pages> transfers{};
  std::size_t count = 0;
  std::uint64_t fence = 0;
  const std::uint64_t s = sequence();
  const bool out = (in_.byte() & 1) != 0;
  const growpage_status status =
      out ? growpage_cache_swap_out(c, s, transfers.data(), transfers.size(), &count, &fence)
          : growpage_cache_swap_in(c, s, transfers.data(), transfers.size(), &count, &fence);
  if (status == GROWPAGE_OK) fences_.push_back(fence);
  if (in_.rarely()) {
    count = 1;
    transfers[0] = {in_.small(0, max_pages), in_.small(0, 6)};
  }
  const std::int32_t slot = in_.small(-1, max_slots);
  (void)(out ? growpage_cache_run_swap_out(c, s, slot, transfers.data(), count, nullptr)
             : growpage_cache_run_swap_in(c, s, slot, transfers.data(), count, nullptr));
}

}  // namespace growpage::fuzz
