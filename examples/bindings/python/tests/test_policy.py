# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import growpage as gp
import pytest

NAMES = ("full", "fixed", "zipage", "growpage", "random", "inverse", "shrink")


def boundary(short: float, long: float, boundary: int = 0) -> gp.Boundary:
    demand = gp.Demand(short, long, 1)
    return gp.Boundary(7, boundary, 4096, 16, 256, True, demand, 0.5)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_by_name(name: str) -> None:
    policy = gp.Policy(name)
    assert policy.info(256).name == name
    policy.validate(256)
    for parameter, value in dict(policy).items():
        policy[parameter] = value
        assert policy[parameter] == value and type(policy[parameter]) is type(value)
    with pytest.raises(KeyError):
        policy["no such thing"]
    with pytest.raises(gp.InvalidArgument):
        policy["no such thing"] = 1


def test_set_at_creation() -> None:
    policy = gp.Policy("growpage", threshold=1, initial_pages=3)
    policy["retention.recent"] = 32
    assert (policy["threshold"], policy["initial_pages"]) == (1.0, 3)
    assert policy.retention.recent == 32
    policy.retention = replace(policy.retention, sinks=4, strategy=gp.Strategy.IN_ORDER)
    assert policy["retention.sinks"] == 4
    with pytest.raises(gp.InvalidArgument):
        policy["initial_pages"] = 1.5
    with pytest.raises(gp.InvalidArgument):
        gp.Policy("growpag")
    policy["retention.recent"] = -1
    with pytest.raises(gp.InvalidArgument) as caught:
        policy.validate(256)
    assert "recent" in caught.value.argument
    with pytest.raises(gp.Unsupported):
        gp.Policy("full").retention = gp.RetentionOptions()


def test_decide() -> None:
    assert gp.Policy("growpage").decide(boundary(0.5, 0.4)) == gp.Decision.GROW
    assert gp.Policy("growpage").decide(boundary(0.4, 0.4)) == gp.Decision.COMPACT
    assert gp.Policy("inverse").decide(boundary(0.5, 0.4)) == gp.Decision.COMPACT
    assert gp.Policy("shrink").decide(boundary(0.3, 0.4)) == gp.Decision.SHRINK
    assert gp.Policy("full").decide(boundary(0.3, 0.4)) == gp.Decision.GROW


def test_user() -> None:
    seen: list[gp.Boundary] = []

    def decide(at: gp.Boundary) -> gp.Decision:
        seen.append(at)
        return gp.Decision.COMPACT if at.demand.delta > 0.05 else gp.Decision.GROW

    policy = gp.Policy.user(decide, initial_pages=2)
    assert policy["initial_pages"] == 2 and policy.info(16).needs_demand
    assert not gp.Policy.user(decide, needs_demand=False).info(16).needs_demand
    given = boundary(0.5, 0.4)
    assert policy.decide(given) == gp.Decision.COMPACT
    assert policy.decide(boundary(0.4, 0.4)) == gp.Decision.GROW
    assert seen[0] == given


def test_what_a_user_raises_comes_out_of_the_call() -> None:
    def decide(_: gp.Boundary) -> gp.Decision:
        raise ZeroDivisionError("mine")

    policy = gp.Policy.user(decide)
    with pytest.raises(ZeroDivisionError, match="mine"):
        policy.decide(boundary(0.5, 0.4))
    policy.validate(256)
