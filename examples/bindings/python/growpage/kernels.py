# SPDX-License-Identifier: Apache-2.0
"""Kernels on the engine's own memory (CPU), for engines with their own scheduler and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from growpage._ffi import ffi
from growpage._library import check, initialised, lib, sized
from growpage.cache_compaction import CompactionPlan
from growpage.cache_options import demand_to_c, rope_to_c
from growpage.errors import InvalidArgument
from growpage.handle import Executor
from growpage.options import (
    DemandOptions,
    Isa,
    RetentionOptions,
    Rope,
    Storage,
    Strategy,
    SummaryOptions,
)
from growpage.policy import Demand, options_to_c, retention_to_c
from growpage.records import SUMMARY_ENTRY, integers, pointer, rows
from growpage.tensor import Tensor

F32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Summaries:
    """Query summaries in the engine's memory: Kernels.summaries allocates them."""

    options: SummaryOptions
    summaries: npt.NDArray[Any]  # [layer, slot, 2, query_head, head_dim], 0 = short, 1 = long
    query_rms: F32  # [layer, slot, query_head]
    window: F32  # [layer, slot, window, query_head, head_dim]
    steps: npt.NDArray[np.int64]  # [layer, slot]

    def to_c(self) -> Any:
        """As growpage_summary_state."""
        state = sized("summary_state")
        state.summaries = pointer(self.summaries, "void*")
        state.query_rms = pointer(self.query_rms, "float*")
        state.window = pointer(self.window, "float*")
        state.steps = pointer(self.steps, "int64_t*")
        return state


@dataclass(frozen=True)
class Query:
    """What demand and scores of one request are computed from."""

    summaries: Summaries
    summary_slot: int
    position: int  # of the latest query: true length − 1


@dataclass(frozen=True)
class Selection:
    """Which rows a compaction keeps."""

    bits: npt.NDArray[np.uint64]  # [layer, kv_head, words], bit s % 64 of word s / 64 = slot s
    page_kept: npt.NDArray[np.int32]  # [pages] rows kept over all layers and heads


