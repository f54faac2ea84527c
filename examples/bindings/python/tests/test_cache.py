# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gc
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import growpage as gp
import numpy as np
import pytest

Make = Callable[..., gp.Cache]


def test_sequences(make_cache: Make) -> None:
    cache = make_cache()
    tokens = np.arange(40, dtype=np.int32)
    sequence, matched = cache.admit(tokens)
    assert matched == 0
    cache.reserve(sequence, 40)
    assert cache.append(sequence, tokens) is None
    info = cache.sequence(sequence)
    assert (info.length, info.slots, info.computed, len(info.pages)) == (40, 40, 0, 3)
    assert cache.physical_slot(sequence, 17) == info.pages[1] * 16 + 1
    assert cache.match_length(tokens) == 0
    cache.mark_computed(sequence, 40)
    assert cache.match_length(tokens) == 32
    assert cache.match_length(tokens, gp.Key(salt=b"tenant")) == 0
    assert cache.match_length(tokens, gp.Key(modality=b"image", modality_from=16)) == 16
    other, matched = cache.admit(tokens)
    assert matched == 32
    np.testing.assert_array_equal(cache.sequence(other).pages, info.pages[:2])
    fork = cache.fork(sequence)
    copy = cache.append(fork, [7])
    assert copy is not None and copy[0] == info.pages[2]
    cache.run_copies([copy])
    done, copies, refusal = cache.append_batch([fork, other], [8, 8])
    assert done == 1 and copies.size == 0 and isinstance(refusal, gp.AtCapacity)
    assert cache.append_batch([fork])[2] is None
    cache.truncate(fork, 20)
    assert cache.sequence(fork).length == 20
    cache.check_invariants()
    for each in (sequence, other, fork):
        cache.release(each)
    counts = cache.info()
    assert counts.cached_pages == 2 and counts.free_pages == 10 and counts.sequences == 0
    assert counts.backend_name == "cpu-scalar" and counts.copied_pages == 1
    cache.clear_prefix_cache()
    assert cache.info().free_pages == 12


def test_tables(make_cache: Make) -> None:
    cache = make_cache()
    ids = []
    for length in (40, 16):
        sequence, _ = cache.admit()
        cache.reserve(sequence, 40)
        cache.append(sequence, count=length)
        ids.append(sequence)
    pages = [cache.sequence(sequence).pages for sequence in ids]
    table, lengths = cache.padded_tables(ids, pad=-1)
    np.testing.assert_array_equal(lengths, [40, 16])
    np.testing.assert_array_equal(table, pages)
    wide = np.zeros((2, 6), np.int32)
    assert cache.padded_tables(ids, pad=-1, out=wide)[0] is wide
    np.testing.assert_array_equal(wide[:, 3:], -1)
    with pytest.raises(ValueError):
        cache.padded_tables(ids, out=np.zeros((2, 6), np.int64))
    indptr, indices, last = cache.compressed_tables(ids)
    np.testing.assert_array_equal(indptr, [0, 3, 4])
    np.testing.assert_array_equal(indices, [*pages[0], pages[1][0]])
    np.testing.assert_array_equal(last, [8, 16])
    slots, positions = cache.token_tables(ids, [2, 1])
    np.testing.assert_array_equal(positions, [38, 39, 15])
    pages_, offsets = np.divmod(slots, 16)
    assert pages_.tolist() == [pages[0][2], pages[0][2], pages[1][0]]
    assert offsets.tolist() == [6, 7, 15]
    assert cache.padded_tables([])[0].shape == (0, 0)


def test_memory_is_shared_not_copied(make_cache: Make) -> None:
    k = np.zeros((2, 12, 16, 2, 8), np.float16)  # NHD
    v = np.zeros_like(k)
    cache = make_cache(k=k, v=v, kv_axes="lpthd")
    assert cache.dtype == gp.DType.F16
    rows = np.arange(32, dtype=np.float16).reshape(2, 2, 8)
    cache.append_kv(1, [5, 16 * 3 + 2], rows, -rows)
    np.testing.assert_array_equal(k[1, 0, 5], rows[0])
    np.testing.assert_array_equal(v[1, 3, 2], -rows[1])
    view = cache.k
    assert view.shape == (2, 12, 2, 16, 8)
    view[0, 0, 1, 0, 0] = 9
    assert k[0, 0, 0, 1, 0] == 9
    with pytest.raises(gp.InvalidArgument):
        cache.append_kv(0, [1], rows, rows)
    with pytest.raises(gp.InvalidArgument):
        cache.append_kv(0, [1, 2], rows.astype(np.float32), rows)
    with pytest.raises(gp.InvalidArgument):
        cache.append_kv(0, [1, 2], rows[:, ::-1], rows)


