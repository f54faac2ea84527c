# SPDX-License-Identifier: Apache-2.0
"""The scenario of ../scenario.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import growpage
from growpage import Backend, Cache, DType, Isa, Policy, Scheduler, SummaryOptions

LAYERS, QUERY_HEADS, KV_HEADS, DIM, SLOTS = 2, 4, 2, 32, 8


def project(token: Any, position: Any, role: int, heads: int) -> npt.NDArray[np.float32]:
    """Stands for the model: [batch, heads, DIM] of tokens [batch] at positions [batch]."""
    factors = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
    words = np.stack(np.broadcast_arrays(token, position, role), -1).astype(np.uint64)
    z: npt.NDArray[np.uint64]
    z = (words * factors).sum(-1, np.uint64)[..., None] + np.arange(heads * DIM, dtype=np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    x = ((z >> np.uint64(40)).astype(np.float32) - 2**23) / np.float32(2**23)
    return x.reshape(-1, heads, DIM)


def next_token(token: Any, position: Any) -> Any:
    """Stands for sampling."""
    return (token * 31 + position * 17 + 7) % 1000


def forward(cache: Cache, tokens: Any, positions: Any, slots: Any) -> npt.NDArray[np.float32]:
    """K and V of the tokens to their slots; the queries [layer, token, query_head, DIM]."""
    for layer in range(LAYERS):
        k = project(tokens, positions, 3 * layer + 1, KV_HEADS)
        v = project(tokens, positions, 3 * layer + 2, KV_HEADS)
        cache.append_kv(layer, slots, k, v)
    queries = [project(tokens, positions, 3 * layer, QUERY_HEADS) for layer in range(LAYERS)]
    return np.array(queries)


def step(cache: Cache, scheduler: Scheduler) -> None:
    """One step of the engine."""
    plan = scheduler.schedule()
    fences = scheduler.run_before_forward()
    sampled = []
    for chunk in plan.prefills:
        positions = np.arange(chunk["tokens"]) + chunk["first_position"]
        tokens = scheduler.text(chunk["request"])[positions]
        slots = [
            cache.physical_slot(chunk["sequence"], int(chunk["first_slot"]) + i)
            for i in range(chunk["tokens"])
        ]
        queries = forward(cache, tokens, positions, slots)
        if chunk["summary"] >= 0:
            cache.update_summaries([(chunk["summary"], 1)], queries[:, -1:])
        if chunk["last"]:
            sampled.append((chunk["request"], next_token(int(tokens[-1]), positions[-1]), 0))
    decodes = plan.decodes
    if len(decodes):
        queries = forward(cache, decodes["token"], decodes["position"], decodes["slot"])
        cache.update_summaries(decodes[["summary", "summary_first"]].tolist(), queries)
        words = next_token(decodes["token"], decodes["position"])
        sampled += zip(decodes["request"], words, np.zeros_like(words))
    scheduler.complete(sampled, demand=scheduler.run_after_forward(), fences=fences)


def run(**changes: Any) -> tuple[str, str]:
    """The two lines of scenario.expected; `changes` are of the cache's options."""
    with Policy("growpage", initial_pages=4) as policy:
        options: dict[str, Any] = {
            "backend": Backend.CPU,
            "isa": Isa.SCALAR,
            "layers": LAYERS,
            "query_heads": QUERY_HEADS,
            "kv_heads": KV_HEADS,
            "head_dim": DIM,
            "page_size": 16,
            "pages": 24,
            "dtype": DType.F32,
            "summary": SummaryOptions(slots=SLOTS),
            "retention": policy.retention,
        }
        with Cache(**(options | changes)) as cache, Scheduler(
            cache, policy, max_running=SLOTS, summary_slots=SLOTS, decision_capacity=4096
        ) as scheduler:
            for tag in range(6):
                scheduler.submit([tag + 1] * (20 + 7 * tag), 150, tag=tag)
            while not scheduler.stats().idle:
                step(cache, scheduler)
            stats = scheduler.stats()
            decisions, _ = scheduler.drain_decisions()
    return (
        f"{stats.decode_tokens} tokens, {stats.steps} steps, {stats.grow} grow, "
        f"{stats.compact} compact",
        f"decision log: {len(decisions)} entries, hash {growpage.decision_log_hash(decisions)}",
    )


if __name__ == "__main__":
    print("\n".join(run()))