class Kernels:
    """Kernels over `k` and `v`, borrowed without copies (axes as in Cache), for requests of up to
    `max_slots` slots. One call at a time: they share a workspace. `block_table` [pages] holds a
    request's physical pages, `slots` is how many of their slots are used."""

    def __init__(
        self,
        *,
        layers: int,
        query_heads: int,
        kv_heads: int,
        head_dim: int,
        page_size: int,
        max_slots: int,
        k: Any,
        v: Any = None,
        kv_axes: str = "lphtd",
        value_dim: int = 0,
        isa: Isa = Isa.AUTOMATIC,
        executor: Executor | None = None,
        rope: Rope | None = None,
        demand: DemandOptions | None = None,
        retention: RetentionOptions | None = None,
        softmax_scale: float = 0.0,
    ) -> None:
        self._shape = layers, query_heads, kv_heads, head_dim
        self._page_size, self._max_slots = page_size, max_slots
        self._softmax_scale = softmax_scale
        self._k = Tensor(k, kv_axes, "lphtd", writable=True, name="k")
        self._v = None if v is None else Tensor(v, kv_axes, "lphtd", writable=True, name="v")
        self._executor = executor
        self._rope = rope_to_c(rope)
        self._demand = demand_to_c(demand, layers)
        self._retention = retention_to_c(retention)
        c = self._c = initialised("kernel")
        c.layers, c.query_heads, c.kv_heads, c.head_dim = self._shape
        c.value_dim, c.page_size, c.isa = value_dim, page_size, isa
        c.k = self._k.c
        c.v = ffi.NULL if self._v is None else self._v.c
        c.executor = ffi.NULL if executor is None else executor.c
        size = ffi.new("size_t*")
        check(lib.growpage_workspace_size(c, max_slots, size))
        self._workspace = np.empty(size[0], np.uint8)
        c.workspace, c.workspace_bytes = pointer(self._workspace, "void*"), size[0]

    def _request(self, block_table: npt.ArrayLike, slots: int) -> Any:
        table = integers("block_table", block_table, np.int32)
        limit = self._k.shape[1]
        if table.size and not 0 <= int(table.min()) <= int(table.max()) < limit:
            raise InvalidArgument(f"block_table outside [0, {limit})", "block_table")
        self._table = table  # borrowed by the call
        self._c.block_table = pointer(table, "const int32_t*")
        self._c.pages, self._c.slots = table.size, slots
        return self._c

    def _query(self, query: Query) -> Any:
        c = initialised("query")
        parts = options_to_c("summary_options", query.summaries.options), query.summaries.to_c()
        c.summary, c.state = parts
        c.rope, c.demand, c.retention = self._rope[0], self._demand[0], self._retention
        c.softmax_scale = self._softmax_scale
        c.summary_slot, c.position = query.summary_slot, query.position
        return c, parts

    def _pages(self, slots: int) -> int:
        return -(-slots // self._page_size)

    def summaries(self, options: SummaryOptions = SummaryOptions()) -> Summaries:
        """Zeroed memory for the summaries of `options.slots` requests."""
        layers, query_heads, _, head_dim = self._shape
        sizes = sized("summary_sizes")
        check(
            lib.growpage_summary_get_sizes(
                self._c, options_to_c("summary_options", options), sizes
            )
        )
        dtype = np.float32 if options.storage == Storage.F32 else np.float16
        made = Summaries(
            options,
            np.zeros((layers, options.slots, 2, query_heads, head_dim), dtype),
            np.zeros((layers, options.slots, query_heads), np.float32),
            np.zeros((layers, options.slots, options.window, query_heads, head_dim), np.float32),
            np.zeros((layers, options.slots), np.int64),
        )
        wanted = [getattr(sizes, name) for name in ("summaries", "query_rms", "window", "steps")]
        have = [a.nbytes for a in (made.summaries, made.query_rms, made.window, made.steps)]
        assert wanted == have, (wanted, have)
        return made

    def update_summaries(
        self,
        summaries: Summaries,
        entries: Any,
        queries: Any,
        *,
        first_layer: int = 0,
        axes: str = "lbhd",
    ) -> None:
        """Updates `entries` (SUMMARY_ENTRY, or (slot, first) pairs) with `queries` [layers, entry,
        query_head, head_dim], after q-norm and before RoPE."""
        batch = rows("entries", entries, SUMMARY_ENTRY)
        if not batch.size:
            return  # a tensor without rows is refused
        tensor = Tensor(queries, axes, "lbhd", name="queries")
        check(
            lib.growpage_update_summaries(
                self._c,
                options_to_c("summary_options", summaries.options),
                summaries.to_c(),
                pointer(batch, "const growpage_summary_entry*"),
                batch.size,
                tensor.c,
                first_layer,
                tensor.shape[0],
            )
        )

    def measure_demand(self, query: Query, block_table: npt.ArrayLike, slots: int) -> Demand:
        """Demand of a request over its candidates: all pages but the newest."""
        c, _keep = self._query(query)
        demand = ffi.new("growpage_demand*")
        check(lib.growpage_measure_demand(self._request(block_table, slots), c, demand))
        return Demand.from_c(demand)

    def score(
        self,
        query: Query,
        block_table: npt.ArrayLike,
        slots: int,
        *,
        scores: F32 | None = None,
        old_slots: int = 0,
    ) -> tuple[F32, Demand]:
        """Retention score of every used slot, [layer, kv_head, ≥ slots], and the demand from the
        same pass. With global_decay, `scores` holds those of the last compaction for the slots
        [0, old_slots) and is written."""
        layers, _, kv_heads, _ = self._shape
        if scores is None:
            scores = np.zeros((layers, kv_heads, max(slots, 1)), np.float32)
        self._check_scores(scores, max(slots, old_slots))
        c, _keep = self._query(query)
        demand = ffi.new("growpage_demand*")
        memory = pointer(scores, "float*"), scores.shape[-1], demand
        check(lib.growpage_score(self._request(block_table, slots), c, old_slots, *memory))
        return scores, Demand.from_c(demand)

    def select(
        self,
        scores: F32,
        marks: npt.NDArray[np.uint8],
        block_table: npt.ArrayLike,
        slots: int,
        *,
        keep: int,
        protected_slots: int = 0,
    ) -> Selection:
        """Chooses `keep` of the private pages' slots per (layer, head) by `scores`; `marks`
        [pages] PageMark bits."""
        layers, _, kv_heads, _ = self._shape
        self._check_scores(scores, slots)
        pages = self._pages(slots)
        marks = self._marks(marks, pages)
        words = max(-(-slots // 64), 1)
        out = Selection(
            np.zeros((layers, kv_heads, words), np.uint64), np.zeros(max(pages, 1), np.int32)
        )
        check(
            lib.growpage_select(
                self._request(block_table, slots),
                self._retention,
                pointer(scores, "const float*"),
                scores.shape[-1],
                pointer(marks, "const uint8_t*"),
                protected_slots,
                keep,
                pointer(out.bits, "uint64_t*"),
                words,
                pointer(out.page_kept, "int32_t*"),
            )
        )
        return out

    def compact(
        self,
        plan: CompactionPlan,
        selection: Selection,
        marks: npt.NDArray[np.uint8],
        block_table: npt.ArrayLike,
        *,
        scores: F32 | None = None,
    ) -> None:
        """Moves the kept rows out of the plan's victim pages, in place; all slots of the pages are
        used. Afterwards the table is: the pages but the victims, in order, then the victims.
        `scores` follow their rows."""
        table = integers("block_table", block_table, np.int32)
        slots = table.size * self._page_size
        marks = self._marks(marks, table.size)
        layers, _, kv_heads, _ = self._shape
        words = selection.bits.shape[-1]
        if selection.bits.shape[:2] != (layers, kv_heads) or words * 64 < slots:
            raise InvalidArgument(f"bits {selection.bits.shape} for {slots} slots", "selection")
        if scores is not None:
            self._check_scores(scores, slots)
        check(
            lib.growpage_compact(
                self._request(table, slots),
                pointer(marks, "const uint8_t*"),
                plan.to_c(),
                pointer(np.ascontiguousarray(selection.bits, np.uint64), "const uint64_t*"),
                words,
                pointer(scores, "float*"),
                0 if scores is None else scores.shape[-1],
            )
        )

    def _check_scores(self, scores: F32, slots: int) -> None:
        layers, _, kv_heads, _ = self._shape
        usable = scores.dtype == np.float32 and scores.flags.c_contiguous
        if not usable or scores.shape[:2] != (layers, kv_heads) or scores.shape[-1] < slots:
            raise InvalidArgument(
                f"scores: not contiguous float32 [{layers}, {kv_heads}, {slots} or more]", "scores"
            )

    def _marks(self, marks: npt.NDArray[np.uint8], pages: int) -> npt.NDArray[np.uint8]:
        array: npt.NDArray[np.uint8] = integers("marks", marks, np.uint8)
        if array.shape != (pages,):
            raise InvalidArgument(f"marks {array.shape}, not ({pages},)", "marks")
        return array


def plan_compaction(
    marks: npt.NDArray[np.uint8],
    page_kept: npt.NDArray[np.int32],
    *,
    victims: int = 1,
    strategy: Strategy = Strategy.FILL_HOLES,
) -> CompactionPlan:
    """Chooses the pages to empty; AtCapacity when fewer than `victims` qualify."""
    marked = integers("marks", marks, np.uint8)
    kept = integers("page_kept", page_kept, np.int32)
    if marked.shape != kept.shape:
        raise InvalidArgument(f"page_kept {kept.shape} for marks {marked.shape}", "page_kept")
    plan = ffi.new("growpage_compaction_plan*")
    pages = pointer(marked, "const uint8_t*"), pointer(kept, "const int32_t*"), marked.size
    check(lib.growpage_plan_compaction(*pages, victims, strategy, plan))
    return CompactionPlan.from_c(plan)
