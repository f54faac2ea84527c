# SPDX-License-Identifier: Apache-2.0
"""Arrays of any library as growpage_tensor, through DLPack, without copies."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from growpage._ffi import ffi
from growpage._library import check, initialised, lib
from growpage.errors import InvalidArgument
from growpage.options import DType
from growpage.records import view

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_is = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is.restype = ctypes.c_int
_capsule_is.argtypes = [ctypes.py_object, ctypes.c_char_p]

_NUMPY = {DType.F32: np.float32, DType.F16: np.float16, DType.BF16: np.uint16}


class Tensor:
    """A strided view of an array of floats: numpy, torch, anything with `__dlpack__` or the
    buffer protocol. Borrows the memory and keeps its owner alive.

    numpy has no bf16: arrays of uint16 (or ml_dtypes.bfloat16) hold its bits.

    axes   letters of the array's axes, "lpthd" for vLLM's [layer, page, token, head, dim]
    order  the order the library wants; an axis that `axes` lacks gets extent 1
    A list of arrays is one a layer: then `axes` are those of one layer.
    """

    def __init__(
        self, array: Any, axes: str, order: str, *, writable: bool = False, name: str = "array"
    ) -> None:
        self._keep: list[Any] = []
        if not isinstance(array, (list, tuple)):
            self.c = self._one(array, axes, order, writable)
            return
        layers = [self._one(layer, axes, order[1:], writable) for layer in array]
        if not layers or any(not _alike(layers[0], layer) for layer in layers):
            raise InvalidArgument(f"{name}: layers differ in shape, strides or type", name)
        first = layers[0]
        self.c = initialised("tensor")
        pointers = ffi.new("void*[]", [layer.data for layer in layers])
        self._keep.append(pointers)  # the field does not own them
        self.c.layer_data = pointers
        self.c.dtype = first.dtype
        self.c.ndim = first.ndim + 1
        self.c.shape = [len(layers), *list(first.shape)[:-1]]
        self.c.strides = [0, *list(first.strides)[:-1]]

    def _one(self, array: Any, axes: str, order: str, writable: bool) -> Any:
        if not hasattr(array, "__dlpack__"):
            array = np.asarray(array)
        bf16 = isinstance(array, np.ndarray) and (
            array.dtype == np.uint16 or array.dtype.name == "bfloat16"
        )
        if bf16:
            array = array.view(np.float16)  # DLPack has no other name for its bits
        try:
            capsule = array.__dlpack__(max_version=(1, 0))
        except TypeError:  # producers before version 1
            capsule = array.__dlpack__()
        tensor = initialised("tensor")
        names = axes.encode(), order.encode()
        if _capsule_is(capsule, b"dltensor_versioned"):
            managed = _managed("growpage_dl_managed_tensor_versioned*", capsule)
            check(
                lib.growpage_tensor_from_dlpack_versioned(managed, *names, int(writable), tensor)
            )
        else:
            managed = _managed("growpage_dl_managed_tensor*", capsule)
            check(lib.growpage_tensor_from_dlpack(managed, *names, tensor))
        if bf16:
            tensor.dtype = DType.BF16
        self._keep.append(capsule)  # not renamed to "used": its end frees the managed tensor
        return tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in the order wanted."""
        return tuple(self.c.shape[i] for i in range(self.c.ndim))

    @property
    def dtype(self) -> DType:
        """Element type."""
        return DType(self.c.dtype)

    def packed(self, name: str, dtype: DType, shape: Sequence[int]) -> Any:
        """Pointer to the first element; refuses any other type, shape or gaps between rows."""
        if self.dtype != dtype or self.shape != tuple(shape):
            raise InvalidArgument(
                f"{name} is {self.dtype.name} {self.shape}, not {dtype.name} {tuple(shape)}", name
            )
        step = 1
        strides = list(self.c.strides)[: len(shape)]
        for extent, stride in zip(reversed(self.shape), reversed(strides)):
            if extent > 1 and stride not in (0, step):
                raise InvalidArgument(f"{name} is not contiguous", name)
            step *= extent
        return self.c.data


def _managed(ctype: str, capsule: Any) -> Any:
    name = b"dltensor_versioned" if "versioned" in ctype else b"dltensor"
    return ffi.cast(ctype, _capsule_pointer(capsule, name))


def _alike(a: Any, b: Any) -> bool:
    same = [a.dtype == b.dtype, list(a.shape) == list(b.shape), list(a.strides) == list(b.strides)]
    return all(same)


def as_numpy(tensor: Any, owner: object) -> npt.NDArray[Any]:
    """The memory behind a growpage_tensor with `data`, writable, no copy; keeps `owner` alive."""
    dtype = np.dtype(_NUMPY[DType(tensor.dtype)])
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    strides = [tensor.strides[i] for i in range(tensor.ndim)]
    span = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides))
    flat = view(tensor.data, span, dtype, owner)
    flat.flags.writeable = True
    return np.lib.stride_tricks.as_strided(flat, shape, [s * dtype.itemsize for s in strides])
