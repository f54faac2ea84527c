// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <span>

#include "growpage/detail/require.hpp"
#include "layouts.hpp"
#include "scheduler.hpp"
#include "structs.hpp"

using namespace growpage;
using namespace growpage::capi;
using growpage::detail::require_not_null;

namespace {

growpage_stats to_c_stats(const SchedulerObject& o) noexcept {
  const Counters& c = o.core->counters();
  growpage_stats out{};
  out.struct_size = sizeof out;
  out.idle = o.core->idle() ? 1 : 0;
  out.waiting = o.core->waiting();
  out.running = o.core->running();
  out.steps = c.steps;
  out.submitted = c.submitted;
  out.refused = c.refused;
  out.finished = c.finished;
  out.aborted = c.aborted;
  out.prefill_tokens = c.prefill_tokens;
  out.decode_tokens = c.decode_tokens;
  out.grow = c.grow;
  out.compact = c.compact;
  out.shrink = c.shrink;
  out.fallback = c.fallback;
  out.free_growth = c.free_growth;
  out.preempt = c.preempt;
  out.swap_out = c.swap_out;
  out.swap_in = c.swap_in;
  out.recompute = c.recompute;
  out.prefix_query_tokens = c.prefix_query_tokens;
  out.prefix_hit_tokens = c.prefix_hit_tokens;
  out.evicted_pages = c.evicted_pages;
  out.copied_pages = c.copied_pages;
  out.kv_token_steps = c.kv_token_steps;
  out.running_steps = c.running_steps;
  return out;
}

}  // namespace

extern "C" {

growpage_status growpage_scheduler_finished(const growpage_scheduler* scheduler,
                                            const growpage_finished** finished, size_t* count,
                                            size_t* stride) {
  using Finished = SchedulerObject::Core::Finished;
  static_assert(offsetof(growpage_finished, request) == offsetof(Finished, request));
  static_assert(offsetof(growpage_finished, tag) == offsetof(Finished, tag));
  static_assert(offsetof(growpage_finished, generated) == offsetof(Finished, generated));
  static_assert(offsetof(growpage_finished, aborted) == offsetof(Finished, aborted));
  return with<SchedulerObject>(scheduler, [&](SchedulerObject& o) -> Status {
    Status s;
    if (!require_not_null(s, "finished", finished) || !require_not_null(s, "count", count) ||
        !require_not_null(s, "stride", stride)) {
      return s;
    }
    const std::span<const Finished> rows = o.core->finished();
    *finished = twin<const growpage_finished>(rows.data());
    *count = rows.size();
    *stride = sizeof(growpage_finished);
    return {};
  });
}

growpage_status growpage_scheduler_state(const growpage_scheduler* scheduler, uint64_t id,
                                         int32_t* state) {
  return with<SchedulerObject>(scheduler, [&](SchedulerObject& o) -> Status {
    Status s;
    if (!require_not_null(s, "state", state)) return s;
    const Result<RequestState> found = o.core->state(RequestId::from_bits(id));
    if (!found.ok()) return found.status();
    *state = static_cast<int32_t>(*found);
    return {};
  });
}

growpage_status growpage_scheduler_text(const growpage_scheduler* scheduler, uint64_t id,
                                        const int32_t** tokens, size_t* count) {
  return with<SchedulerObject>(scheduler, [&](SchedulerObject& o) -> Status {
    Status s;
    if (!require_not_null(s, "tokens", tokens) || !require_not_null(s, "count", count)) return s;
    const auto text = o.core->text(RequestId::from_bits(id));
    if (!text.ok()) return text.status();
    *tokens = text->data();
    *count = text->size();
    return {};
  });
}

growpage_status growpage_scheduler_get_stats(const growpage_scheduler* scheduler,
                                             growpage_stats* stats) {
  return with<SchedulerObject>(scheduler, [&](SchedulerObject& o) -> Status {
    if (Status s = check_output("growpage_stats", stats); !s.ok()) return s;
    write_struct(stats, to_c_stats(o));
    return {};
  });
}

growpage_status growpage_scheduler_check_invariants(const growpage_scheduler* scheduler) {
  return with<SchedulerObject>(scheduler,
                               [](SchedulerObject& o) { return o.core->check_invariants(); });
}

growpage_status growpage_scheduler_drain_decisions(growpage_scheduler* scheduler,
                                                   growpage_decision* decisions, size_t capacity,
                                                   size_t* count, int64_t* dropped) {
  return with<SchedulerObject>(scheduler, [&](SchedulerObject& o) -> Status {
    Status s;
    if (!require_not_null(s, "count", count)) return s;
    DecisionLog& log = o.core->decisions();
    if (dropped != nullptr) *dropped = log.dropped();
    if (decisions == nullptr) {
      *count = log.size();
      return {};
    }
    std::size_t taken = 0;
    DecisionRecord r;
    while (taken < capacity && log.pop(r)) {
      decisions[taken++] = {r.request.bits(),
                            r.tag,
                            r.step,
                            static_cast<int32_t>(r.kind),
                            r.measured ? uint8_t{1} : uint8_t{0},
                            {},
                            r.delta,
                            r.short_ratio,
                            r.long_ratio,
                            r.pages_before,
                            r.pages_after,
                            r.length,
                            r.pressure};
    }
    *count = taken;
    return {};
  });
}
}
