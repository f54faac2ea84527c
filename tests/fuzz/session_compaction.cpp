// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <array>

namespace growpage::fuzz {

void Session::compaction() {
  growpage_cache* c = cache();
  std::array<growpage_page_copy, max_pages> copies{};
  std::size_t count = 0;
  growpage_ticket t{};
  const std::uint64_t s = sequence();
  if (in_.byte() & 1) {  // a full sequence can be compacted
    growpage_sequence view{};
    view.struct_size = sizeof view;
    growpage_cache_info info{};
    info.struct_size = sizeof info;
    growpage_page_copy copy{};
    if (growpage_cache_get_sequence(c, s, &view) == GROWPAGE_OK &&
        growpage_cache_get_info(c, &info) == GROWPAGE_OK) {
      const auto all = static_cast<std::int64_t>(view.page_count) * info.page_size;
      (void)growpage_cache_append(c, s, all - view.slots, nullptr, &copy);
      (void)growpage_cache_mark_computed(c, s, static_cast<std::int32_t>(all));
    }
  }
  if (growpage_cache_begin_compaction(c, s, in_.small(1, 2), in_.small(0, 1), in_.small(0, 1),
                                      copies.data(), copies.size(), &count, &t) == GROWPAGE_OK) {
    fences_.push_back(t.fence);
    tickets_.push_back(t);
  }
  if (tickets_.empty()) return;
  t = tickets_[in_.byte() % tickets_.size()];
  if (in_.rarely()) t.victims = in_.small(1, 2);
  switch (in_.byte() % 4) {
    case 0:
      (void)growpage_cache_cancel_compaction(c, &t);
      break;
    case 1:
      (void)growpage_cache_compact(c, &t, in_.small(0, max_slots), in_.value(0, 100),
                                   in_.small(0, 40), nullptr);
      break;
    default:
      apply_ticket(c, t, in_.small(0, 20));
  }
}

void Session::apply_ticket(growpage_cache* c, const growpage_ticket& t,
                           std::int32_t protected_slots) {
  std::array<std::uint8_t, max_pages> marks{};
  std::array<std::int32_t, max_pages> kept{};
  growpage_sequence view{};
  view.struct_size = sizeof view;
  if (growpage_cache_get_sequence(c, t.sequence, &view) != GROWPAGE_OK) return;
  if (in_.byte() & 1) {
    (void)growpage_cache_compact(c, &t, in_.small(0, max_slots), in_.value(0, 100), protected_slots,
                                 nullptr);
    return;
  }
  if (growpage_cache_page_marks(c, t.sequence, protected_slots, marks.data(), marks.size()) !=
      GROWPAGE_OK) {
    return;
  }
  growpage_compaction_plan plan = {t.strategy, t.victims, {in_.small(0, 5), in_.small(0, 5)}};
  if (in_.byte() < 200) {
    (void)growpage_plan_compaction(marks.data(), kept.data(), view.page_count, t.victims,
                                   t.strategy, &plan);
  }
  (void)growpage_cache_apply_compaction(c, &t, &plan, in_.byte() & 1 ? kept.data() : nullptr,
                                        in_.byte() & 1 ? view.page_count : 0, 64);
}

}  // namespace growpage::fuzz
