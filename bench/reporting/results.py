# SPDX-License-Identifier: Apache-2.0
"""The results of a run: bench name → its counters."""

import fnmatch
import json
import math
import os
import re
import statistics

# Fields that Google Benchmark writes beside the counters.
FIELDS = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions",
          "repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit"}


def short(name):
    """Without what Google Benchmark appends about how it timed."""
    return re.sub(r"/(iterations:\d+|manual_time)(?=/|$)", "", name)


class Results:
    def __init__(self):
        self.lines = {}
        self.contexts = []
        self.missing = []  # benches that were asked for and are not here

    @classmethod
    def load(cls, folder):
        results = cls()
        for file in sorted(os.listdir(folder)):
            if not file.endswith(".json") or file == "report.json":
                continue
            with open(os.path.join(folder, file), encoding="utf-8") as stream:
                data = json.load(stream)
            results.contexts.append(data["context"])
            for line in data["benchmarks"]:
                if line.get("error_occurred"):
                    raise SystemExit(f"report.py: {line['name']}: {line['error_message']}")
                results.lines[short(line["name"])] = {
                    k: v for k, v in line.items() if k not in FIELDS}
        return results

    def add_recorded(self, recorded):
        """Figures of other runs, as benches named recorded/…"""
        for name, value in recorded.items():
            self.lines[f"recorded/{name}"] = {"ns": value["ns"]}

    def value(self, reference):
        """Of "bench#counter"; None when it was not measured."""
        name, counter = reference.split("#")
        return self.lines.get(name, {}).get(counter)

    def values(self, pattern):
        """{bench: value} of all that match "pattern#counter", * standing for anything."""
        names, counter = pattern.split("#")
        return {name: line[counter] for name, line in self.lines.items()
                if fnmatch.fnmatchcase(name, names) and counter in line}

    def exponents(self, pattern, per_item=False, least=0):
        """Cost = c · size^e, fitted on logarithms: {rest of the name: e} for "…/size:@…#counter".
        `per_item`: the counter is the cost of one of `size` items. Sizes below `least`, where fixed
        costs rule, are left out."""
        names, counter = pattern.split("#")
        shape = re.compile(re.escape(names).replace(r"\*", "(?:.*)").replace("@", r"(\d+)") + "$")
        groups = {}
        for name, line in self.lines.items():
            match = shape.match(name)
            if match and counter in line:
                size = int(match.group(1))
                if size < least:
                    continue
                rest = name[:match.start(1)] + "@" + name[match.end(1):]
                cost = line[counter] * (size if per_item else 1)
                groups.setdefault(rest, []).append((math.log(size), math.log(cost)))
        return {rest: slope(points) for rest, points in groups.items() if len(points) > 2}


def slope(points):
    x, y = zip(*points)
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    return (sum((a - mean_x) * (b - mean_y) for a, b in points) /
            sum((a - mean_x) ** 2 for a in x))
