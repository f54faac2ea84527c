#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times vLLM's block pool and KV cache manager at what bench/ times growpage at. Prints JSON in the
form of Google Benchmark. Needs the files that fetch_vllm.sh fetches; exits with 77 without them.

Only the classes that keep pages are vLLM's; torch, configuration and message queues are stand-ins
(stand_ins.py) that none of the timed calls reaches."""

import gc
import glob
import json
import os
import statistics
import sys
import time
import types

import stand_ins

REAL = {"vllm." + name for name in (
    "utils", "utils.hashing", "utils.math_utils", "v1.core.block_pool", "v1.core.kv_cache_coordinator",
    "v1.core.kv_cache_manager", "v1.core.kv_cache_utils", "v1.core.single_type_kv_cache_manager",
    "v1.hisparse.block_pool", "v1.kv_cache_interface", "v1.kv_cache_layout",
    "v1.kv_cache_spec_registry", "v1.request", "v1.utils")}
ROOTS = {"vllm", "torch", "msgspec", "zmq", "cbor2", "psutil", "uvloop", "numpy", "regex"}
ROUNDS = 15
BLOCKS = 8192


def find():
    """The newest vLLM that was fetched."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    peers = os.environ.get("GROWPAGE_PEERS") or os.path.join(cache, "growpage-peers")
    found = glob.glob(os.path.join(peers, "vllm-*"))
    version = lambda path: [int(n) for n in path.rsplit("-", 1)[1].split(".") if n.isdigit()]
    return max(found, key=version, default=None)


class Peer:
    def __init__(self, tree):
        stand_ins.install(tree, ROOTS, REAL)
        from vllm.utils.hashing import sha256
        from vllm.v1.core import kv_cache_manager, kv_cache_utils
        from vllm.v1.core.block_pool import BlockPool
        from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
        from vllm.v1.request import Request
        from vllm.v1.structured_output.request import StructuredOutputRequest

        StructuredOutputRequest.from_sampling_params = staticmethod(lambda parameters: None)
        kv_cache_utils.init_none_hash(sha256)
        self.sha256 = sha256  # vLLM's default
        self.utils = kv_cache_utils
        self.BlockPool = BlockPool
        self.Request = Request
        self.Manager = kv_cache_manager.KVCacheManager
        self.spec = lambda page: KVCacheConfig(
            num_blocks=BLOCKS, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(
                ["layer"], FullAttentionSpec(block_size=page, num_kv_heads=8, head_size=128,
                                             dtype=None))])

    def manager(self, page):
        return self.Manager(self.spec(page), max_model_len=1 << 20, scheduler_block_size=page,
                            hash_block_size=page)

    def request(self, name, tokens, hasher=None):
        parameters = types.SimpleNamespace(max_tokens=1 << 20, extra_args=None,
                                           skip_reading_prefix_cache=None)
        return self.Request(str(name), tokens, parameters, None, block_hasher=hasher)

    def hasher(self, page):
        return self.utils.get_request_block_hasher(page, self.sha256)


def text(count, first):
    return [first] + [(i * 2654435761) % 150000 for i in range(1, count)]


def rounds(items, work, prepare=lambda: None):
    """CPU nanoseconds per item, of each round."""
    times = []
    prepared = prepare()
    work(prepared) if prepared is not None else work()
    gc.collect()
    gc.freeze()
    for _ in range(ROUNDS):
        prepared = prepare()
        start = time.thread_time_ns()
        work(prepared) if prepared is not None else work()
        times.append((time.thread_time_ns() - start) / items)
    gc.unfreeze()
    return times


def alloc_free(peer):
    pool = peer.BlockPool(BLOCKS, True, 16)

    def work():
        for _ in range(64):
            blocks = pool.get_new_blocks(16)
            pool.free_blocks(blocks)
    times = rounds(64 * 16, work)
    assert pool.get_num_free_blocks() == BLOCKS - 1
    return times


def page_hash(peer, page):
    pages = [text(page, i) for i in range(64)]

    def work():
        parent = None
        for tokens in pages:
            parent = peer.utils.hash_block_tokens(peer.sha256, parent, tokens)
    return rounds(64, work)


def admit(peer, page, cached):
    """A prompt of 64 pages: hashes, lookup, blocks, and their return. Cold: 64 pages nobody knows, in
    a pool whose blocks are all cached. Hit: all but the last token are there."""
    manager = peer.manager(page)
    hasher = peer.hasher(page)
    serial = iter(range(1 << 60))
    known = text(64 * page + 1, -1)
    hits = []

    def prepare():
        n = next(serial)
        tokens = known if cached else text(64 * page + 1, 1000000 + n)
        return peer.request(n, list(tokens))

    def work(request):
        request.block_hashes = hasher(request)
        blocks, found, _ = manager.get_computed_blocks(request)
        hits.append(found)
        # Of a hit, what remains to compute is one token.
        assert manager.allocate_slots(request, request.num_tokens - found, found, blocks) is not None
        manager.free(request)

    for _ in range(BLOCKS // 64 + 2 if not cached else 1):
        work(prepare())
    times = rounds(64, work, prepare)
    assert all(h == (64 * page if cached else 0) for h in hits[-ROUNDS:])
    return times


def decode(peer):
    """What the manager does for each of 512 running requests in each step."""
    page = 16
    manager = peer.manager(page)
    hasher = peer.hasher(page)
    requests = [peer.request(i, text(page // 2 + i % page, i), hasher) for i in range(512)]
    for request in requests:
        assert manager.allocate_slots(request, request.num_tokens) is not None
        request.num_computed_tokens = request.num_tokens

    def work():
        manager.new_step_starts()
        for request in requests:
            request.append_output_token_ids(7)
            manager.allocate_slots(request, 1)
            request.num_computed_tokens += 1
    times = rounds(512, work)
    assert all(r.num_computed_tokens == r.num_tokens for r in requests)
    return times


def main():
    tree = find()
    if tree is None:
        print("vLLM is not here, its lines are left out: bench/peers/fetch_vllm.sh fetches it",
              file=sys.stderr)
        return 77
    version = os.path.basename(tree).removeprefix("vllm-")
    print(f"vLLM {version}, Python {sys.version.split()[0]}", file=sys.stderr)
    peer = Peer(tree)
    cases = {
        "alloc_free/pages:8192": lambda: alloc_free(peer),
        "page_hash/page:16": lambda: page_hash(peer, 16),
        "page_hash/page:256": lambda: page_hash(peer, 256),
        "admit_cold/page:16/pages:64": lambda: admit(peer, 16, False),
        "admit_hit/page:16/pages:64": lambda: admit(peer, 16, True),
        "admit_cold/page:256/pages:64": lambda: admit(peer, 256, False),
        "admit_hit/page:256/pages:64": lambda: admit(peer, 256, True),
        "decode/requests:512": lambda: decode(peer),
    }
    lines = []
    for name, case in cases.items():
        times = sorted(case())
        ns = statistics.median(times)
        spread = (times[len(times) * 3 // 4] - times[len(times) // 4]) / 2 / ns
        lines.append({"name": f"peers/vllm/{name}", "run_type": "iteration", "iterations": ROUNDS,
                      "real_time": ns, "cpu_time": ns, "time_unit": "ns", "ns": ns,
                      "spread": spread, "label": f"vLLM {version}"})
    json.dump({"context": {"vllm": version, "python": sys.version.split()[0]},
               "benchmarks": lines}, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
