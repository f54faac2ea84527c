# SPDX-License-Identifier: Apache-2.0
"""What is decided at a capacity boundary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, fields
from typing import Any, Union

from growpage._ffi import ffi
from growpage._library import check, initialised, keep_exception, lib, read_struct, sized, text
from growpage.handle import Handle, Log, log_hooks
from growpage.options import Decision, LogLevel, RetentionOptions, Score, Shared, Strategy

Parameter = Union[int, float]


@dataclass
class Demand:
    """Sums and count over (layer, KV head): ranks add theirs, then the ratio is taken."""

    short_sum: float = 0.0
    long_sum: float = 0.0
    count: int = 0  # 0 when there was no candidate

    @property
    def delta(self) -> float:
        """Mean short − mean long (paper, eq. 5): above 0 attention is widening."""
        return float(lib.growpage_demand_delta(self.to_c()))

    def to_c(self) -> Any:
        """As growpage_demand."""
        return ffi.new("growpage_demand*", (self.short_sum, self.long_sum, self.count))

    @classmethod
    def from_c(cls, demand: Any) -> Demand:
        """From growpage_demand or a row of that type."""
        return cls(demand.short_sum, demand.long_sum, demand.count)


@dataclass(frozen=True)
class Boundary:
    """What a policy sees."""

    request: int  # the engine's tag
    boundary: int  # decisions this request had before, from 0
    length: int  # true length in tokens
    pages: int  # pages held
    page_size: int
    measured: bool  # `demand` was measured
    demand: Demand
    pressure: float  # 1 − allocatable pages / total pages

    @classmethod
    def from_c(cls, boundary: Any) -> Boundary:
        """From growpage_boundary."""
        return cls(
            boundary.request,
            boundary.boundary,
            boundary.length,
            boundary.pages,
            boundary.page_size,
            bool(boundary.measured),
            Demand.from_c(boundary.demand),
            boundary.pressure,
        )


@dataclass(frozen=True)
class PolicyInfo:
    """What a policy needs and may do."""

    name: str
    needs_demand: bool  # Δ is measured before it decides
    may_compact: bool  # False: a full pool preempts instead
    initial_pages: int  # a request grows freely to these, or its prompt plus one page
    max_pages: int  # 0 = no bound


class Policy(Handle, MutableMapping[str, Parameter]):
    """"full", "fixed", "zipage", "growpage", "random", "inverse", "shrink", or a user's function.

    A mapping of its parameters; those of retention are "retention.recent" and so on. A scheduler
    takes a copy, so later changes do not reach it.

        Policy("growpage", threshold=0.0, initial_pages=4)
    """

    def __init__(
        self,
        name: str,
        *,
        log: Log | None = None,
        log_level: LogLevel = LogLevel.WARNING,
        **parameters: Parameter,
    ) -> None:
        hooks, self._keep = log_hooks(log, log_level)
        self._create("policy_create", name.encode(), hooks, keep=self._keep)
        self.update(parameters)

    @classmethod
    def user(
        cls,
        decide: Callable[[Boundary], Decision],
        *,
        needs_demand: bool = True,
        log: Log | None = None,
        log_level: LogLevel = LogLevel.WARNING,
        **parameters: Parameter,
    ) -> Policy:
        """The engine's own; `decide` must be deterministic and must not call the library. What it
        raises comes out of the call that asked it, and counts as GROW there."""

        def call(_context: Any, boundary: Any) -> int:
            try:
                return int(decide(Boundary.from_c(boundary)))
            except BaseException as exception:  # also KeyboardInterrupt: raised at the call instead
                keep_exception(exception)
                return int(Decision.GROW)

        callback = ffi.callback("growpage_decide_callback", call)
        policy = cls.__new__(cls)
        hooks, keep = log_hooks(log, log_level)
        policy._keep = (callback, *keep)
        policy._create(
            "policy_create_user", callback, ffi.NULL, int(needs_demand), hooks, keep=policy._keep
        )
        policy.update(parameters)
        return policy

    def _kinds(self) -> dict[str, int]:
        kinds: dict[str, int] = {}
        parameter = sized("parameter")
        while (
            lib.growpage_policy_get_parameter(self._c, len(kinds), parameter) == lib.GROWPAGE_OK
        ):
            kinds[text(parameter.name)] = parameter.kind
        return kinds

    def __getitem__(self, name: str) -> Parameter:
        kind = self._kinds()[name]
        if kind == lib.GROWPAGE_PARAMETER_INT:
            integer = ffi.new("int64_t*")
            check(lib.growpage_policy_get_int(self._c, name.encode(), integer))
            return int(integer[0])
        number = ffi.new("double*")
        check(lib.growpage_policy_get_double(self._c, name.encode(), number))
        return float(number[0])

    def __setitem__(self, name: str, value: Parameter) -> None:
        if self._kinds().get(name) == lib.GROWPAGE_PARAMETER_DOUBLE or isinstance(value, float):
            check(lib.growpage_policy_set_double(self._c, name.encode(), value))
        else:
            check(lib.growpage_policy_set_int(self._c, name.encode(), value))

    def __delitem__(self, name: str) -> None:
        raise TypeError("the parameters of a policy cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds())

    def __len__(self) -> int:
        return len(self._kinds())

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def retention(self) -> RetentionOptions:
        """Give it to Cache. "full" has the defaults."""
        c = initialised("retention_options")
        check(lib.growpage_policy_get_retention(self._c, c))
        values = {field.name: getattr(c, field.name) for field in fields(RetentionOptions)}
        values["score"] = Score(c.score)
        values["strategy"] = Strategy(c.strategy)
        values["shared"] = Shared(c.shared)
        values["protect_prompt"] = bool(c.protect_prompt)
        return RetentionOptions(**values)

    @retention.setter
    def retention(self, options: RetentionOptions) -> None:
        check(lib.growpage_policy_set_retention(self._c, retention_to_c(options)))

    def info(self, page_size: int) -> PolicyInfo:
        """What it needs and may do with pages of `page_size` tokens."""
        info = sized("policy_info")
        check(lib.growpage_policy_get_info(self._c, page_size, info))
        return read_struct(PolicyInfo, info)

    def validate(self, page_size: int) -> None:
        """Raises InvalidArgument for the first parameter out of range."""
        check(lib.growpage_policy_validate(self._c, page_size))

    def decide(self, boundary: Boundary) -> Decision:
        """The decision itself, for engines with a scheduler of their own."""
        c = sized("boundary")
        for field in fields(Boundary):
            if field.name != "demand":
                setattr(c, field.name, getattr(boundary, field.name))
        c.demand = boundary.demand.to_c()[0]
        decision = ffi.new("int32_t*")
        check(lib.growpage_policy_decide(self._c, c, decision))
        return Decision(decision[0])


def retention_to_c(options: RetentionOptions | None) -> Any:
    """As growpage_retention_options; null for None."""
    return options_to_c("retention_options", options)


def options_to_c(name: str, options: Any) -> Any:
    """A dataclass of plain numbers as the struct of that name; null for None."""
    if options is None:
        return ffi.NULL
    struct = initialised(name)
    for field in fields(options):
        setattr(struct, field.name, getattr(options, field.name))
    return struct
