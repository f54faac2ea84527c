# SPDX-License-Identifier: Apache-2.0
"""Cost against slots, requests and pages, with the fitted exponents: log-log, one panel each."""

import math
import re

from reporting.results import Results

# Title, what the x axis counts, least size of the fit, (pattern, label, cost of one of the items?)
PANELS = (
    ("Boundary event", "slots", 0, (("retention/event/slots/slots:@", "event", False),)),
    ("Scheduler step", "running requests", 64,
     tuple((f"schedule/step/{p}/requests:@", p, True)
           for p in ("full", "fixed", "zipage", "growpage", "random", "inverse", "shrink"))),
    ("Sequences", "pages", 0, (("cache/admit/cold/page:16/pages:@", "cold admit, pages of 16", True),
                               ("cache/admit/hit/page:16/pages:@", "prefix hit, pages of 16", True),
                               ("cache/fork/pages:@", "fork", True),
                               ("cache/swap/bookkeeping/pages:@", "swap, bookkeeping", True))),
)
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = "osD^vX*"


def points(results, pattern, per_item):
    shape = re.compile(re.escape(pattern).replace("@", r"(\d+)") + "$")
    found = []
    for name, line in results.lines.items():
        match = shape.match(name)
        if match:
            size = int(match.group(1))
            found.append((size, line["ns"] * (size if per_item else 1) / 1e3))
    return sorted(found)


def draw(folder, plt):
    results = Results.load(folder)
    figure, panels = plt.subplots(1, len(PANELS), figsize=(13, 4.5), layout="constrained")
    for axes, (title, unit, least, curves) in zip(panels, PANELS):
        for i, (pattern, label, per_item) in enumerate(curves):
            curve = points(results, pattern, per_item)
            if not curve:
                raise SystemExit(f"plot.py: no {pattern} in {folder}")
            fitted = results.exponents(pattern + "#ns", per_item, least)
            exponent = next(iter(fitted.values()), math.nan)
            axes.loglog(*zip(*curve), color=COLOURS[i % 7], marker=MARKERS[i % 7], markersize=5,
                        linewidth=1.4, label=f"{label}: n^{exponent:.2f}")
        axes.set_title(title)
        axes.set_xlabel(unit)
        axes.set_ylabel("µs")
        axes.grid(alpha=0.25, which="both")
        axes.legend(frameon=False, fontsize=8)
    return figure
