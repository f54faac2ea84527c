# SPDX-License-Identifier: Apache-2.0
"""The paged KV cache: options, sequences, batch tables, events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from growpage._ffi import ffi
from growpage._library import check, initialised, lib, read_struct, sized
from growpage.cache_compaction import CacheCompaction
from growpage.cache_kernels import CacheKernels
from growpage.cache_options import demand_to_c, rope_to_c
from growpage.errors import GrowpageError, InvalidArgument
from growpage.handle import Executor, Log, log_hooks
from growpage.options import (
    Backend,
    DemandOptions,
    DType,
    Isa,
    Key,
    Layout,
    LogLevel,
    RetentionOptions,
    Rope,
    SummaryOptions,
)
from growpage.policy import options_to_c
from growpage.prefix import KeyStruct, token_array
from growpage.records import KV_EVENT, PAGE_COPY, Records, integers, pointer, view
from growpage.tensor import Tensor

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CacheInfo:
    """pages = free + cached + referenced + in flight, always."""

    backend_name: str
    backend: int
    page_size: int
    pages: int
    free_pages: int
    cached_pages: int  # published, read by nobody, evictable
    referenced_pages: int  # in at least one block table
    in_flight_pages: int  # in no table, but a fence guards them
    host_pages: int
    free_host_pages: int
    sequences: int  # alive
    evicted_pages: int  # cached pages taken for reuse, so far
    copied_pages: int  # copy-on-write, so far
    k_bytes_read: int  # by demand and score passes, so far


@dataclass(frozen=True)
class SequenceInfo:
    """A sequence as it is now."""

    pages: I32  # view of the block table (host pages while swapped): changes with the sequence
    length: int  # tokens appended: the position of the next token
    slots: int  # used slots; equals length until the first compaction
    computed: int  # slots whose K/V exists
    compactions: int
    busy: bool  # under a fence: do not read, write or decode it
    swapped: bool  # its pages are in host memory
    private_pages: int  # pages that no other table holds


class Cache(CacheCompaction, CacheKernels):
    """Pages, prefix sharing and, with Backend.CPU, KV memory and kernels.

    Parameters are the fields of growpage_cache_options. `k` and `v` are the engine's own memory in
    any array library, axes `kv_axes` (l layer, p page, h KV head, t token, d dim; a list is one
    array a layer, without the l), borrowed without copies.
    """

    def __init__(
        self,
        *,
        pages: int,
        page_size: int = 256,
        backend: Backend = Backend.NONE,
        layers: int = 0,
        query_heads: int = 0,
        kv_heads: int = 0,
        head_dim: int = 0,
        value_dim: int = 0,
        max_sequences: int = 1024,
        host_pages: int = 0,
        event_capacity: int = 0,
        max_pages_per_sequence: int = 1024,
        max_fences: int = 256,
        prefix_caching: bool = True,
        dtype: DType = DType.BF16,
        layout: Layout = Layout.HND,
        isa: Isa = Isa.AUTOMATIC,
        k: Any = None,
        v: Any = None,
        kv_axes: str = "lphtd",
        summary: SummaryOptions | None = None,
        rope: Rope | None = None,
        demand: DemandOptions | None = None,
        retention: RetentionOptions | None = None,
        executor: Executor | None = None,
        softmax_scale: float = 0.0,
        score_buffers: int = 8,
        log: Log | None = None,
        log_level: LogLevel = LogLevel.WARNING,
    ) -> None:
        given = locals()
        c = initialised("cache_options")
        for name, _ in ffi.typeof("growpage_cache_options").fields:
            if isinstance(given.get(name), (int, float)):
                setattr(c, name, given[name])
        tensors = [
            None if array is None else Tensor(array, kv_axes, "lphtd", writable=True, name=name)
            for name, array in (("k", k), ("v", v))
        ]
        c.k, c.v = (ffi.NULL if tensor is None else tensor.c for tensor in tensors)
        # The structs are read during the call; what they point to stays borrowed.
        summary_c = c.summary = options_to_c("summary_options", summary)
        retention_c = c.retention = options_to_c("retention_options", retention)
        c.rope, rope_keep = rope_to_c(rope)
        c.demand, demand_keep = demand_to_c(demand, layers)
        c.executor = ffi.NULL if executor is None else executor.c
        hooks, hooks_keep = log_hooks(log, log_level)
        borrowed = (tensors, rope_keep, demand_keep, executor, hooks_keep, summary_c, retention_c)
        self._create("cache_create", c, hooks, keep=borrowed)
        self.layers, self.query_heads, self.kv_heads = layers, query_heads, kv_heads
        self.head_dim, self.value_dim = head_dim, value_dim or head_dim
        self.pages, self.page_size = pages, page_size
        self.dtype = dtype if tensors[0] is None else tensors[0].dtype

    def info(self) -> CacheInfo:
        """Counts of pages and of what was done so far."""
        info = sized("cache_info")
        check(lib.growpage_cache_get_info(self._c, info))
        return read_struct(CacheInfo, info)

    # ---- Sequences --------------------------------------------------------------------------

    def admit(self, tokens: npt.ArrayLike = (), key: Key | None = None) -> tuple[int, int]:
        """A new sequence that begins with the longest cached prefix of `tokens`, and the length of
        that: at most all but one, appended and computed already."""
        array, struct = token_array(tokens), KeyStruct(key)
        sequence, matched = ffi.new("uint64_t*"), ffi.new("int64_t*")
        words = pointer(array, "const int32_t*")
        check(lib.growpage_cache_admit(self._c, words, array.size, struct.c, sequence, matched))
        return sequence[0], matched[0]

    def match_length(self, tokens: npt.ArrayLike, key: Key | None = None) -> int:
        """Tokens that admit would match now, without taking anything."""
        array, struct = token_array(tokens), KeyStruct(key)
        matched = ffi.new("int64_t*")
        words = pointer(array, "const int32_t*")
        check(lib.growpage_cache_match_length(self._c, words, array.size, struct.c, matched))
        return int(matched[0])

    def grow(self, sequence: SupportsIndex) -> None:
        """One more page at the end of the table."""
        check(lib.growpage_cache_grow(self._c, sequence))

    def reserve(self, sequence: SupportsIndex, slots: int) -> None:
        """Pages for `slots` more slots, all or none."""
        check(lib.growpage_cache_reserve(self._c, sequence, slots))

    def append(
        self, sequence: SupportsIndex, tokens: npt.ArrayLike | None = None, count: int = 0
    ) -> tuple[int, int] | None:
        """Takes the next slots for `tokens`, or for `count` unknown ones. A (source, target) page
        copy must run (run_copies) before anything else touches either page."""
        array = None if tokens is None else token_array(tokens)
        count = count if array is None else array.size
        copy = ffi.new("growpage_page_copy*")
        words = pointer(array, "const int32_t*")
        check(lib.growpage_cache_append(self._c, sequence, count, words, copy))
        return None if copy.source < 0 else (copy.source, copy.target)

    def append_batch(
        self, sequences: npt.ArrayLike, tokens: npt.ArrayLike | None = None
    ) -> tuple[int, npt.NDArray[Any], GrowpageError | None]:
        """One token to each sequence, until one cannot take it: how many have theirs, the page
        copies (PAGE_COPY) to run first, and why the next one has not."""
        ids = integers("sequences", sequences, np.uint64)
        array = None if tokens is None else token_array(tokens)
        if array is not None and array.shape != ids.shape:
            raise InvalidArgument(f"tokens {array.shape} for sequences {ids.shape}", "tokens")
        copies = np.zeros(ids.size, PAGE_COPY)
        count, done = ffi.new("size_t*"), ffi.new("size_t*")
        words = pointer(ids, "const uint64_t*"), pointer(array, "const int32_t*"), ids.size
        memory = pointer(copies, "growpage_page_copy*"), count, done
        refusal: GrowpageError | None = None
        try:
            check(lib.growpage_cache_append_batch(self._c, *words, *memory))
        except GrowpageError as error:
            refusal = error
        return int(done[0]), copies[: count[0]], refusal

    def mark_computed(self, sequence: SupportsIndex, slots: int) -> None:
        """K/V of the first `slots` slots exists now: full pages become matchable."""
        check(lib.growpage_cache_mark_computed(self._c, sequence, slots))

    def fork(self, sequence: SupportsIndex) -> int:
        """A second sequence with the same content, pages shared until written."""
        fork = ffi.new("uint64_t*")
        check(lib.growpage_cache_fork(self._c, sequence, fork))
        return int(fork[0])

    def truncate(self, sequence: SupportsIndex, length: int) -> None:
        """Forgets the tokens from `length` on."""
        check(lib.growpage_cache_truncate(self._c, sequence, length))

    def release(self, sequence: SupportsIndex) -> None:
        """The sequence is gone; its pages return."""
        check(lib.growpage_cache_release(self._c, sequence))

    def sequence(self, sequence: SupportsIndex) -> SequenceInfo:
        """The sequence as it is now."""
        info = sized("sequence")
        check(lib.growpage_cache_get_sequence(self._c, sequence, info))
        return SequenceInfo(
            view(info.pages, info.page_count, np.int32, self._c),
            info.length,
            info.slots,
            info.computed,
            info.compactions,
            bool(info.busy),
            bool(info.swapped),
            info.private_pages,
        )

    def physical_slot(self, sequence: SupportsIndex, slot: int) -> int:
        """page · page_size + offset of a logical slot."""
        physical = ffi.new("int64_t*")
        check(lib.growpage_cache_physical_slot(self._c, sequence, slot, physical))
        return int(physical[0])

    def clear_prefix_cache(self) -> None:
        """Withdraws every unreferenced cached page and forgets published ones."""
        check(lib.growpage_cache_clear_prefix_cache(self._c))

    def check_invariants(self) -> None:
        """Checks every rule of the bookkeeping, O(everything), for debugging."""
        check(lib.growpage_cache_check_invariants(self._c))

    # ---- Batch tables -----------------------------------------------------------------------

    def padded_tables(
        self, sequences: npt.ArrayLike, *, pad: int = 0, out: I32 | None = None
    ) -> tuple[I32, I32]:
        """FlashAttention-like: block_table [batch, stride] and cache_seqlens [batch] used slots.
        `out` [batch, any stride that is enough] is written instead of a new table."""
        ids = integers("sequences", sequences, np.uint64)
        batch = pointer(ids, "const uint64_t*"), ids.size
        stride = ffi.new("int64_t*")
        if out is None:
            none = ffi.NULL, 0, pad, ffi.NULL
            check(lib.growpage_cache_padded_tables(self._c, *batch, stride, *none))
            out = np.empty((ids.size, stride[0]), np.int32)
        table = _output("out", out, (ids.size, out.shape[-1]))
        stride[0] = out.shape[-1]
        lengths = np.empty(ids.size, np.int32)
        memory = pointer(table, "int32_t*"), table.size, pad, pointer(lengths, "int32_t*")
        if table.size:
            check(lib.growpage_cache_padded_tables(self._c, *batch, stride, *memory))
        return out, lengths

    def compressed_tables(self, sequences: npt.ArrayLike) -> tuple[I32, I32, I32]:
        """FlashInfer-like: indptr [batch + 1], indices, last_page_len [batch]; pages with used
        slots only."""
        ids = integers("sequences", sequences, np.uint64)
        batch = pointer(ids, "const uint64_t*"), ids.size
        indptr, last = np.zeros(ids.size + 1, np.int32), np.empty(ids.size, np.int32)
        words = pointer(indptr, "int32_t*"), pointer(last, "int32_t*")
        count = ffi.new("size_t*")
        call = lib.growpage_cache_compressed_tables
        check(call(self._c, *batch, words[0], ffi.NULL, 0, count, words[1]))
        indices = np.empty(count[0], np.int32)
        if indices.size:
            memory = pointer(indices, "int32_t*"), indices.size, count
            check(call(self._c, *batch, words[0], *memory, words[1]))
        return indptr, indices, last

    def token_tables(
        self, sequences: npt.ArrayLike, counts: npt.ArrayLike
    ) -> tuple[I64, I64]:
        """slot_mapping and positions, each [Σ counts], of the last counts[i] tokens of each
        sequence, sequence after sequence, oldest first."""
        ids = integers("sequences", sequences, np.uint64)
        lengths = integers("counts", counts, np.int32)
        if lengths.shape != ids.shape:
            raise ValueError(f"counts {lengths.shape} for sequences {ids.shape}")
        total = int(lengths.sum(dtype=np.int64))
        slots, positions = np.empty(max(total, 0), np.int64), np.empty(max(total, 0), np.int64)
        batch = pointer(ids, "const uint64_t*"), ids.size, pointer(lengths, "const int32_t*")
        memory = pointer(slots, "int64_t*"), pointer(positions, "int64_t*"), slots.size
        check(lib.growpage_cache_token_tables(self._c, *batch, *memory, ffi.NULL))
        return slots, positions

    # ---- KV events --------------------------------------------------------------------------

    def drain_events(self, capacity: int | None = None) -> tuple[Records, int]:
        """The oldest waiting events (KV_EVENT), all or up to `capacity`, and how many were lost so
        far because nobody drained in time."""
        count, dropped = ffi.new("size_t*"), ffi.new("int64_t*")
        check(lib.growpage_cache_drain_events(self._c, ffi.NULL, 0, count, dropped))
        size = count[0] if capacity is None else min(capacity, count[0])
        events = np.zeros(size, KV_EVENT)
        if size:
            memory = pointer(events, "growpage_kv_event*"), size
            check(lib.growpage_cache_drain_events(self._c, *memory, count, dropped))
        return events, dropped[0]


def _output(name: str, array: npt.NDArray[Any], shape: Sequence[int]) -> npt.NDArray[Any]:
    usable = array.dtype == np.int32 and array.flags.c_contiguous and array.flags.writeable
    if not usable or array.shape != tuple(shape):
        raise ValueError(f"{name} is not a writable, contiguous int32 array {tuple(shape)}")
    return array
