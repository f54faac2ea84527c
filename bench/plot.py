#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what growpage-replay and the benchmarks wrote: PNG, SVG or PDF, by the name of the output.

  plot.py request   TIMELINE -o FILE    pages and demand of one request over time
  plot.py residency TIMELINE -o FILE    requests and pages in memory over time
  plot.py budget    RESULTS... -o FILE  throughput against KV held, all policies
  plot.py cost      FOLDER -o FILE      time against slots, requests and pages, of a benchmark run

TIMELINE is written by --timeline, RESULTS by --json; several RESULTS (other budgets, thresholds)
are joined by a line per policy. FOLDER is where bench/report.py left its results, build/bench.
Needs matplotlib (Debian: python3-matplotlib).
"""

import argparse
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy  # noqa: E402

# Okabe and Ito's colours, told apart with any colour vision; markers and dashes say the same again.
# fixed is drawn broad and below zipage, which it coincides with when nothing ranks tokens.
STYLES = {
    "full": ("#000000", "s", (0, (5, 1))),
    "fixed": ("#0072B2", "o", "solid"),
    "zipage": ("#56B4E9", "D", (0, (3, 1, 1, 1))),
    "growpage": ("#D55E00", "*", "solid"),
    "random": ("#999999", "X", (0, (2, 2))),
    "inverse": ("#CC79A7", "v", (0, (4, 1, 1, 1))),
    "shrink": ("#009E73", "^", (0, (6, 2))),
}


def style(policy):
    return STYLES.get(policy, ("#E69F00", "P", "solid"))


def width(policy, highlighted=False):
    return 4 if policy == "fixed" else 2.2 if highlighted else 1.4


def load(path, field):
    """The file, whose runs must have `field`: results and timelines are easily mixed up."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"plot.py: {path}: {error}")
    if not data.get("runs") or any(field not in run for run in data["runs"]):
        sys.exit(f"plot.py: {path}: no {field} in its runs")
    return data


def time_axis(seconds):
    """A unit for `seconds` and how many of them it is."""
    for name, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= 3 * size:
            return name, size
    return "ms", 1e-3


def source(data):
    """What a picture was made of, for its title."""
    workload = {"mixed": "mixed workload", "amc23": "AMC23 workload"}.get(
        data["workload"], data["workload"].rsplit("/", 1)[-1])
    return f"{workload}, {data['signal']} signal, {data['pages']} pages of {data['page_size']} tokens"


def finish(figure, out):
    figure.savefig(out, dpi=150)
    plt.close(figure)


def plot_request(data, out, policy, index):
    """Top: the pages a request holds under each policy. Bottom: the demand one policy saw."""
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(9, 6), sharex=True, layout="constrained", height_ratios=[3, 2])
    requests = {}
    for run in data["runs"]:
        if index >= len(run["requests"]):
            sys.exit(f"plot.py: there are {len(run['requests'])} requests, from 0")
        if run["requests"][index]["pages"]:
            requests[run["policy"]] = run["requests"][index]
    start = min(r["pages"][0][1] for r in requests.values())
    end = max(p[1] for r in requests.values() for p in r["pages"] + r["demand"])
    for name, request in requests.items():
        points = request["pages"] + [[0, end, request["pages"][-1][2]]]
        colour, _, dashes = style(name)
        top.step([p[1] - start for p in points], [p[2] for p in points], where="post",
                 color=colour, linestyle=dashes, label=name,
                 linewidth=width(name, name == policy))
    drawn = requests.get(policy)
    if drawn is None:
        sys.exit(f"plot.py: no run of policy {policy}")
    unit, size = time_axis(drawn["pages"][-1][0] - drawn["pages"][0][0])
    clock = top.secondary_xaxis("top", functions=clock_of(drawn, start, size))
    clock.set_xlabel(f"time under {policy} ({unit})")
    top.set_ylabel("pages held")
    top.set_ylim(bottom=0)
    top.legend(ncols=2, loc="upper left", frameon=False)
    top.set_title(f"Request {drawn['tag']}: pages and demand\n{source(data)}")

    for grows, colour, marker, text in ((True, "#D55E00", "^", "Δ > 0: attention widens"),
                                        (False, "#0072B2", "v", "Δ ≤ 0: it narrows")):
        points = [d for d in drawn["demand"] if (d[2] > 0) == grows]
        bottom.vlines([d[1] - start for d in points], 0, [d[2] for d in points], color=colour,
                      linewidth=1, alpha=0.6)
        bottom.plot([d[1] - start for d in points], [d[2] for d in points], marker, color=colour,
                    markersize=5, label=text)
    bottom.axhline(0, color="#444444", linewidth=0.8)
    bottom.set_ylabel(f"demand Δ under {policy}")
    bottom.set_xlabel("tokens generated")
    if drawn["demand"]:
        bottom.legend(ncols=2, loc="best", frameon=False)
    else:
        bottom.text(0.5, 0.5, f"{policy} does not measure demand", ha="center", va="center",
                    transform=bottom.transAxes)
    for axes in (top, bottom):
        axes.grid(alpha=0.25)
    finish(figure, out)


