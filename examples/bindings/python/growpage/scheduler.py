# SPDX-License-Identifier: Apache-2.0
"""Continuous batching over a cache under a policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from growpage._ffi import ffi
from growpage._library import check, initialised, lib, read_struct, sized
from growpage.cache import Cache
from growpage.errors import InvalidArgument
from growpage.handle import Handle, Log, log_hooks
from growpage.options import Key, LogLevel, Preemption, RequestState
from growpage.policy import Policy
from growpage.prefix import KeyStruct, token_array
from growpage.records import (
    COMPACTION,
    DECISION,
    DECODE,
    DEMAND_REQUEST,
    FINISHED,
    MEASURED_DEMAND,
    PAGE_COPY,
    PAGE_TRANSFER,
    PREFILL,
    SAMPLED_TOKEN,
    SWAP,
    Records,
    integers,
    pointer,
    rows,
    view,
)

U64 = npt.NDArray[np.uint64]


class Plan:
    """One step. Arrays are read-only numpy views of the scheduler's memory with the fields of the C
    structs, made when first asked for. They are valid until the next schedule, which may move that
    memory: copy what is to be kept."""

    def __init__(self, plan: Any, owner: object) -> None:
        self._plan = plan
        self._owner = owner
        self.step: int = plan.step
        self.batched_tokens: int = plan.batched_tokens

    def _view(self, name: str, array: str, dtype: Any) -> npt.NDArray[Any]:
        plan = self._plan
        count, stride = getattr(plan, f"{name}_count"), getattr(plan, f"{name}_stride")
        return view(getattr(plan, array), count, dtype, self._owner, stride)

    @cached_property
    def swap_outs(self) -> Records:
        """SWAP"""
        return self._view("swap_out", "swap_outs", SWAP)

    @cached_property
    def swap_ins(self) -> Records:
        """SWAP"""
        return self._view("swap_in", "swap_ins", SWAP)

    @cached_property
    def transfers_out(self) -> Records:
        """PAGE_TRANSFER"""
        return self._view("transfer_out", "transfers_out", PAGE_TRANSFER)

    @cached_property
    def transfers_in(self) -> Records:
        """PAGE_TRANSFER"""
        return self._view("transfer_in", "transfers_in", PAGE_TRANSFER)

    @cached_property
    def copies(self) -> Records:
        """PAGE_COPY"""
        return self._view("copy", "copies", PAGE_COPY)

    @cached_property
    def compactions(self) -> Records:
        """COMPACTION"""
        return self._view("compaction", "compactions", COMPACTION)

    @cached_property
    def prefills(self) -> Records:
        """PREFILL"""
        return self._view("prefill", "prefills", PREFILL)

    @cached_property
    def decodes(self) -> Records:
        """DECODE"""
        return self._view("decode", "decodes", DECODE)

    @cached_property
    def demand(self) -> Records:
        """DEMAND_REQUEST"""
        return self._view("demand", "demand", DEMAND_REQUEST)

    @cached_property
    def preempted(self) -> U64:
        """Request ids, for the engine's own bookkeeping."""
        return self._view("preempted", "preempted", np.uint64)


@dataclass(frozen=True)
class Stats:
    """What cache and scheduler have done since construction: plain sums."""

    idle: bool  # no request waiting, running or in flight
    waiting: int  # requests now
    running: int  # requests now
    steps: int
    submitted: int
    refused: int  # at submission: can never fit
    finished: int
    aborted: int
    prefill_tokens: int  # computed, prefix hits not counted
    decode_tokens: int  # generated
    grow: int  # decisions
    compact: int
    shrink: int
    fallback: int  # grow wanted, no page: compacted (counted in compact too)
    free_growth: int  # pages taken without a decision
    preempt: int  # = swap_out + recompute
    swap_out: int
    swap_in: int
    recompute: int
    prefix_query_tokens: int  # looked up at first admission
    prefix_hit_tokens: int  # of these, found
    evicted_pages: int
    copied_pages: int
    kv_token_steps: int  # Σ over steps of KV tokens held by running requests
    running_steps: int  # Σ over steps of running requests


