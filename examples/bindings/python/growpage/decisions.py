# SPDX-License-Identifier: Apache-2.0
"""Digests, and the decision log as text and as one hash."""

from __future__ import annotations

from typing import Any, NamedTuple

from growpage._ffi import ffi
from growpage._library import check, lib
from growpage.records import DECISION, Records, pointer, rows


class Hash(NamedTuple):
    """128 bits; as text 32 hexadecimal digits."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.high:016x}{self.low:016x}"

    @classmethod
    def from_c(cls, value: Any) -> Hash:
        """From growpage_hash."""
        return cls(value.low, value.high)


def decisions_to_jsonl(decisions: Records) -> str:
    """One JSON object a line, from records of Scheduler.drain_decisions."""
    log = rows("decisions", decisions, DECISION)
    arguments = pointer(log, "const growpage_decision*"), len(log)
    length = ffi.new("size_t*")
    check(lib.growpage_decisions_to_jsonl(*arguments, ffi.NULL, 0, length))
    text = ffi.new("char[]", length[0] + 1)
    check(lib.growpage_decisions_to_jsonl(*arguments, text, length[0], length))
    return str(ffi.unpack(text, length[0]).decode())


def decision_log_hash(decisions: Records) -> Hash:
    """Hash of that text: equal logs, equal hashes, in every language."""
    log = rows("decisions", decisions, DECISION)
    value = ffi.new("growpage_hash*")
    check(
        lib.growpage_decision_log_hash(pointer(log, "const growpage_decision*"), len(log), value)
    )
    return Hash.from_c(value)
