# SPDX-License-Identifier: Apache-2.0
"""Compaction, swap and fences of a cache: the books, for engines that move rows themselves."""

from __future__ import annotations

from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from growpage._ffi import ffi
from growpage._library import check, lib, sized
from growpage.handle import Handle
from growpage.options import Shared, Strategy
from growpage.records import PAGE_COPY, PAGE_TRANSFER, Records, integers, pointer


class Ticket(NamedTuple):
    """A begun compaction. Ticket(*row["ticket"]) makes one from a row of Plan.compactions."""

    sequence: int
    fence: int
    victims: int
    strategy: int

    def to_c(self) -> Any:
        """As growpage_ticket."""
        return ffi.new("growpage_ticket*", tuple(int(value) for value in self))


class CompactionPlan(NamedTuple):
    """Which pages a compaction empties: logical page indices, ascending."""

    strategy: Strategy
    victims: tuple[int, ...]

    def to_c(self) -> Any:
        """As growpage_compaction_plan."""
        pages = [*self.victims, -1, -1][:2]
        return ffi.new(
            "growpage_compaction_plan*", (int(self.strategy), len(self.victims), pages)
        )

    @classmethod
    def from_c(cls, plan: Any) -> CompactionPlan:
        """From growpage_compaction_plan."""
        return cls(Strategy(plan.strategy), tuple(plan.victim[i] for i in range(plan.victims)))


class CacheCompaction(Handle):
    """Part of Cache."""

    def _pages_of(self, sequence: SupportsIndex) -> int:
        info = sized("sequence")
        check(lib.growpage_cache_get_sequence(self._c, sequence, info))
        return int(info.page_count)

    def begin_compaction(
        self,
        sequence: SupportsIndex,
        victims: int = 1,
        *,
        strategy: Strategy = Strategy.FILL_HOLES,
        shared: Shared = Shared.KEEP,
    ) -> tuple[Ticket, Records]:
        """Starts freeing 1 or 2 pages of a full, computed sequence; it is busy until the ticket's
        fence completes. The copies (PAGE_COPY) run first."""
        copies = np.zeros(self._pages_of(sequence), PAGE_COPY)
        count, ticket = ffi.new("size_t*"), ffi.new("growpage_ticket*")
        check(
            lib.growpage_cache_begin_compaction(
                self._c,
                sequence,
                victims,
                strategy,
                shared,
                pointer(copies, "growpage_page_copy*"),
                copies.size,
                count,
                ticket,
            )
        )
        made = Ticket(ticket.sequence, ticket.fence, ticket.victims, ticket.strategy)
        return made, copies[: count[0]]

    def page_marks(
        self, sequence: SupportsIndex, protected_slots: int = 0
    ) -> npt.NDArray[np.uint8]:
        """[pages] PageMark bits of each page of the table."""
        marks = np.zeros(self._pages_of(sequence), np.uint8)
        memory = pointer(marks, "uint8_t*"), marks.size
        check(lib.growpage_cache_page_marks(self._c, sequence, protected_slots, *memory))
        return marks

    def apply_compaction(
        self,
        ticket: Ticket,
        plan: CompactionPlan,
        page_kept: npt.ArrayLike | None = None,
        rows_per_page: int = 0,
    ) -> None:
        """Carries a plan out in the block table. `page_kept` [pages] rows kept per page, of
        `rows_per_page` = layers · kv_heads · page_size."""
        kept = np.empty(0, np.int32) if page_kept is None else integers(
            "page_kept", page_kept, np.int32
        )
        memory = pointer(kept, "const int32_t*"), kept.size, rows_per_page
        check(lib.growpage_cache_apply_compaction(self._c, ticket.to_c(), plan.to_c(), *memory))

    def cancel_compaction(self, ticket: Ticket) -> None:
        """Gives a compaction of the caller's own up before it was applied."""
        check(lib.growpage_cache_cancel_compaction(self._c, ticket.to_c()))

    def _swap(self, call: Any, sequence: SupportsIndex) -> tuple[Records, int]:
        transfers = np.zeros(self._pages_of(sequence), PAGE_TRANSFER)
        count, fence = ffi.new("size_t*"), ffi.new("uint64_t*")
        memory = pointer(transfers, "growpage_page_transfer*"), transfers.size
        check(call(self._c, sequence, *memory, count, fence))
        return transfers[: count[0]], fence[0]

    def swap_out(self, sequence: SupportsIndex) -> tuple[Records, int]:
        """Gives device pages up for host pages: the transfers (PAGE_TRANSFER) to run, and the
        fence that ends them."""
        return self._swap(lib.growpage_cache_swap_out, sequence)

    def swap_in(self, sequence: SupportsIndex) -> tuple[Records, int]:
        """The way back, all or none."""
        return self._swap(lib.growpage_cache_swap_in, sequence)

    def complete_fence(self, fence: SupportsIndex) -> None:
        """The device work behind a fence of the caller's own is done."""
        check(lib.growpage_cache_complete_fence(self._c, fence))

    def guard(self, sequence: SupportsIndex) -> int:
        """A fence of the engine's own over a sequence's pages: guarded rows are neither
        overwritten nor moved."""
        fence = ffi.new("uint64_t*")
        check(lib.growpage_cache_guard(self._c, sequence, fence))
        return int(fence[0])