def test_one_array_a_layer_and_bf16(make_cache: Make) -> None:
    k = [np.zeros((12, 2, 16, 8), np.uint16) for _ in range(2)]
    v = [np.zeros((12, 2, 16, 8), np.uint16) for _ in range(2)]
    cache = make_cache(k=k, v=v, kv_axes="phtd")
    assert cache.dtype == gp.DType.BF16
    ones = np.full((1, 2, 8), 0x3F80, np.uint16)
    cache.append_kv(1, [16 * 2 + 4], ones, ones)
    assert (k[1][2, :, 4] == 0x3F80).all() and not k[0].any()
    with pytest.raises(gp.InvalidArgument):
        make_cache(k=[k[0], k[1][:, :, :8]], v=v, kv_axes="phtd")


def test_read_only_memory_is_refused(make_cache: Make) -> None:
    k = np.zeros((2, 12, 2, 16, 8), np.float32)
    k.flags.writeable = False
    with pytest.raises((gp.InvalidArgument, BufferError)):
        make_cache(k=k, v=k)


def test_views_outlive_close(make_cache: Make) -> None:
    with make_cache() as cache:
        k = cache.k
        sequence, _ = cache.admit()
        cache.grow(sequence)
        pages = cache.sequence(sequence).pages
    del cache
    gc.collect()
    k[:] = 3
    assert k.sum() == 3 * k.size and pages[0] >= 0


