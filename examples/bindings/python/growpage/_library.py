# SPDX-License-Identifier: Apache-2.0
"""The shared library, and how its statuses and its call-backs' exceptions become exceptions."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any, TypeVar

from growpage import errors
from growpage._ffi import ffi

lib: Any = ffi.dlopen(str(Path(__file__).with_name("libgrowpage.so")))

_FAMILIES: dict[int, type[errors.GrowpageError]] = {
    lib.GROWPAGE_OUT_OF_PAGES: errors.OutOfPages,
    lib.GROWPAGE_OUT_OF_SEQUENCES: errors.OutOfSequences,
    lib.GROWPAGE_OUT_OF_SLOTS: errors.OutOfSlots,
    lib.GROWPAGE_AT_CAPACITY: errors.AtCapacity,
    lib.GROWPAGE_OUT_OF_FENCES: errors.OutOfFences,
    lib.GROWPAGE_OUT_OF_HOST_PAGES: errors.OutOfHostPages,
    lib.GROWPAGE_BUSY: errors.Busy,
    lib.GROWPAGE_INVALID_ARGUMENT: errors.InvalidArgument,
    lib.GROWPAGE_STALE_ID: errors.StaleId,
    lib.GROWPAGE_BEHIND_COMPACTION: errors.BehindCompaction,
    lib.GROWPAGE_REQUEST_TOO_LARGE: errors.RequestTooLarge,
    lib.GROWPAGE_UNSUPPORTED: errors.Unsupported,
    lib.GROWPAGE_PROTOCOL_ERROR: errors.ProtocolError,
    lib.GROWPAGE_OUT_OF_MEMORY: errors.OutOfMemory,
    lib.GROWPAGE_INTERNAL_ERROR: errors.InternalError,
    lib.GROWPAGE_DEVICE_ERROR: errors.DeviceError,
}

#: The exception a call-back of this thread ended with: call-backs run on the thread of the call.
_pending = threading.local()


def keep_exception(exception: BaseException) -> None:
    """Call-backs must return: `check` raises this when the library's call is back."""
    if getattr(_pending, "exception", None) is None:
        _pending.exception = exception


def check(status: int) -> None:
    """To be given the status of every call. Raises what a call-back raised, or the status."""
    exception = getattr(_pending, "exception", None)
    if exception is not None:
        _pending.exception = None
        raise exception
    if status != lib.GROWPAGE_OK:
        raise _error(status)


def _error(status: int) -> errors.GrowpageError:
    error = ffi.new("growpage_error*")
    lib.growpage_last_error(error, ffi.sizeof("growpage_error"))
    family = _FAMILIES.get(status, errors.GrowpageError)
    texts = (text(getattr(error, name)) for name in ("argument", "value", "allowed", "message"))
    argument, value, allowed, message = texts
    return family(message or text(lib.growpage_status_text(status)), argument, value, allowed)


def text(string: Any) -> str:
    """A C string; null is empty."""
    return "" if string == ffi.NULL else ffi.string(string).decode("utf-8", "replace")


def sized(name: str) -> Any:
    """A new struct that is to be written by the library."""
    struct = ffi.new(f"growpage_{name}*")
    struct.struct_size = ffi.sizeof(f"growpage_{name}")
    return struct


def initialised(name: str) -> Any:
    """A new struct with the library's defaults."""
    struct = ffi.new(f"growpage_{name}*")
    check(getattr(lib, f"growpage_{name}_init")(struct, ffi.sizeof(f"growpage_{name}")))
    return struct


T = TypeVar("T")


def read_struct(kind: type[T], struct: Any) -> T:
    """The dataclass `kind` from the fields of the same name."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value = getattr(struct, field.name)
        if field.type == "bool":
            value = bool(value)
        elif field.type == "str":
            value = text(value)
        values[field.name] = value
    return kind(**values)


def version() -> str:
    """Version of the library, "0.1.0"."""
    return text(lib.growpage_version())


def api_revision() -> int:
    """Revision of the C interface that the library has."""
    return int(lib.growpage_api_revision())
