# SPDX-License-Identifier: Apache-2.0
"""Tables of a run, in markdown."""

# Mean milliseconds per event in the GrowPage paper (Qwen3-8B, A100-80GB): what of ours they name.
PAPER = {"score": 8.54, "window mask": 0.70, "demand": 5.84, "top-k": 8.72, "compaction": 19.05}
LAYERS = 36  # of Qwen3-8B
KV_HEADS = 8

# Our line, the peer's line, and what both do.
PEERS = (
    ("alloc + free, per page", "memory/page_pool/alloc_free/pages:8192",
     "memory/plain_pool/alloc_free/pages:8192", "peers/vllm/alloc_free/pages:8192"),
    ("hash of a page of 16", "prefix/page_hash/chained/page:16", None, "peers/vllm/page_hash/page:16"),
    ("hash of a page of 256", "prefix/page_hash/chained/page:256", None,
     "peers/vllm/page_hash/page:256"),
    ("cold admit, per page of 16", "cache/admit/cold/page:16/pages:64", None,
     "peers/vllm/admit_cold/page:16/pages:64"),
    ("prefix hit, per page of 16", "cache/admit/hit/page:16/pages:64", None,
     "peers/vllm/admit_hit/page:16/pages:64"),
    ("cold admit, per page of 256", "cache/admit/cold/page:256/pages:64", None,
     "peers/vllm/admit_cold/page:256/pages:64"),
    ("prefix hit, per page of 256", "cache/admit/hit/page:256/pages:64", None,
     "peers/vllm/admit_hit/page:256/pages:64"),
    ("decode bookkeeping, per request and step", "cache/decode", None,
     "peers/vllm/decode/requests:512"),
)


def markdown(header, rows):
    cells = [[str(c) for c in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    # Text to the left, numbers to the right.
    lines = ["| " + " | ".join(c.ljust(w) if i == 0 else c.rjust(w)
                               for i, (c, w) in enumerate(zip(row, widths))) + " |" for row in cells]
    rule = "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":"
                          for i, w in enumerate(widths)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def time(ns):
    if ns is None:
        return "–"
    for unit, size in (("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)):
        if ns < 1000 * size or unit == "s":
            return f"{ns / size:.3g} {unit}"
    return ""


def number(value, text="{:.2f}"):
    return "" if value is None else text.format(value)


def all_lines(results):
    rows = []
    for name, line in sorted(results.lines.items()):
        if "ns" not in line or name.startswith("recorded/"):
            continue
        ratio = line.get("share", line.get("speedup"))
        rows.append((name, time(line["ns"]), number(line.get("spread")),
                     number(line.get("bytes") and line["bytes"] / 1e6, "{:.1f}"),
                     number(line.get("GBps"), "{:.1f}"),
                     number(ratio, "{:.2f}" if "share" in line else "{:.1f} ×")))
    return markdown(("bench", "time", "spread", "MB", "GB/s", "share / speed-up"), rows)


def event(results):
    """Ours beside the paper's, for all layers."""
    line = results.lines.get("retention/event/qwen3_8b/dtype:2/nhd:0/threads:1/in_order:0")
    if line is None:
        return None

    def per_head(name):
        ns = results.value(f"retention/{name}#ns")
        return ns and ns * LAYERS * KV_HEADS / 1e6

    whole = line["layer_ns"] * LAYERS / 1e6
    scale = whole / (line["ns"] / 1e6)
    read = results.value("retention/scoring/dtype:2/nhd:0#ns")
    ours = {
        "score": read and read * scale / 1e6 + sum(filter(None, map(per_head, ("softmax", "scores")))),
        "window mask": None,  # part of the selection
        "demand": per_head("demand"),
        "top-k": line["select_ms"] * scale,
        "compaction": line["compact_ms"] * scale,
    }
    rows = [(stage, number(ours[stage]) or "–", f"{PAPER[stage]:.2f}") for stage in PAPER]
    rows.append(("all", f"{whole:.2f}", f"{sum(PAPER.values()):.2f}"))
    rows.append(("floor", f"{line['reference_ns'] * scale / 1e6:.2f}", "–"))
    return markdown(("stage, ms an event", "here, one CPU thread", "paper, A100"), rows)


def peers(results):
    rows = []
    for what, ours, plain, theirs in PEERS:
        mine, their = results.value(f"{ours}#ns"), results.value(f"{theirs}#ns")
        if mine is None:
            continue
        rows.append((what, time(mine), time(results.value(f"{plain}#ns") if plain else None),
                     time(their), number(their and their / mine, "{:.0f} ×")))
    label = next((line["label"] for name, line in results.lines.items()
                  if name.startswith("peers/vllm/")), "vLLM (not fetched)")
    return markdown(("host path", "growpage", "plain pool", label, "ratio"), rows)


# What grows, the benches, whether a line is the cost of one item, the least size of the fit.
FITS = (("slots", "retention/event/slots/slots:@#ns", False, 0),
        ("requests", "schedule/step/*/requests:@#ns", True, 64),
        ("requests, out of the L2 cache", "schedule/growth/*/requests:@#ns", True, 0),
        ("requests", "cache/batch_tables/*/requests:@#ns", True, 0),
        ("pages", "cache/admit/*/pages:@#ns", True, 0),
        ("pages", "cache/fork/pages:@#ns", True, 0),
        ("pages", "cache/swap/bookkeeping/pages:@#ns", True, 0),
        ("pages", "retention/plan/pages:@#ns", False, 0),
        ("pages of the pool, one call", "memory/page_pool/*/pages:@#ns", False, 0),
        ("pages of the index, one call", "prefix/index/*/pages:@#ns", False, 0))


def exponents(results):
    rows = []
    for size, pattern, per_item, least in FITS:
        for name, value in sorted(results.exponents(pattern, per_item, least).items()):
            rows.append((name, size + (f", from {least}" if least else ""), f"{value:.2f}"))
    return markdown(("cost of", "against", "exponent"), rows)


def targets(rows):
    return markdown(("target", "value", "bound", "verdict"), [
        (f"{r['id']}. {r['what']}", number(r["value"], "{:.3g}") or "–", r["bound"],
         r["verdict"] + (f" ({r['remark']})" if r["remark"] else "")) for r in rows])
