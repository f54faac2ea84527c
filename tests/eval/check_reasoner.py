#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A slice of the evaluation on the committed reasoner: its values, within what roundings of another
machine may change, and the claims that growpage-eval makes of it.

usage: check_reasoner.py <growpage-eval> <model folder>
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROBLEMS = 48
SIGNAL = {
    "rho": (0.1, 0.5),
    "rho_level": (0.1, 0.5),
    "rho_ideal": (0.2, 0.6),
    "rho_lasting": (0.15, 0.45),
}
PASSES = {
    "full": (0.93, 1),
    "fixed 8": (0.2, 0.55),
    "fixed 16": (0.65, 0.92),
    "growpage": (0.8, 1),
    "inverse": (0.55, 0.88),
}
KV_TOKENS = {"full": (212, 219), "fixed 16": (167, 175), "growpage": (172, 186)}


def between(name, value, low, high):
    """One line, and whether the value lies where it has to."""
    good = low <= value <= high
    print(f"{'ok' if good else 'WRONG'}: {name} = {value:.4g}, expected {low:g} to {high:g}")
    return good


def main():
    program, model = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "results.json"
        command = [
            program,
            "--model",
            model,
            "--quick",
            "--limit",
            str(PROBLEMS),
            "--threads",
            "2",
            "--part",
            "signal,table",
            "--check",
            "--output",
            str(output),
        ]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {run.returncode}\n{run.stdout}\n{run.stderr}")
        results = json.loads(output.read_text())
    rows = {row["name"]: row for row in results["table"]["rows"]}
    checks = [
        *(
            between(f"{name} of delta", results["signal"][name]["value"], *bounds)
            for name, bounds in SIGNAL.items()
        ),
        *(
            between(f"pass@1 of {name}", rows[name]["quality"]["value"], *bounds)
            for name, bounds in PASSES.items()
        ),
        *(
            between(f"KV tokens of {name}", rows[name]["kv_tokens"], *bounds)
            for name, bounds in KV_TOKENS.items()
        ),
    ]
    sys.exit(0 if all(checks) else 1)


if __name__ == "__main__":
    main()
