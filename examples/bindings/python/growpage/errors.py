# SPDX-License-Identifier: Apache-2.0
"""What the library refuses with: one class a status."""

from __future__ import annotations


class GrowpageError(Exception):
    """Base of all. `argument`, `value` and `allowed` are empty where a status has none."""

    def __init__(
        self, message: str, argument: str = "", value: str = "", allowed: str = ""
    ) -> None:
        super().__init__(message)
        self.argument = argument
        self.value = value
        self.allowed = allowed


class RetryableError(GrowpageError):
    """Nothing is wrong: try again when something was released or a fence has completed."""


class OutOfPages(RetryableError):
    """No free and no evictable page now."""


class OutOfSequences(RetryableError):
    """Every sequence slot is taken."""


class OutOfSlots(RetryableError):
    """Every query-summary slot is taken."""


class AtCapacity(RetryableError):
    """The sequence's pages are full: a capacity boundary."""


class OutOfFences(RetryableError):
    """Every fence is open."""


class OutOfHostPages(RetryableError):
    """Swap space is full."""


class Busy(RetryableError):
    """The sequence is under compaction or swap."""


class InvalidArgument(GrowpageError, ValueError):
    """`argument` had `value`; `allowed` says what it may be. Also: the object is closed."""


class StaleId(GrowpageError, LookupError):
    """The id's object is gone or never was."""


class BehindCompaction(GrowpageError):
    """Rollback across a compaction, whose evicted rows are gone."""


class RequestTooLarge(GrowpageError):
    """The request can never fit, however long it waits."""


class Unsupported(GrowpageError, NotImplementedError):
    """Valid, but not offered by this build or backend."""


class ProtocolError(GrowpageError, RuntimeError):
    """A call out of order, e.g. `complete` without `schedule`."""


class OutOfMemory(GrowpageError, MemoryError):
    """Memory of the host or the backend was not to be had."""


class InternalError(GrowpageError, RuntimeError):
    """A defect of the library."""


class DeviceError(GrowpageError, RuntimeError):
    """The device or its driver refused a call."""