class Scheduler(Handle):
    """schedule and complete alternate; submit and abort may come between any two calls. Keeps its
    cache alive. Parameters are the fields of growpage_scheduler_options."""

    def __init__(
        self,
        cache: Cache,
        policy: Policy,
        *,
        max_batched_tokens: int = 8192,
        max_prefill_chunk: int = 0,
        max_running: int = 512,
        summary_slots: int = 512,
        preemption: Preemption = Preemption.RECOMPUTE,
        early_slots: int = 0,
        max_compacting_pages: int = 600,
        aging_steps: int = 1024,
        decision_capacity: int = 0,
        log: Log | None = None,
        log_level: LogLevel = LogLevel.WARNING,
    ) -> None:
        given = locals()
        c = initialised("scheduler_options")
        for name, _ in ffi.typeof("growpage_scheduler_options").fields:
            if name in given:
                setattr(c, name, given[name])
        hooks, keep = log_hooks(log, log_level)
        keep = (cache._c, policy._keep, *keep)
        self._create("scheduler_create", cache._c, policy._c, c, hooks, keep=keep)
        #: The last plan; also there when the policy's function has raised inside schedule.
        self.plan: Plan | None = None

    def submit(
        self,
        prompt: npt.ArrayLike,
        max_new_tokens: int,
        *,
        tag: int = 0,
        priority: int = 0,
        key: Key | None = None,
    ) -> int:
        """Queues a request (the prompt is copied); its id. Lower priority runs earlier."""
        tokens, struct = token_array(prompt), KeyStruct(key)
        request = initialised("request")
        request.tag, request.priority, request.key = tag, priority, struct.c
        request.prompt, request.prompt_tokens = pointer(tokens, "const int32_t*"), tokens.size
        request.max_new_tokens = max_new_tokens
        id_ = ffi.new("uint64_t*")
        check(lib.growpage_scheduler_submit(self._c, request, id_))
        return int(id_[0])

    def abort(self, request: SupportsIndex) -> None:
        """Ends a request in any state; its pages and slot return."""
        check(lib.growpage_scheduler_abort(self._c, request))

    def schedule(self) -> Plan:
        """Decides the next step."""
        plan = sized("plan")
        status = lib.growpage_scheduler_schedule(self._c, plan)
        if status == lib.GROWPAGE_OK:
            self.plan = Plan(plan, self._c)
        check(status)
        assert self.plan is not None
        return self.plan

    def run_before_forward(self) -> U64:
        """Runs swaps, copies and compactions of the open plan; the fences for complete."""
        fences, count = ffi.new("uint64_t**"), ffi.new("size_t*")
        check(
            lib.growpage_scheduler_run_before_forward(
                self._c, ffi.NULL, ffi.cast("const uint64_t**", fences), count
            )
        )
        return view(fences[0], count[0], np.uint64, self._c)

    def run_after_forward(self) -> Records:
        """Measures the demand the open plan asks for, after the forward pass has updated the
        summaries; MEASURED_DEMAND for complete."""
        demand, count = ffi.new("growpage_measured_demand**"), ffi.new("size_t*")
        check(
            lib.growpage_scheduler_run_after_forward(
                self._c, ffi.NULL, ffi.cast("const growpage_measured_demand**", demand), count
            )
        )
        return view(demand[0], count[0], MEASURED_DEMAND, self._c)

    def complete(
        self,
        tokens: Any = (),
        *,
        demand: Any = (),
        fences: npt.ArrayLike = (),
        failed: npt.ArrayLike = (),
    ) -> None:
        """Results of the open plan, in any order.

        tokens  SAMPLED_TOKEN records (sampled_tokens makes them) or (request, token, stop) tuples:
                one a decode and a last prefill chunk
        demand  MEASURED_DEMAND records: one per entry of Plan.demand
        fences  finished since the last complete
        failed  planned requests the engine could not run: aborted, no token
        """
        sampled = rows("tokens", tokens, SAMPLED_TOKEN)
        measured = rows("demand", demand, MEASURED_DEMAND)
        done = integers("fences", fences, np.uint64)
        lost = integers("failed", failed, np.uint64)
        result = initialised("step_result")
        result.tokens = pointer(sampled, "const growpage_sampled_token*")
        result.demand = pointer(measured, "const growpage_measured_demand*")
        result.fences = pointer(done, "const uint64_t*")
        result.failed = pointer(lost, "const uint64_t*")
        result.token_count, result.demand_count = sampled.size, measured.size
        result.fence_count, result.failed_count = done.size, lost.size
        check(lib.growpage_scheduler_complete(self._c, result))

    def finished(self) -> Records:
        """Requests (FINISHED) that ended in the last complete or by abort since."""
        rows_, count = ffi.new("growpage_finished**"), ffi.new("size_t*")
        stride = ffi.new("size_t*")
        out = ffi.cast("const growpage_finished**", rows_)
        check(lib.growpage_scheduler_finished(self._c, out, count, stride))
        return view(rows_[0], count[0], FINISHED, self._c, stride[0])

    def state(self, request: SupportsIndex) -> RequestState:
        """Where a request is; StaleId when it is gone."""
        state = ffi.new("int32_t*")
        check(lib.growpage_scheduler_state(self._c, request, state))
        return RequestState(state[0])

    def text(self, request: SupportsIndex) -> npt.NDArray[np.int32]:
        """View of prompt and generated tokens so far; until the next complete or submit."""
        tokens, count = ffi.new("int32_t**"), ffi.new("size_t*")
        out = ffi.cast("const int32_t**", tokens)
        check(lib.growpage_scheduler_text(self._c, request, out, count))
        return view(tokens[0], count[0], np.int32, self._c)

    def stats(self) -> Stats:
        """What was done since construction."""
        stats = sized("stats")
        check(lib.growpage_scheduler_get_stats(self._c, stats))
        return read_struct(Stats, stats)

    def check_invariants(self) -> None:
        """Checks requests, slots and pages against the cache, O(everything), for debugging."""
        check(lib.growpage_scheduler_check_invariants(self._c))

    def drain_decisions(self, capacity: int | None = None) -> tuple[Records, int]:
        """The oldest decisions (DECISION), all or up to `capacity`, and how many were lost so
        far."""
        count, dropped = ffi.new("size_t*"), ffi.new("int64_t*")
        check(lib.growpage_scheduler_drain_decisions(self._c, ffi.NULL, 0, count, dropped))
        size = count[0] if capacity is None else min(capacity, count[0])
        decisions = np.zeros(size, DECISION)
        if size:
            memory = pointer(decisions, "growpage_decision*"), size
            check(lib.growpage_scheduler_drain_decisions(self._c, *memory, count, dropped))
        return decisions, dropped[0]


def sampled_tokens(
    requests: npt.ArrayLike, tokens: npt.ArrayLike, stop: Iterable[bool] | bool = False
) -> Records:
    """SAMPLED_TOKEN records for complete from arrays, e.g. sampled_tokens(plan.decodes["request"],
    logits.argmax(-1))."""
    ids = integers("requests", requests, np.uint64)
    words = integers("tokens", tokens, np.int32)
    if words.shape != ids.shape:
        raise InvalidArgument(f"tokens {words.shape} for requests {ids.shape}", "tokens")
    out = np.zeros(ids.size, SAMPLED_TOKEN)
    out["request"], out["token"], out["stop"] = ids, words, stop
    return out
