# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import growpage as gp
import numpy as np
import pytest

LAYERS, HEADS, KV_HEADS, DIM, PAGE, PAGES = 2, 4, 2, 8, 16, 6
TABLE = np.array([4, 0, 3, 1], np.int32)


def make(**changes: Any) -> tuple[gp.Kernels, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(11)
    k = rng.standard_normal((LAYERS, PAGES, KV_HEADS, PAGE, DIM), np.float32)
    v = rng.standard_normal(k.shape, np.float32)
    options: dict[str, Any] = {
        "layers": LAYERS,
        "query_heads": HEADS,
        "kv_heads": KV_HEADS,
        "head_dim": DIM,
        "page_size": PAGE,
        "max_slots": 64,
        "isa": gp.Isa.SCALAR,
    }
    return gp.Kernels(k=k, v=v, **(options | changes)), k, v


def query(kernels: gp.Kernels) -> tuple[gp.Query, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(12)
    summaries = kernels.summaries(gp.SummaryOptions(slots=3))
    q = rng.standard_normal((2, LAYERS, 1, HEADS, DIM), np.float32)
    kernels.update_summaries(summaries, [(2, 1)], q[0])
    kernels.update_summaries(summaries, [(2, 0)], q[1])
    np.testing.assert_allclose(summaries.summaries[:, 2, 0], 0.9 * q[0, :, 0] + 0.1 * q[1, :, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(summaries.summaries[:, 2, 1], 0.984 * q[0, :, 0] + 0.016 * q[1, :, 0], rtol=1e-5, atol=1e-6)
    assert summaries.steps[:, 2].tolist() == [2, 2]
    return gp.Query(summaries, 2, 63), q[1]


def working_set(weights: np.ndarray[Any, Any], p: float) -> int:
    ordered = np.sort(weights)[::-1]
    return int(np.searchsorted(np.cumsum(ordered), p) + 1)


def test_demand_by_its_formula() -> None:
    kernels, k, _ = make()
    at, latest = query(kernels)
    demand = kernels.measure_demand(at, TABLE, 64)
    keys = k[:, TABLE[:3]].transpose(0, 2, 1, 3, 4).reshape(LAYERS, KV_HEADS, 48, DIM)
    sums = [0.0, 0.0]
    for layer in range(LAYERS):
        for head in range(KV_HEADS):
            for which in range(2):
                mean = np.zeros(48)
                for h in (2 * head, 2 * head + 1):
                    q = at.summaries.summaries[layer, 2, which, h].astype(float)
                    rms = np.sqrt(np.mean(latest[layer, 0, h].astype(float) ** 2))
                    q = q * rms / (np.sqrt(np.mean(q**2)) + 1e-6)
                    logits = keys[layer, head] @ q / np.sqrt(DIM)
                    weights = np.exp(logits - logits.max())
                    mean += weights / weights.sum() / 2
                sums[which] += working_set(mean, 0.99) / 48
    assert demand.count == LAYERS * KV_HEADS
    assert demand.short_sum == pytest.approx(sums[0]) and demand.long_sum == pytest.approx(sums[1])
    assert demand.delta == pytest.approx((sums[0] - sums[1]) / demand.count)


def test_score_select_plan_compact() -> None:
    kernels, k, v = make()
    at, _ = query(kernels)
    scores, demand = kernels.score(at, TABLE, 64)
    assert scores.shape == (LAYERS, KV_HEADS, 64) and (scores > 0).all()
    assert demand == kernels.measure_demand(at, TABLE, 64)
    marks = np.full(4, gp.PageMark.PRIVATE, np.uint8)
    selection = kernels.select(scores, marks, TABLE, 64, keep=48)
    kept = np.unpackbits(selection.bits.view(np.uint8), axis=-1, bitorder="little").astype(bool)
    assert (kept.sum(-1) == 48).all() and kept[..., -16:].all()
    assert selection.page_kept.sum() == 48 * LAYERS * KV_HEADS
    plan = gp.plan_compaction(marks, selection.page_kept)
    assert len(plan.victims) == 1 and plan.victims[0] < 3
    before = [(a[:, TABLE].transpose(0, 2, 1, 3, 4).reshape(LAYERS, KV_HEADS, 64, DIM)).copy() for a in (k, v)]
    kernels.compact(plan, selection, marks, TABLE, scores=scores)
    order = [page for i, page in enumerate(TABLE) if i != plan.victims[0]]
    for array, old in zip((k, v), before):
        new = array[:, order].transpose(0, 2, 1, 3, 4).reshape(LAYERS, KV_HEADS, 48, DIM)
        for layer in range(LAYERS):
            for head in range(KV_HEADS):
                expected = old[layer, head][kept[layer, head]]
                assert {row.tobytes() for row in new[layer, head]} == {
                    row.tobytes() for row in expected
                }


def test_in_order_executor_and_options() -> None:
    results = []
    for executor in (None, gp.Executor(2)):
        kernels, k, _ = make(
            executor=executor,
            demand=gp.DemandOptions(p=0.5, layer_mask=np.array([1, 0], np.uint8)),
            retention=gp.RetentionOptions(sinks=4, recent=8),
            rope=gp.Rope(rotary_dim=4, inv_freq=np.array([1.0, 0.1], np.float32)),
        )
        at, _ = query(kernels)
        scores, demand = kernels.score(at, TABLE, 64)
        assert demand.count == KV_HEADS
        marks = np.full(4, gp.PageMark.PRIVATE, np.uint8)
        selection = kernels.select(scores, marks, TABLE, 64, keep=48)
        assert ((selection.bits[..., 0] & np.uint64(15)) == 15).all()
        plan = gp.plan_compaction(marks, selection.page_kept, strategy=gp.Strategy.IN_ORDER)
        kernels.compact(plan, selection, marks, TABLE)
        results.append((demand, scores.tobytes(), k.tobytes()))
    assert results[0] == results[1]


def test_what_the_library_cannot_check_is_checked() -> None:
    kernels, *_ = make()
    at, _ = query(kernels)
    with pytest.raises(gp.InvalidArgument):
        kernels.measure_demand(at, [4, 0, 6, 1], 64)  # page 6 of 6
    with pytest.raises(gp.InvalidArgument):
        kernels.measure_demand(at, TABLE, 65)
    with pytest.raises(gp.InvalidArgument):
        kernels.score(at, TABLE, 64, scores=np.zeros((LAYERS, KV_HEADS, 63), np.float32))
    with pytest.raises(gp.InvalidArgument):
        make(rope=gp.Rope(rotary_dim=4, inv_freq=np.ones(3, np.float32)))
    with pytest.raises(gp.InvalidArgument):
        make(demand=gp.DemandOptions(layer_mask=np.ones(3, np.uint8)))
    marks = np.full(3, 1, np.uint8)
    with pytest.raises(gp.InvalidArgument):
        kernels.select(np.zeros((LAYERS, KV_HEADS, 64), np.float32), marks, TABLE, 64, keep=48)
    with pytest.raises(gp.AtCapacity):
        gp.plan_compaction(np.zeros(4, np.uint8), np.zeros(4, np.int32))
