# SPDX-License-Identifier: Apache-2.0
"""Targets: values of a run against bounds. bench/targets.json says how each is made up:

  id, what          its number in the list of targets, and what it says
  value             "bench#counter"
  ratio             ["bench#counter", "bench#counter"], the first over the second
  largest, smallest "pattern#counter": of all benches that match
  range             "pattern#counter": the largest over the smallest
  exponent          "pattern with one @#counter": the largest fitted one; per_item, least: see Results
  at_most, at_least the bound
  when              [{"value": …, "at_least": …} or {"label": bench, "contains": text}, …]: judged
                    only where all hold
  optional          true: not judged when a bench is absent (a peer that was not fetched)
"""

import json

MET, MISSED, NOT_JUDGED = "met", "MISSED", "not judged"


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def evaluate(target, results):
    """The value, or None when something it needs was not measured."""
    if "value" in target:
        return results.value(target["value"])
    if "ratio" in target:
        over, under = (results.value(r) for r in target["ratio"])
        return None if over is None or not under else over / under
    if "exponent" in target:
        fitted = results.exponents(target["exponent"], target.get("per_item", False),
                                   target.get("least", 0))
        return max(fitted.values(), default=None)
    for kind, reduce in (("largest", max), ("smallest", min),
                         ("range", lambda v: max(v) / min(v))):
        if kind in target:
            values = list(results.values(target[kind]).values())
            return reduce(values) if values else None
    raise SystemExit(f"report.py: target {target['id']}: how is it made up?")


def holds(condition, results):
    if "label" in condition:
        label = results.lines.get(condition["label"], {}).get("label", "")
        return condition["contains"] in label
    value = results.value(condition["value"])
    return value is not None and value >= condition["at_least"]


def describe(condition):
    if "label" in condition:
        return f"needs {condition['contains']}"
    return f"needs {condition['value']} ≥ {condition['at_least']}"


def judge(target, results):
    """(value, bound as text, verdict, remark)"""
    at_most = "at_most" in target
    bound = target["at_most"] if at_most else target["at_least"]
    text = f"{'≤' if at_most else '≥'} {bound:g}"
    value = evaluate(target, results)
    if value is None:
        # What was not measured has not been met.
        if target.get("optional"):
            return None, text, NOT_JUDGED, "not measured: the peer is absent"
        return None, text, MISSED, "not measured"
    for condition in target.get("when", []):
        if not holds(condition, results):
            return value, text, NOT_JUDGED, describe(condition)
    good = value <= bound if at_most else value >= bound
    return value, text, MET if good else MISSED, ""


def judge_all(targets, results):
    rows = []
    for target in targets:
        value, bound, verdict, remark = judge(target, results)
        rows.append({"id": target["id"], "what": target["what"], "value": value, "bound": bound,
                     "verdict": verdict, "remark": remark})
    return rows