def test_attention(make_cache: Make) -> None:
    rng = np.random.default_rng(3)
    cache = make_cache()
    sequence, _ = cache.admit()
    cache.reserve(sequence, 20)
    cache.append(sequence, count=20)
    k, v = rng.standard_normal((2, 20, 2, 8), np.float32)
    slots, _ = cache.token_tables([sequence], [20])
    cache.append_kv(0, slots, k, v)
    table, lengths = cache.padded_tables([sequence])
    q = rng.standard_normal((1, 4, 8), np.float32)
    out = cache.attention(0, table, lengths, q)
    for head in range(4):
        logits = k[:, head // 2] @ q[0, head] / np.sqrt(8)
        weights = np.exp(logits - logits.max())
        expected = weights @ v[:, head // 2] / weights.sum()
        np.testing.assert_allclose(out[0, head], expected, rtol=1e-5, atol=1e-6)


def filled(cache: gp.Cache, tokens: int) -> int:
    rng = np.random.default_rng(5)
    sequence, _ = cache.admit()
    cache.reserve(sequence, tokens)
    cache.append(sequence, count=tokens)
    slots, _ = cache.token_tables([sequence], [tokens])
    for layer in range(2):
        rows = rng.standard_normal((2, tokens, 2, 8), np.float32)
        cache.append_kv(layer, slots, rows[0], rows[1])
    cache.mark_computed(sequence, tokens)
    cache.update_summaries([(1, 1)], rng.standard_normal((2, 1, 4, 8), np.float32))
    return sequence


def test_demand_and_compaction(make_cache: Make) -> None:
    cache = make_cache()
    sequence = filled(cache, 64)
    demand = cache.measure_demand(sequence, 1, 63)
    assert demand.count == 4 and demand.delta == 0  # one query: both summaries are the same
    ticket, copies = cache.begin_compaction(sequence)
    assert ticket.sequence == sequence and len(copies) == 0
    with pytest.raises(gp.Busy):
        cache.padded_tables([sequence])
    cache.compact(ticket, 1, 63)
    cache.complete_fence(ticket.fence)
    info = cache.sequence(sequence)
    assert (info.length, info.slots, len(info.pages), info.compactions) == (64, 48, 4, 1)
    with pytest.raises(gp.BehindCompaction):
        cache.truncate(sequence, 10)


def test_compaction_of_the_engines_own(make_cache: Make) -> None:
    cache = gp.Cache(pages=8, page_size=16)
    sequence, _ = cache.admit()
    cache.reserve(sequence, 64)
    cache.append(sequence, count=64)
    cache.mark_computed(sequence, 64)
    before = cache.sequence(sequence).pages.tolist()
    ticket, _ = cache.begin_compaction(sequence)
    cache.cancel_compaction(ticket)
    ticket, _ = cache.begin_compaction(sequence)
    marks = cache.page_marks(sequence)
    assert (marks == gp.PageMark.PRIVATE).all()
    plan = gp.plan_compaction(marks, np.array([16, 3, 13, 16], np.int32))
    assert plan.victims == (1,)
    cache.apply_compaction(ticket, plan, [16, 3, 13, 16], rows_per_page=16)
    cache.complete_fence(ticket.fence)
    assert cache.sequence(sequence).pages.tolist() == [before[i] for i in (0, 2, 3, 1)]


def test_swap_and_guard(make_cache: Make) -> None:
    cache = make_cache(host_pages=8)
    sequence = filled(cache, 64)
    pages = cache.sequence(sequence).pages.tolist()
    rows = cache.k[:, pages].copy()
    transfers, fence = cache.swap_out(sequence)
    assert transfers["device"].tolist() == pages
    cache.run_swap_out(sequence, 1, transfers)
    cache.complete_fence(fence)
    assert cache.sequence(sequence).swapped and cache.info().free_host_pages == 4
    cache.k[:] = 0
    transfers, fence = cache.swap_in(sequence)
    cache.run_swap_in(sequence, 2, transfers)
    cache.complete_fence(fence)
    np.testing.assert_array_equal(cache.k[:, cache.sequence(sequence).pages], rows)
    fence = cache.guard(sequence)
    cache.release(sequence)
    assert cache.info().in_flight_pages == 4
    cache.complete_fence(fence)
    assert cache.info().in_flight_pages == 0


def test_events(make_cache: Make) -> None:
    cache = make_cache(event_capacity=2)
    sequence, _ = cache.admit()
    cache.reserve(sequence, 64)
    cache.append(sequence, list(range(64)))
    cache.mark_computed(sequence, 64)
    events, dropped = cache.drain_events(capacity=1)
    assert len(events) == 1 and events[0]["kind"] == gp.EventKind.STORED and dropped == 2
    assert events[0]["tokens"] == 16
    assert len(cache.drain_events()[0]) == 1


def test_tokens_that_do_not_fit_are_refused(make_cache: Make) -> None:
    with pytest.raises(gp.InvalidArgument):
        make_cache().admit([2**31])
    with pytest.raises(gp.InvalidArgument):
        make_cache().admit([0.5])


def test_executor(make_cache: Make) -> None:
    executor = gp.Executor(3)
    caches = [make_cache(), make_cache(executor=executor)]
    demands = [cache.measure_demand(filled(cache, 64), 1, 63) for cache in caches]
    assert demands[0] == demands[1]
    executor.close()
    with pytest.raises(RuntimeError):  # but the work is done
        caches[1].update_summaries([(0, 1), (2, 1)], np.ones((2, 2, 4, 8), np.float32))


def test_shared_calls_from_threads(make_cache: Make) -> None:
    cache = make_cache()
    sequence = filled(cache, 64)
    with ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(lambda _: cache.padded_tables([sequence])[0], range(200)))
    assert all((table == tables[0]).all() for table in tables)


class Producer:
    """An array of another library: nothing but DLPack, as it was before version 1."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self) -> Any:
        return self.array.__dlpack__()


def test_arrays_of_other_libraries(make_cache: Make) -> None:
    k, v = np.zeros((2, 2, 12, 2, 16, 8), np.float32)
    cache = make_cache(k=Producer(k), v=Producer(v))
    gc.collect()
    rows = array("f", range(16))  # only the buffer protocol
    with pytest.raises(gp.InvalidArgument):
        cache.append_kv(0, [3], rows, rows)
    shaped = memoryview(rows).cast("B").cast("f", [1, 2, 8])
    cache.append_kv(0, [3], shaped, Producer(np.ones((1, 2, 8), np.float32)))
    np.testing.assert_array_equal(k[0, 0, :, 3].ravel(), range(16))
    assert v.sum() == 16
    with pytest.raises(gp.GrowpageError):
        make_cache(k=Producer(k.astype(np.float64)))
    del cache
    gc.collect()
    k[:] = 1  # still ours
