# SPDX-License-Identifier: Apache-2.0
"""Kernels over a cache's memory (CPU backend)."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from growpage._ffi import ffi
from growpage._library import check, initialised, lib
from growpage.cache_compaction import Ticket
from growpage.errors import InvalidArgument
from growpage.handle import Handle
from growpage.options import DType
from growpage.policy import Demand
from growpage.records import PAGE_COPY, PAGE_TRANSFER, SUMMARY_ENTRY, integers, pointer, rows
from growpage.tensor import Tensor, as_numpy

F32 = npt.NDArray[np.float32]


class CacheKernels(Handle):
    """Part of Cache."""

    layers: int
    query_heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    dtype: DType

    def _kv(self, which: str) -> npt.NDArray[Any]:
        tensor = initialised("tensor")
        other = ffi.NULL
        pair = (tensor, other) if which == "k" else (other, tensor)
        check(lib.growpage_cache_get_kv(self._c, *pair))
        if tensor.data == ffi.NULL:
            raise InvalidArgument("KV memory of the engine, one array a layer", which)
        return as_numpy(tensor, self._c)

    @property
    def k(self) -> npt.NDArray[Any]:
        """K [layer, page, kv_head, token, head_dim], writable, no copy; bf16 as uint16."""
        return self._kv("k")

    @property
    def v(self) -> npt.NDArray[Any]:
        """V [layer, page, kv_head, token, value_dim], writable, no copy; bf16 as uint16."""
        return self._kv("v")

    def update_summaries(
        self, entries: Any, queries: Any, *, first_layer: int = 0, axes: str = "lbhd"
    ) -> None:
        """Updates the summaries of `entries` (SUMMARY_ENTRY, or (slot, first) pairs) with `queries`
        [layers, entry, query_head, head_dim], after q-norm and before RoPE."""
        batch = rows("entries", entries, SUMMARY_ENTRY)
        if not batch.size:
            return  # a tensor without rows is refused
        tensor = Tensor(queries, axes, "lbhd", name="queries")
        arguments = pointer(batch, "const growpage_summary_entry*"), batch.size, tensor.c
        check(
            lib.growpage_cache_update_summaries(
                self._c, *arguments, first_layer, tensor.shape[0], ffi.NULL
            )
        )

    def measure_demand(
        self, sequence: SupportsIndex, summary_slot: int, position: int
    ) -> Demand:
        """Demand of a sequence; `position` of its latest query."""
        demand = ffi.new("growpage_demand*")
        arguments = sequence, summary_slot, position, demand, ffi.NULL
        check(lib.growpage_cache_measure_demand(self._c, *arguments))
        return Demand.from_c(demand)

    def compact(
        self, ticket: Ticket, summary_slot: int, position: int, protected_slots: int = 0
    ) -> None:
        """Runs a begun compaction. Complete the ticket's fence afterwards, but not after
        AtCapacity, which cancels it: what must be kept does not fit."""
        arguments = ticket.to_c(), summary_slot, position, protected_slots, ffi.NULL
        check(lib.growpage_cache_compact(self._c, *arguments))

    def run_copies(self, copies: Any) -> None:
        """Page copies (PAGE_COPY, or (source, target) pairs), in order."""
        batch = rows("copies", copies, PAGE_COPY)
        memory = pointer(batch, "const growpage_page_copy*"), batch.size
        check(lib.growpage_cache_run_copies(self._c, *memory, ffi.NULL))

    def run_swap_out(self, sequence: SupportsIndex, summary_slot: int, transfers: Any) -> None:
        """Pages to host memory, and with them the summary row (−1 = none)."""
        batch = rows("transfers", transfers, PAGE_TRANSFER)
        memory = pointer(batch, "const growpage_page_transfer*"), batch.size
        arguments = sequence, summary_slot, *memory, ffi.NULL
        check(lib.growpage_cache_run_swap_out(self._c, *arguments))

    def run_swap_in(self, sequence: SupportsIndex, summary_slot: int, transfers: Any) -> None:
        """The way back; the summary row may be another one."""
        batch = rows("transfers", transfers, PAGE_TRANSFER)
        memory = pointer(batch, "const growpage_page_transfer*"), batch.size
        arguments = sequence, summary_slot, *memory, ffi.NULL
        check(lib.growpage_cache_run_swap_in(self._c, *arguments))

    def append_kv(self, layer: int, slot_mapping: npt.ArrayLike, k: Any, v: Any = None) -> None:
        """Writes `k` [token, kv_head, head_dim] and `v` [token, kv_head, value_dim], contiguous,
        RoPE applied, in the cache's dtype, to the physical slots `slot_mapping` [token] (negative =
        skip). `v` is None when V is a view of K."""
        slots = integers("slot_mapping", slot_mapping, np.int64)
        if not slots.size:
            return  # a tensor without rows is refused
        memory: list[tuple[Any, Tensor | None]] = []
        for name, array, dim in (("k", k, self.head_dim), ("v", v, self.value_dim)):
            if array is None:
                memory.append((ffi.NULL, None))
                continue
            tensor = Tensor(array, "thd", "thd", name=name)
            shape = slots.size, self.kv_heads, dim
            memory.append((tensor.packed(name, self.dtype, shape), tensor))
        words = pointer(slots, "const int64_t*"), slots.size
        check(
            lib.growpage_cache_append_kv(
                self._c, layer, *words, memory[0][0], memory[1][0], ffi.NULL
            )
        )

    def attention(
        self, layer: int, block_table: npt.ArrayLike, kv_lengths: npt.ArrayLike, q: F32
    ) -> F32:
        """Reference attention: `q` [batch, query_head, head_dim], RoPE applied, over `block_table`
        [batch, stride] and `kv_lengths` [batch] used slots → [batch, query_head, value_dim]."""
        table = integers("block_table", block_table, np.int32)
        lengths = integers("kv_lengths", kv_lengths, np.int32)
        query = np.ascontiguousarray(q, np.float32)
        batch = lengths.size
        if table.shape[:-1] != (batch,) or query.shape != (batch, self.query_heads, self.head_dim):
            raise InvalidArgument(
                f"block_table {table.shape}, kv_lengths {lengths.shape}, q {query.shape}", "q"
            )
        out = np.empty((batch, self.query_heads, self.value_dim), np.float32)
        check(
            lib.growpage_cache_attention(
                self._c,
                layer,
                batch,
                pointer(table, "const int32_t*"),
                table.shape[-1],
                pointer(lengths, "const int32_t*"),
                pointer(query, "const float*"),
                pointer(out, "float*"),
                ffi.NULL,
            )
        )
        return out
