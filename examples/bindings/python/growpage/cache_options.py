# SPDX-License-Identifier: Apache-2.0
"""Options with arrays as C structs, and the lengths the library cannot check itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from growpage._ffi import ffi
from growpage._library import initialised
from growpage.errors import InvalidArgument
from growpage.options import DemandOptions, Rope
from growpage.records import pointer


def rope_to_c(rope: Rope | None) -> tuple[Any, tuple[object, ...]]:
    """As growpage_rope (null for None), and what must live as long as its user."""
    if rope is None:
        return ffi.NULL, ()
    c = initialised("rope")
    c.rotary_dim, c.pairing = rope.rotary_dim, rope.pairing
    c.attention_scale = rope.attention_scale
    half = rope.rotary_dim // 2
    keep: list[object] = [c]
    for name in ("inv_freq", "cos_table", "sin_table"):
        given = getattr(rope, name)
        if given is None:
            continue
        array = np.ascontiguousarray(given, np.float32)
        expected = (half,) if name == "inv_freq" else (len(array), half)
        if array.shape != expected:
            raise InvalidArgument(f"Rope.{name} {array.shape}, not {expected}", f"Rope.{name}")
        keep.append(array)
        setattr(c, name, pointer(array, "const float*"))
    if rope.cos_table is not None and rope.sin_table is not None:
        if len(rope.cos_table) != len(rope.sin_table):
            raise InvalidArgument("Rope.cos_table and sin_table differ in length", "Rope.cos_table")
        c.max_position = len(rope.cos_table)
    return c, tuple(keep)


def demand_to_c(options: DemandOptions | None, layers: int) -> tuple[Any, tuple[object, ...]]:
    """As growpage_demand_options (null for None), and what must live as long as its user."""
    if options is None:
        return ffi.NULL, ()
    c = initialised("demand_options")
    c.p, c.metric, c.group = options.p, options.metric, options.group
    if options.layer_mask is None:
        return c, (c,)
    mask = np.ascontiguousarray(options.layer_mask, np.uint8)
    if mask.shape != (layers,):
        raise InvalidArgument(
            f"DemandOptions.layer_mask {mask.shape}, not ({layers},)", "DemandOptions.layer_mask"
        )
    c.layer_mask = pointer(mask, "const uint8_t*")
    return c, (c, mask)
