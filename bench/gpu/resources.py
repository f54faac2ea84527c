#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ptxas gives every kernel: registers, shared memory, spills, and the occupancy they allow.

    bench/gpu/resources.py --arch 80 90a        # a markdown table; needs nvcc, no GPU
"""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED_PER_SM = {"80": 164, "86": 100, "89": 100, "90": 228, "100": 228}  # KiB
THREADS_PER_SM = {"86": 1536, "89": 1536}
REGISTERS_PER_SM = 65536


def block_sizes() -> dict[str, int]:
    """Threads per block of every kernel, as its __launch_bounds__ says."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / "cuda").glob("*.cuh")))
    constants = {
        name: int(value)
        for name, value in re.findall(r"constexpr (?:int|std::int32_t) (\w+) = (\d+);", text)
    }
    sizes = {}
    for bounds, kernel in re.findall(
        r"__global__ void\s+__launch_bounds__\(([^)]*)\)\s*(\w+)\(", text
    ):
        first = bounds.split(",")[0].strip()
        value = int(first) if first.isdigit() else constants.get(first)
        sizes[kernel] = value if value is not None else 256  # a template's own argument
    return sizes


def compile_unit(source: Path, arch: str) -> str:
    command = ["nvcc", "-std=c++20", "-O3", f"-arch=sm_{arch}", "--resource-usage", "-I",
               str(ROOT / "include"), "-c", str(source), "-o", os.devnull]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(result.stderr)
    return result.stderr + result.stdout


def parse(log: str) -> list[dict]:
    """One record per kernel instance."""
    records: list[dict] = []
    for line in log.splitlines():
        if match := re.search(r"Compiling entry function '(\S+)'", line):
            records.append({"symbol": match[1], "shared": 0})
        elif match := re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line
        ):
            if records:
                records[-1] |= {"stack": int(match[1]), "spills": int(match[2]) + int(match[3])}
        elif match := re.search(r"Used (\d+) registers", line):
            records[-1]["registers"] = int(match[1])
            if shared := re.search(r"(\d+) bytes smem", line):
                records[-1]["shared"] = int(shared[1])
    names = subprocess.run(
        ["c++filt"], input="\n".join(r["symbol"] for r in records), capture_output=True, text=True,
        check=True,
    ).stdout.splitlines()  # fmt: skip
    for record, name in zip(records, names, strict=True):
        record["kernel"] = re.search(r"(\w+)(?:<|\()", name.replace("growpage::cuda::", ""))[1]
    return records


def blocks_per_sm(record: dict, threads: int, arch: str) -> int:
    number = arch.rstrip("a")
    registers = (record["registers"] + 7) // 8 * 8
    by_registers = REGISTERS_PER_SM // (registers * threads)
    shared = record["shared"] + 1024  # of the system, per block
    by_shared = SHARED_PER_SM[number] * 1024 // shared
    by_threads = THREADS_PER_SM.get(number, 2048) // threads
    return min(by_registers, by_shared, by_threads, 32)


def span(values: list[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}–{high}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", nargs="+", default=["80", "90a"], help="80, 89, 90a, 100")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    threads = block_sizes()
    sources = sorted((ROOT / "cuda").glob("*.cu"))
    print("| kernel | threads | arch | instances | registers | static shared, bytes | "
          "spills, stack | warps per SM |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for arch in options.arch:
        with ThreadPoolExecutor(options.jobs) as pool:
            logs = list(pool.map(lambda source: compile_unit(source, arch), sources))
        instances: dict[str, dict[str, dict]] = {}
        for record in (record for log in logs for record in parse(log)):
            instances.setdefault(record["kernel"], {})[record["symbol"]] = record
        for kernel, by_symbol in sorted(instances.items()):
            records = list(by_symbol.values())
            block = threads[kernel]
            warps = [blocks_per_sm(r, block, arch) * block // 32 for r in records]
            waste = max(r["spills"] + r["stack"] for r in records)
            print(f"| {kernel} | {block} | {arch} | {len(records)} | "
                  f"{span([r['registers'] for r in records])} | "
                  f"{span([r['shared'] for r in records])} | {waste} | {span(warps)} |")  # fmt: skip


if __name__ == "__main__":
    main()
