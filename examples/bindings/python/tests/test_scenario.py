# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re

import numpy as np
import scenario
from conftest import HERE, SOURCE

EXPECTED = (SOURCE / "examples/bindings/scenario.expected").read_text().splitlines()


def test_the_same_decisions_as_in_every_language() -> None:
    assert list(scenario.run()) == EXPECTED


def test_and_over_memory_of_numpy() -> None:
    k = np.zeros((2, 24, 16, 2, 32), np.float32)
    assert list(scenario.run(k=k, v=np.zeros_like(k), kv_axes="lpthd")) == EXPECTED
    assert k.any()


def test_the_readmes_example_runs() -> None:
    example = re.search(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
    assert example is not None
    names: dict[str, object] = {}
    exec(compile(example.group(1), "README.md", "exec"), names)
    stats = names["scheduler"].stats()  # type: ignore[attr-defined]
    assert stats.finished == 6 and stats.decode_tokens == 600 and stats.grow + stats.compact > 0
    assert names["k"].any()  # type: ignore[attr-defined]
