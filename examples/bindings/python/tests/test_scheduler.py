# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import growpage as gp
import numpy as np
import pytest

Make = Callable[..., gp.Cache]


def drive(scheduler: gp.Scheduler, cache: gp.Cache) -> None:
    """One step without a model."""
    plan = scheduler.plan if scheduler.plan is not None else scheduler.schedule()
    fences = scheduler.run_before_forward()
    rows = [(p["summary"], 1) for p in plan.prefills if p["summary"] >= 0]
    rows += plan.decodes[["summary", "summary_first"]].tolist()
    cache.update_summaries(rows, np.ones((2, len(rows), 4, 8), np.float32))
    ids = np.concatenate([plan.prefills["request"][plan.prefills["last"] == 1], plan.decodes["request"]])
    tokens = gp.sampled_tokens(ids, np.full(len(ids), 5))
    scheduler.complete(tokens, demand=scheduler.run_after_forward(), fences=fences)
    scheduler.plan = None


def small(cache: gp.Cache, policy: gp.Policy, **changes: Any) -> gp.Scheduler:
    limits = {"max_running": 4, "summary_slots": 4, "decision_capacity": 100} | changes
    return gp.Scheduler(cache, policy, **limits)


def test_plan_views(make_cache: Make) -> None:
    cache = make_cache()
    scheduler = small(cache, gp.Policy("growpage", initial_pages=2))
    first = scheduler.submit(np.arange(20), 40, tag=11)
    second = scheduler.submit([3], 1, tag=12, priority=-1, key=gp.Key(lora=b"adapter"))
    assert scheduler.state(first) == gp.RequestState.WAITING
    plan = scheduler.schedule()
    assert plan.step == 0 or plan.step == 1
    assert plan.batched_tokens == 21
    assert plan.prefills.dtype.names == gp.PREFILL.names
    assert plan.prefills["tag"].tolist() == [12, 11]
    assert plan.prefills["tokens"].tolist() == [1, 20]
    assert plan.prefills["request"].tolist() == [second, first]
    assert not plan.prefills.flags.writeable and not plan.prefills.flags.owndata
    assert len(plan.decodes) == len(plan.preempted) == len(plan.swap_outs) == len(plan.demand) == 0
    np.testing.assert_array_equal(scheduler.text(first), np.arange(20))
    with pytest.raises(gp.ProtocolError):
        scheduler.schedule()
    drive(scheduler, cache)
    assert scheduler.finished()["tag"].tolist() == [12]
    assert scheduler.finished()["generated"].tolist() == [1]
    with pytest.raises(gp.StaleId):
        scheduler.state(second)
    assert scheduler.state(first) == gp.RequestState.DECODING
    assert scheduler.text(first)[-1] == 5
    drive(scheduler, cache)
    scheduler.abort(first)
    assert scheduler.stats().aborted == 1 and scheduler.stats().idle
    scheduler.check_invariants()


def test_results_are_checked(make_cache: Make) -> None:
    cache = make_cache()
    scheduler = small(cache, gp.Policy("full"))
    request = scheduler.submit([1, 2], 4)
    scheduler.schedule()
    with pytest.raises(gp.InvalidArgument):
        scheduler.complete()
    with pytest.raises(gp.StaleId):
        scheduler.complete([(request, 1, 0)], fences=[77])
    scheduler.complete([(request, 1, 1)])  # stop
    assert scheduler.finished()["request"].tolist() == [request]
    other = scheduler.submit([1, 2], 4)
    scheduler.schedule()
    scheduler.complete(failed=[other])
    assert scheduler.finished()["aborted"].tolist() == [1]
    with pytest.raises(gp.InvalidArgument):
        gp.sampled_tokens([1, 2], [1])


def test_decisions(make_cache: Make) -> None:
    cache = make_cache()
    scheduler = small(cache, gp.Policy("growpage", initial_pages=3))
    scheduler.submit(np.arange(20), 60, tag=4)
    while not scheduler.stats().idle:
        drive(scheduler, cache)
    decisions, dropped = scheduler.drain_decisions()
    stats = scheduler.stats()
    assert dropped == 0 and len(decisions) == stats.compact == 2 and stats.decode_tokens == 60
    assert (decisions["kind"] == gp.DecisionKind.COMPACT).all() and decisions["tag"][0] == 4
    lines = gp.decisions_to_jsonl(decisions).splitlines()
    assert [json.loads(line)["tag"] for line in lines] == [4, 4]
    whole = gp.decision_log_hash(decisions)
    assert len(str(whole)) == 32 and whole != gp.decision_log_hash(decisions[:1])
    assert whole == gp.decision_log_hash(decisions.tolist())
    assert gp.decisions_to_jsonl(decisions[:0]) == ""


def test_user_policy_and_its_exceptions(make_cache: Make) -> None:
    fail = [True]

    def decide(boundary: gp.Boundary) -> gp.Decision:
        if fail[0]:
            raise RuntimeWarning("once")
        return gp.Decision.COMPACT

    cache = make_cache()
    policy = gp.Policy.user(decide, initial_pages=3)
    scheduler = small(cache, policy)
    policy.close()
    del policy
    scheduler.submit(np.arange(20), 60)
    raised = 0
    while not scheduler.stats().idle:
        try:
            drive(scheduler, cache)
        except RuntimeWarning:
            raised, fail[0] = raised + 1, False
    assert raised == 1  # the step went on with GROW
    assert scheduler.drain_decisions()[0]["kind"].tolist() == [
        gp.DecisionKind.GROW,
        gp.DecisionKind.COMPACT,
    ]


def test_the_cache_lives_as_long_as_its_scheduler(make_cache: Make) -> None:
    scheduler = small(make_cache(), gp.Policy("full"))
    scheduler.submit([1], 1)
    assert len(scheduler.schedule().prefills) == 1
    prefills = scheduler.plan.prefills if scheduler.plan else None
    scheduler.close()
    del scheduler
    assert prefills is not None and prefills["tokens"].tolist() == [1]
