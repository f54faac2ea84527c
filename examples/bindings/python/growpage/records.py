# SPDX-License-Identifier: Apache-2.0
"""The library's rows as numpy structured types, and views of its memory without copies.

The types are read off the C declarations, so they cannot differ from them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from growpage._ffi import ffi
from growpage.errors import InvalidArgument

Records = npt.NDArray[np.void]

_SCALARS: dict[str, str] = {
    "int32_t": "i4",
    "int64_t": "i8",
    "uint8_t": "u1",
    "uint64_t": "u8",
    "size_t": "u8",
    "double": "f8",
    "float": "f4",
}


def _dtype(ctype: Any, itemsize: int = 0) -> np.dtype[Any]:
    if ctype.kind == "array":
        return np.dtype((_dtype(ctype.item), (ctype.length,)))
    if ctype.kind != "struct":
        return np.dtype(_SCALARS[ctype.cname])
    fields = [field for field in ctype.fields if not field[0].startswith("reserved")]
    return np.dtype(
        {
            "names": [name for name, _ in fields],
            "formats": [_dtype(field.type) for _, field in fields],
            "offsets": [field.offset for _, field in fields],
            "itemsize": itemsize or ffi.sizeof(ctype),
        }
    )


def record_type(name: str) -> np.dtype[Any]:
    """Structured type of the C struct growpage_`name`."""
    return _dtype(ffi.typeof(f"growpage_{name}"))


PAGE_COPY = record_type("page_copy")
PAGE_TRANSFER = record_type("page_transfer")
TICKET = record_type("ticket")
SUMMARY_ENTRY = record_type("summary_entry")
KV_EVENT = record_type("kv_event")
SWAP = record_type("swap")
COMPACTION = record_type("compaction")
PREFILL = record_type("prefill")
DECODE = record_type("decode")
DEMAND_REQUEST = record_type("demand_request")
MEASURED_DEMAND = record_type("measured_demand")
SAMPLED_TOKEN = record_type("sampled_token")
FINISHED = record_type("finished")
DECISION = record_type("decision")


def _drop(_owner: object, _pointer: object) -> None:
    """End of a view: its hold on the owner goes."""


def view(pointer: Any, count: int, dtype: Any, owner: object, stride: int = 0) -> npt.NDArray[Any]:
    """[count] read-only, no copy. Keeps `owner` alive; the contents change as the C header says."""
    kind = np.dtype(dtype)
    if count == 0:
        return np.empty(0, kind)
    if stride not in (0, kind.itemsize):  # rows of a newer library: longer, same beginning
        kind = _dtype(ffi.typeof(pointer).item, stride)
    memory = ffi.gc(ffi.cast("char*", pointer), partial(_drop, owner))
    array = np.frombuffer(ffi.buffer(memory, count * kind.itemsize), kind)
    array.flags.writeable = False
    return array


def integers(name: str, values: npt.ArrayLike, dtype: Any) -> npt.NDArray[Any]:
    """`values` as a contiguous array of `dtype`, itself when it is one. Refuses what does not
    fit."""
    array = np.asarray(values)
    if array.dtype != dtype:
        if array.size and array.dtype.kind not in "iub":
            raise InvalidArgument(f"{name} holds {array.dtype}, not integers", name)
        limits = np.iinfo(dtype)
        if array.size and (int(array.min()) < limits.min or int(array.max()) > limits.max):
            raise InvalidArgument(f"{name} does not fit {np.dtype(dtype)}", name)
        array = array.astype(dtype)
    return np.ascontiguousarray(array)


def rows(name: str, values: Any, dtype: np.dtype[Any]) -> Records:
    """`values` (structured array, or tuples in the order of the fields) as rows of `dtype`."""
    if isinstance(values, np.ndarray) and values.dtype.names is not None:
        if values.dtype.names != dtype.names:
            raise InvalidArgument(f"{name} has the fields {values.dtype.names}", name)
        return np.ascontiguousarray(values.astype(dtype, copy=False)).reshape(-1)
    listed = [tuple(row) for row in values]
    out = np.zeros(len(listed), dtype)  # zero between the fields too
    out[:] = listed
    return out


def pointer(array: npt.NDArray[Any] | None, ctype: str) -> Any:
    """Borrowed pointer to a contiguous array; null for None and for an empty one."""
    if array is None or array.size == 0:
        return ffi.NULL
    return ffi.cast(ctype, array.ctypes.data)
