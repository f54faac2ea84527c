# SPDX-License-Identifier: Apache-2.0
"""Nothing of the C header is missing here, and nothing differs from it."""

from __future__ import annotations

import dataclasses
import inspect
import re
from enum import EnumMeta
from pathlib import Path
from typing import Any

import growpage as gp
import pytest
from cffi import FFI
from conftest import SOURCE
from growpage._ffi import ffi
from growpage._library import initialised, lib
from growpage_cdef import declarations

HEADER = (SOURCE / "capi/include/growpage/growpage.h").read_text(encoding="utf-8")
SYMBOLS = (SOURCE / "capi/symbols.txt").read_text(encoding="utf-8").split()
#: The mapping of parameters does what these do.
BY_NAME = {
    "growpage_policy_options_init",
    "growpage_policy_get_options",
    "growpage_policy_set_options",
}


def test_the_installed_declarations_are_the_headers(tmp_path: Path) -> None:
    builder = FFI()
    builder.cdef(declarations(HEADER))
    builder.set_source("growpage._ffi", None)
    builder.emit_python_code(str(tmp_path / "_ffi.py"))
    import growpage._ffi as installed

    assert (tmp_path / "_ffi.py").read_text() == Path(str(installed.__file__)).read_text()


def test_every_exported_symbol_is_declared_found_and_used() -> None:
    package = Path(str(gp.__file__)).parent
    text = "".join(path.read_text() for path in package.glob("*.py") if path.name != "_ffi.py")
    for symbol in SYMBOLS:
        assert getattr(lib, symbol) is not None
        name = symbol.removeprefix("growpage_")
        used = {f"lib.{symbol}", f'"{name}"', f'"{name.removesuffix("_init")}"'}
        used.add(f'"{re.sub("_destroy$", "_create", name)}"')
        assert symbol in BY_NAME or any(use in text for use in used), symbol


def test_every_constant_has_a_member() -> None:
    kinds = [kind for kind in vars(gp).values() if isinstance(kind, EnumMeta)]
    known = [{int(member.value) for member in kind} for kind in kinds]  # type: ignore[var-annotated]
    for body in re.findall(r"^enum \{(.*?)\};", HEADER, re.MULTILINE | re.DOTALL):
        group = re.findall(r"(GROWPAGE_\w+) = ", body)
        internal = "GROWPAGE_OK" in group or "GROWPAGE_PARAMETER_INT" in group
        assert internal or {getattr(lib, name) for name in group} in known, group


def fields_of(struct: str) -> set[str]:
    names = {name for name, _ in ffi.typeof(f"growpage_{struct}").fields}
    return {name for name in names if not name.startswith("reserved")} - {"struct_size"}


@pytest.mark.parametrize(
    ("kind", "struct", "derived"),
    [
        (gp.SummaryOptions, "summary_options", set()),
        (gp.Rope, "rope", {"max_position"}),  # the length of the tables
        (gp.DemandOptions, "demand_options", set()),
        (gp.RetentionOptions, "retention_options", set()),
        (gp.Key, "key", {"salt_size", "lora_size", "modality_size"}),
    ],
)
def test_options_have_the_fields_and_defaults_of_c(
    kind: Any, struct: str, derived: set[str]
) -> None:
    assert {field.name for field in dataclasses.fields(kind)} == fields_of(struct) - derived
    default = initialised(struct)
    for field in dataclasses.fields(kind):
        value = getattr(default, field.name)
        if field.default in (None, b""):
            assert value == ffi.NULL
        else:
            assert field.default == pytest.approx(value, rel=1e-6), field.name


@pytest.mark.parametrize(
    ("kind", "struct", "ours"),
    [
        (gp.Cache, "cache_options", {"kv_axes", "log", "log_level"}),
        (gp.Scheduler, "scheduler_options", {"cache", "policy", "log", "log_level"}),
    ],
)
def test_keywords_have_the_fields_and_defaults_of_c(kind: Any, struct: str, ours: set[str]) -> None:
    parameters = dict(inspect.signature(kind).parameters)
    assert set(parameters) - ours == fields_of(struct)
    default = initialised(struct)
    for name in fields_of(struct):
        if parameters[name].default is None:
            assert getattr(default, name) == ffi.NULL
        elif parameters[name].default is not inspect.Parameter.empty:
            assert parameters[name].default == getattr(default, name), name


@pytest.mark.parametrize(
    ("kind", "struct"),
    [
        (gp.CacheInfo, "cache_info"),
        (gp.Stats, "stats"),
        (gp.PolicyInfo, "policy_info"),
        (gp.Demand, "demand"),
        (gp.Boundary, "boundary"),
        (gp.Ticket, "ticket"),
    ],
)
def test_results_have_the_fields_of_c(kind: Any, struct: str) -> None:
    names = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
    assert set(names) == fields_of(struct)


def test_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", gp.version())
    assert gp.api_revision() == lib.GROWPAGE_API_REVISION
