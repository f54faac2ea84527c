# SPDX-License-Identifier: Apache-2.0
"""Prefix hashes and the prefix index, for routers and engines with a page pool of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from growpage._ffi import ffi
from growpage._library import check, initialised, lib
from growpage.decisions import Hash
from growpage.errors import InvalidArgument
from growpage.handle import Handle, Log, log_hooks
from growpage.options import Key, LogLevel
from growpage.records import integers, pointer


class KeyStruct:
    """A Key as growpage_key, null for None; keep it as long as `c` is used."""

    def __init__(self, key: Key | None) -> None:
        self.c: Any = ffi.NULL
        if key is None:
            return
        self.c = initialised("key")
        self._keep = []
        for name in ("salt", "lora", "modality"):
            data = getattr(key, name)
            self._keep.append(ffi.from_buffer("char[]", data))
            setattr(self.c, name, self._keep[-1])
            setattr(self.c, f"{name}_size", len(data))
        self.c.modality_from = key.modality_from


def token_array(tokens: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """Tokens as int32, itself when they are."""
    return integers("tokens", tokens, np.int32)


class PrefixLink(NamedTuple):
    """A point in a hash chain: digest of everything up to a page, and that prefix's identity in one
    index."""

    hash: Hash
    id: int

    def to_c(self) -> Any:
        """As growpage_prefix_link."""
        return ffi.new("growpage_prefix_link*", (tuple(self.hash), self.id))

    @classmethod
    def from_c(cls, link: Any) -> PrefixLink:
        """From growpage_prefix_link."""
        return cls(Hash.from_c(link.hash), link.id)


def prefix_root(key: Key | None = None) -> PrefixLink:
    """Where the chains of `key` begin (salt and LoRA)."""
    link = ffi.new("growpage_prefix_link*")
    struct = KeyStruct(key)
    check(lib.growpage_prefix_root(struct.c, link))
    return PrefixLink.from_c(link)


def join_modality(parent: PrefixLink, key: Key) -> PrefixLink:
    """The link from which the first page touched by the key's modality hangs."""
    link = ffi.new("growpage_prefix_link*")
    struct = KeyStruct(key)
    check(lib.growpage_prefix_join_modality(parent.to_c(), struct.c, link))
    return PrefixLink.from_c(link)


def hash_page(parent: Hash, tokens: npt.ArrayLike) -> Hash:
    """The chained hash of a full page."""
    array = token_array(tokens)
    value = ffi.new("growpage_hash*")
    above = ffi.new("growpage_hash*", tuple(parent))
    check(lib.growpage_hash_page(above, pointer(array, "const int32_t*"), len(array), value))
    return Hash.from_c(value)


class PrefixIndex(Handle):
    """Which pages hold which prefix, and the order in which unreferenced ones are given up."""

    def __init__(
        self,
        pages: int,
        page_size: int,
        *,
        log: Log | None = None,
        log_level: LogLevel = LogLevel.WARNING,
    ) -> None:
        self.page_size = page_size
        hooks, keep = log_hooks(log, log_level)
        self._create("prefix_index_create", pages, page_size, hooks, keep=keep)

    def _page(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int32]:
        array = token_array(tokens)
        if array.shape != (self.page_size,):
            raise InvalidArgument(f"tokens {array.shape}, not ({self.page_size},)", "tokens")
        return array

    def lookup(
        self, parent: PrefixLink, tokens: npt.ArrayLike
    ) -> tuple[int, PrefixLink] | None:
        """A published page with `tokens` [page_size] below `parent`, and its link."""
        array = self._page(tokens)
        page, link = ffi.new("int32_t*"), ffi.new("growpage_prefix_link*")
        words = pointer(array, "const int32_t*")
        check(lib.growpage_prefix_index_lookup(self._c, parent.to_c(), words, page, link))
        return (page[0], PrefixLink.from_c(link)) if page[0] >= 0 else None

    def publish(
        self, page: int, parent: PrefixLink, tokens: npt.ArrayLike
    ) -> tuple[PrefixLink, bool]:
        """`page` holds `tokens` [page_size] below `parent` now; True when no other page had this
        hash (a "stored" event is due)."""
        array = self._page(tokens)
        link, first = ffi.new("growpage_prefix_link*"), ffi.new("int32_t*")
        words = pointer(array, "const int32_t*")
        check(lib.growpage_prefix_index_publish(self._c, page, parent.to_c(), words, link, first))
        return PrefixLink.from_c(link), bool(first[0])

    def withdraw(self, page: int) -> tuple[Hash, bool]:
        """Forgets a published page; True when no other has its hash ("removed" is due)."""
        value, last = ffi.new("growpage_hash*"), ffi.new("int32_t*")
        check(lib.growpage_prefix_index_withdraw(self._c, page, value, last))
        return Hash.from_c(value), bool(last[0])

    def lru_push(self, page: int) -> None:
        """A published page nobody reads goes to the newest end of the eviction order."""
        check(lib.growpage_prefix_index_lru_push(self._c, page))

    def lru_remove(self, page: int) -> None:
        """Out of the eviction order; nothing happens when it is not there."""
        check(lib.growpage_prefix_index_lru_remove(self._c, page))

    def lru_oldest(self) -> int | None:
        """The page to give up next."""
        page = ffi.new("int32_t*")
        check(lib.growpage_prefix_index_lru_oldest(self._c, page))
        return page[0] if page[0] >= 0 else None
