# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import growpage as gp

HERE = Path(__file__).resolve().parents[1]
SOURCE = Path(os.environ.get("GROWPAGE_SOURCE") or HERE.parents[2])
sys.path.insert(0, str(HERE))

SHAPE: dict[str, Any] = {
    "backend": gp.Backend.CPU,
    "isa": gp.Isa.SCALAR,
    "layers": 2,
    "query_heads": 4,
    "kv_heads": 2,
    "head_dim": 8,
    "page_size": 16,
    "pages": 12,
    "dtype": gp.DType.F32,
    "summary": gp.SummaryOptions(slots=4),
}


@pytest.fixture
def make_cache() -> Callable[..., gp.Cache]:
    """A small CPU cache, with changes to its options."""
    return lambda **changes: gp.Cache(**(SHAPE | changes))
