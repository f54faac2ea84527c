# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import growpage as gp
import pytest


def test_hashes() -> None:
    root = gp.prefix_root()
    first = gp.hash_page(root.hash, range(16))
    assert first == gp.hash_page(root.hash, list(range(16)))
    assert first != gp.hash_page(gp.prefix_root(gp.Key(salt=b"a")).hash, range(16))
    assert gp.prefix_root(gp.Key(salt=b"a")) != gp.prefix_root(gp.Key(lora=b"a"))
    key = gp.Key(modality=b"digest", modality_from=3)
    assert gp.prefix_root(key).hash == root.hash
    assert gp.join_modality(root, key).hash != root.hash
    assert len(str(first)) == 32 and int(str(first), 16) == first.high << 64 | first.low


def test_index() -> None:
    with gp.PrefixIndex(8, 16) as index:
        root = gp.prefix_root()
        assert index.lookup(root, range(16)) is None
        link, first = index.publish(3, root, range(16))
        assert first and link.hash == gp.hash_page(root.hash, range(16))
        assert index.lookup(root, range(16)) == (3, link)
        again, first = index.publish(4, root, range(16))
        assert not first and again.hash == link.hash
        assert index.lru_oldest() is None
        index.lru_push(4)
        index.lru_push(3)
        assert index.lru_oldest() == 4
        index.lru_remove(4)
        assert index.lru_oldest() == 3
        index.lru_remove(3)
        assert index.withdraw(3) == (link.hash, False)
        assert index.withdraw(4) == (link.hash, True)
        with pytest.raises(gp.InvalidArgument):
            index.lookup(root, range(15))
    with pytest.raises(gp.InvalidArgument):
        index.lru_oldest()
