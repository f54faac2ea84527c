# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

import growpage as gp
import pytest
from growpage._library import _FAMILIES, lib


def test_every_status_has_a_class_of_its_family() -> None:
    names = [name for name in dir(lib) if name.startswith("GROWPAGE_")]
    assert len(set(_FAMILIES.values())) == len(_FAMILIES) == 16 and names
    for status, family in _FAMILIES.items():
        assert issubclass(family, gp.RetryableError) == (status > 0)
        assert issubclass(family, gp.GrowpageError)


def test_an_invalid_argument_says_what_is_allowed() -> None:
    with pytest.raises(gp.InvalidArgument) as caught:
        gp.Cache(pages=4, page_size=17)
    assert "page_size" in caught.value.argument
    assert caught.value.value == "17"
    assert "16" in caught.value.allowed
    assert caught.value.argument in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_retryable(make_cache: Callable[..., gp.Cache]) -> None:
    cache = make_cache()
    sequence, _ = cache.admit()
    cache.reserve(sequence, 12 * 16)
    other, _ = cache.admit()
    with pytest.raises(gp.OutOfPages) as caught:
        cache.grow(other)
    assert isinstance(caught.value, gp.RetryableError)
    cache.release(sequence)
    cache.grow(other)
    with pytest.raises(gp.AtCapacity):
        cache.append(other, count=17)


def test_stale_and_closed(make_cache: Callable[..., gp.Cache]) -> None:
    with make_cache() as cache:
        sequence, _ = cache.admit()
        cache.release(sequence)
        with pytest.raises(gp.StaleId):
            cache.grow(sequence)
        with pytest.raises(LookupError):
            cache.grow(12345)
    with pytest.raises(gp.InvalidArgument):
        cache.info()
    cache.close()


def test_unsupported_and_protocol(make_cache: Callable[..., gp.Cache]) -> None:
    cache = gp.Cache(pages=4, page_size=16)
    with pytest.raises(gp.Unsupported):
        cache.run_copies([(0, 1)])
    with gp.Scheduler(cache, gp.Policy("full")) as scheduler:
        with pytest.raises(gp.ProtocolError):
            scheduler.complete()
        with pytest.raises(gp.RequestTooLarge):
            scheduler.submit([1] * 16 * 5, 1)


def test_log() -> None:
    lines: list[tuple[gp.LogLevel, str]] = []
    cache = gp.Cache(pages=4, page_size=16, log=lambda level, text: lines.append((level, text)))
    with pytest.raises(gp.StaleId):
        cache.grow(99)
    assert lines and lines[0][0] == gp.LogLevel.WARNING


def test_what_a_log_function_raises_comes_out() -> None:
    def log(level: gp.LogLevel, message: str) -> None:
        raise KeyError(message)

    cache = gp.Cache(pages=4, page_size=16, log=log)
    with pytest.raises(KeyError):
        cache.grow(99)
    cache.admit()  # and only once