def clock_of(request, start, size):
    """Tokens generated → time since the first one, and back, for a second axis."""
    points = sorted([(p[1] - start, p[0]) for p in request["pages"]] +
                    [(d[1] - start, d[0]) for d in request["demand"]])
    tokens = [p[0] for p in points]
    clock = [(p[1] - points[0][1]) / size for p in points]

    def interpolate(x, xs, ys):
        x = numpy.asarray(x, dtype=float)
        # Beyond the ends at the mean speed: matplotlib asks there too.
        slope = (ys[-1] - ys[0]) / (xs[-1] - xs[0]) if xs[-1] > xs[0] else 1.0
        inside = numpy.interp(x, xs, ys)
        return inside + slope * (numpy.minimum(x - xs[0], 0) + numpy.maximum(x - xs[-1], 0))

    return (lambda x: interpolate(x, tokens, clock), lambda x: interpolate(x, clock, tokens))


def plot_residency(data, out):
    """Top: requests in the batch. Bottom: share of the pool in use."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 6), sharex=True, layout="constrained")
    longest = max(run["residency"][-1][0] for run in data["runs"] if run["residency"])
    unit, size = time_axis(longest)
    for run in data["runs"]:
        points = thin(run["residency"], 400)
        colour, _, dashes = style(run["policy"])
        time = [p[0] / size for p in points]
        top.plot(time, [p[1] for p in points], color=colour, linestyle=dashes, label=run["policy"],
                 linewidth=width(run["policy"]))
        bottom.plot(time, [100 * p[3] / run["pool_pages"] for p in points], color=colour,
                    linestyle=dashes, linewidth=width(run["policy"]))
    top.set_ylabel("requests running")
    top.set_ylim(bottom=0)
    top.legend(ncols=4, loc="upper right", frameon=False)
    top.set_title(f"Requests and pages in memory\n{source(data)}")
    bottom.set_ylabel("pages in use (% of the pool)")
    bottom.set_xlabel(f"time ({unit})")
    bottom.set_ylim(0, 105)
    for axes in (top, bottom):
        axes.set_xlim(left=0)
        axes.grid(alpha=0.25)
    finish(figure, out)


def thin(points, most):
    """Averages of neighbours, at most `most` of them."""
    group = max(1, -(-len(points) // most))
    groups = [points[i:i + group] for i in range(0, len(points), group)]
    return [[sum(column) / len(g) for column in zip(*g)] for g in groups]


def plot_budget(results, out):
    """Throughput against the KV a request holds; the paper's points hollow beside ours."""
    figure, axes = plt.subplots(figsize=(8, 5.5), layout="constrained")
    points, paper = {}, {}
    for data in results:
        for run in data["runs"]:
            points.setdefault(run["policy"], set()).add((run["kv_tokens"], run["tokens_per_s"]))
        for row in data.get("paper", []):
            if row["kv_tokens"] and row["tokens_per_s"]:
                paper[row["policy"]] = (row["kv_tokens"], row["tokens_per_s"])
    for policy in sorted(points, key=lambda p: list(STYLES).index(p) if p in STYLES else 99):
        colour, marker, dashes = style(policy)
        xs, ys = zip(*sorted(points[policy]))
        size = 15 if marker == "*" else 12 if policy == "fixed" else 8
        axes.plot(xs, ys, color=colour, marker=marker, linestyle=dashes, markersize=size,
                  label=policy, linewidth=width(policy))
        if policy in paper:
            axes.plot(*paper[policy], color=colour, marker=marker, markersize=size,
                      markerfacecolor="none", markeredgewidth=1.5, linestyle="none")
    if paper:
        axes.plot([], [], color="#444444", marker="o", markersize=8, markerfacecolor="none",
                  linestyle="none", label="in the paper")
    axes.set_xlabel("KV a request holds (tokens, average)")
    axes.set_ylabel("output (tokens/s)")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_title(f"Throughput against KV held\n{source(results[0])}")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    finish(figure, out)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("request", "residency", "budget", "cost"):
        command = commands.add_parser(name)
        command.add_argument("files", nargs="+" if name == "budget" else 1)
        command.add_argument("-o", "--out", required=True)
        if name == "request":
            command.add_argument("--policy", default="growpage", help="whose demand is drawn")
            command.add_argument("--request", type=int, default=0,
                                 help="0: the longest output; then the 90th, 75th, 50th percentile")
    arguments = parser.parse_args()
    if arguments.command == "cost":
        from reporting import plot_cost
        finish(plot_cost.draw(arguments.files[0], plt), arguments.out)
        return
    field = "kv_tokens" if arguments.command == "budget" else "residency"
    data = [load(path, field) for path in arguments.files]
    if arguments.command == "request":
        plot_request(data[0], arguments.out, arguments.policy, arguments.request)
    elif arguments.command == "residency":
        plot_residency(data[0], arguments.out)
    else:
        plot_budget(data, arguments.out)


if __name__ == "__main__":
    main()
