#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what growpage-eval wrote with --output.

  plot.py RESULTS --out FOLDER [--prefix NAME-]

A plot for each part in RESULTS, as SVG: pareto, signal, advantage, budget, timeline, concentration.
Needs matplotlib (Debian: python3-matplotlib).
"""

import argparse
import json
import random
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# Okabe and Ito's colours, told apart with any colour vision; markers say the same again.
STYLES = {
    "full": ("#000000", "s"),
    "fixed": ("#0072B2", "o"),
    "zipage": ("#56B4E9", "D"),
    "growpage": ("#D55E00", "*"),
    "random": ("#999999", "X"),
    "inverse": ("#CC79A7", "v"),
    "shrink": ("#009E73", "^"),
}
MOST_POINTS = 600  # of a scatter: more say no more and make large files


def bars(intervals, scale=1):
    """Values and the error bars matplotlib wants. An interval that is not known has no bar."""
    values = [scale * i["value"] for i in intervals]
    ends = [[abs((i["value"] if i[end] is None else i[end]) - i["value"]) * scale
             for i in intervals] for end in ("low", "high")]
    return values, ends


def text(interval):
    ends = [interval[end] for end in ("value", "low", "high")]
    return "unknown" if None in ends else "{:.2f} [{:.2f}, {:.2f}]".format(*ends)


def axes(width=6.0, height=4.0):
    figure, ax = plt.subplots(figsize=(width, height))
    ax.grid(alpha=0.3)
    return figure, ax


def pareto(results):
    """Quality against the KV held: fixed and zipage as lines over their budgets."""
    figure, ax = axes()
    passes = results["quality"] == "pass@1"
    scale = 100 if passes else 1
    for policy, (colour, marker) in STYLES.items():
        rows = [row for row in results["table"]["rows"] if row["policy"] == policy]
        rows.sort(key=lambda row: row["kv_tokens"])
        if not rows:
            continue
        values, ends = bars([row["quality"] for row in rows], scale)
        ax.errorbar([row["kv_tokens"] for row in rows], values, yerr=ends, color=colour,
                    marker=marker, markersize=11 if policy == "growpage" else 6, capsize=2,
                    linestyle="solid" if policy in ("fixed", "zipage") else "none", label=policy,
                    zorder=3 if policy == "growpage" else 2)
    ax.set_xlabel("average KV tokens of a running request")
    ax.set_ylabel("pass@1, %" if passes else "−NLL a token")
    ax.legend()
    return figure


def scatter(points, ax):
    points = random.Random(1).sample(points, min(len(points), MOST_POINTS))
    ax.axhline(0, color="black", linewidth=0.8)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.scatter([p[0] for p in points], [p[1] for p in points], s=8, alpha=0.5, linewidths=0,
               color=STYLES["growpage"][0])
    ax.set_xlabel("Δ at the boundary")


def signal(results):
    part = results["signal"]
    figure, ax = axes()
    scatter(part["points"], ax)
    ax.set_ylabel("change of the true working set, next page")
    ax.set_title(f"ρ = {text(part['rho'])}, same sign {text(part['sign_agreement'])}", fontsize=10)
    return figure


def advantage(results):
    bins = results["advantage"]["bins"]
    figure, ax = axes()
    values, ends = bars([b["advantage_to_end"] for b in bins])
    ax.axhline(0, color="black", linewidth=0.8)
    ax.errorbar(range(len(bins)), values, yerr=ends, color=STYLES["growpage"][0], marker="o",
                capsize=3)
    ax.set_xticks(range(len(bins)))
    ax.set_xticklabels([f"{b['delta_low']:.3f}\n… {b['delta_high']:.3f}" for b in bins], fontsize=8)
    ax.set_xlabel("Δ, bins of equal size")
    ax.set_ylabel("NLL to the end: compressed less grown, nats")
    return figure


def budget(results):
    """How B* is distributed, and B* against the pages growpage gave."""
    part = results["budget"]
    solved = [r for r in part["requests"] if r[3] is not None]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
    counts = [sum(r[3] == pages for r in solved) for pages in part["budgets"]]
    left.bar([str(pages) for pages in part["budgets"]], counts, color=STYLES["fixed"][0])
    left.set_xlabel("B*: smallest sufficient budget, pages")
    left.set_ylabel("problems")
    # Many problems share a place: spread them a little.
    spread = random.Random(1)
    right.scatter([r[3] + spread.uniform(-0.3, 0.3) for r in solved],
                  [r[4] + spread.uniform(-0.3, 0.3) for r in solved], s=9, alpha=0.5, linewidths=0,
                  color=STYLES["growpage"][0])
    right.set_xlabel("B*, pages")
    right.set_ylabel("most pages under growpage")
    right.set_title(f"ρ = {text(part['rho'])}", fontsize=10)
    for ax in (left, right):
        ax.grid(alpha=0.3)
    return figure


def timeline(results):
    requests = [r for r in results["timeline"]["requests"] if r["points"]]
    figure, (pages, delta) = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
    colours = [colour for colour, _ in STYLES.values()]
    for i, request in enumerate(requests):
        colour = colours[i % len(colours)]
        points = request["points"]
        label = f"request {request['tag']}"
        pages.step([p[0] for p in points], [p[1] for p in points], where="post", color=colour,
                   label=label)
        measured = [p for p in points if p[2] is not None]
        delta.plot([p[0] for p in measured], [p[2] for p in measured], marker=".", linewidth=0.8,
                   color=colour)
    delta.axhline(0, color="black", linewidth=0.8)
    pages.set_ylabel("pages")
    delta.set_ylabel("Δ")
    delta.set_xlabel("tokens of the text")
    pages.legend(fontsize=8)
    for ax in (pages, delta):
        ax.grid(alpha=0.3)
    return figure


def concentration(results):
    rows = results["timeline"]["concentration"]
    figure, ax = axes()
    names = ("top 5 % of slots", "top 10 %", "top 20 %")
    for i, (name, policy) in enumerate(zip(names, ("growpage", "fixed", "shrink"))):
        ax.plot([row[0] for row in rows], [row[i + 1] for row in rows], color=STYLES[policy][0],
                marker=STYLES[policy][1], markersize=3, label=name)
    ax.set_ylim(0, 1)
    ax.set_xlabel("slots")
    ax.set_ylabel("share of a step's attention")
    ax.legend()
    return figure


PLOTS = {
    "pareto": ("table", pareto),
    "signal": ("signal", signal),
    "advantage": ("advantage", advantage),
    "budget": ("budget", budget),
    "timeline": ("timeline", timeline),
    "concentration": ("timeline", concentration),
}


def main():
    parser = argparse.ArgumentParser(description="Draws results of growpage-eval.")
    parser.add_argument("results", help="what --output wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder for the SVG files")
    parser.add_argument("--prefix", default="", help="of the files' names")
    options = parser.parse_args()
    try:
        results = json.loads(Path(options.results).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"plot.py: {options.results}: {error}")
    plots = {name: draw for name, (part, draw) in PLOTS.items() if part in results}
    if not plots:
        sys.exit(f"plot.py: {options.results}: no results of growpage-eval")
    options.out.mkdir(parents=True, exist_ok=True)
    plt.rcParams["svg.fonttype"] = "none"  # text, not outlines of letters
    plt.rcParams["svg.hashsalt"] = "growpage"  # the same file for the same results
    for name, draw in plots.items():
        path = options.out / f"{options.prefix}{name}.svg"
        figure = draw(results)
        figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
        print(path)


if __name__ == "__main__":
    main()
