#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks and reports on a run.

  report.py run  --build FOLDER --out FOLDER   runs every growpage_bench_* of a build and the peers,
                                               one JSON file each, then does what `show` does
  report.py show --out FOLDER                  prints the tables of a run; also writes them to
                                               report.md and report.json beside it
  --check                                      prints only the targets; exit status 1 when one is
                                               missed
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import time

from reporting import tables
from reporting import targets as targets_of
from reporting.results import Results

HERE = os.path.dirname(os.path.abspath(__file__))
PEER_ABSENT = 77


def run(build, out):
    programs = sorted(glob.glob(os.path.join(build, "bench", "growpage_bench_*")))
    programs = [p for p in programs if os.access(p, os.X_OK) and not os.path.isdir(p)]
    if not programs:
        sys.exit(f"report.py: no growpage_bench_* in {build}/bench: configure with "
                 "-DGROWPAGE_BUILD_BENCH=ON and build the target growpage_bench")
    os.makedirs(out, exist_ok=True)
    for old in glob.glob(os.path.join(out, "*.json")):
        os.remove(old)
    for program in programs:
        name = os.path.basename(program).removeprefix("growpage_bench_")
        start = time.monotonic()
        done = subprocess.run([program, f"--benchmark_out={os.path.join(out, name)}.json",
                               "--benchmark_out_format=json"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"report.py: {program} failed ({done.returncode}):\n{done.stderr}")
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    run_peer("vllm", out)


def run_peer(name, out):
    peer = subprocess.run([sys.executable, os.path.join(HERE, "peers", f"{name}_peer.py")],
                          stdout=subprocess.PIPE, text=True, check=False)
    if peer.returncode == 0:
        with open(os.path.join(out, f"peer_{name}.json"), "w", encoding="utf-8") as file:
            file.write(peer.stdout)
    elif peer.returncode != PEER_ABSENT:
        sys.exit(f"report.py: the peer {name} failed")


def machine(results):
    context = next((c for c in results.contexts if "num_cpus" in c), {})
    load = ", ".join(f"{x:.1f}" for x in context.get("load_avg", []))
    return (f"{context.get('num_cpus', '?')} CPUs at {context.get('mhz_per_cpu', '?')} MHz, "
            f"load {load or '?'}, {context.get('date', '?')}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "show"))
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--targets", default=os.path.join(HERE, "targets.json"))
    arguments = parser.parse_args()

    if arguments.command == "run":
        run(arguments.build, arguments.out)
    results = Results.load(arguments.out)
    if not results.lines:
        sys.exit(f"report.py: no results in {arguments.out}")
    wanted = targets_of.load(arguments.targets)
    results.add_recorded(wanted["recorded"])
    judged = targets_of.judge_all(wanted["targets"], results)
    missed = sum(row["verdict"] == targets_of.MISSED for row in judged)
    met = sum(row["verdict"] == targets_of.MET for row in judged)
    summary = f"{met} met, {missed} missed, {len(judged) - met - missed} not judged"

    if arguments.check:
        print(tables.targets(judged))
        print(f"\n{summary}")
        return 1 if missed else 0
    sections = [("Benchmarks", tables.all_lines(results)),
                ("A boundary event of Qwen3-8B (bf16, 36 layers)", tables.event(results)),
                ("Peers", tables.peers(results)),
                ("Growth of the cost", tables.exponents(results)),
                ("Targets", tables.targets(judged) + f"\n\n{summary}")]
    text = f"{machine(results)}\n\n" + "\n\n".join(
        f"## {title}\n\n{table}" for title, table in sections if table)
    print(text)
    with open(os.path.join(arguments.out, "report.md"), "w", encoding="utf-8") as file:
        file.write(text + "\n")
    with open(os.path.join(arguments.out, "report.json"), "w", encoding="utf-8") as file:
        json.dump({"contexts": results.contexts, "benchmarks": results.lines, "targets": judged},
                  file, indent=1)
        file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
