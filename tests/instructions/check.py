#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of the driver's cases under callgrind and compares them with
expected.json, 10 % up and down: a gain has to be recorded too, or the next loss hides in it. Fails
also when a case allocates or takes a lock. Exits with 77 (skipped) without valgrind, or when the
build is not of the kind (compiler, processor, build type) that was recorded."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected.json")
CASES = ("schedule", "pages", "prefix", "sequences")
MARGIN = 0.10
SKIPPED = 77
# What a hot path must not call.
FORBIDDEN = re.compile(r"^(malloc|calloc|realloc|free|aligned_alloc|operator (new|delete).*"
                       r"|pthread_(mutex|rwlock|spin)_.*)$")


def count(valgrind, driver, case):
    """(instructions, names of the functions called) inside `measured` of the driver."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind.out")
        # The C library picks memcpy and memcmp by CPU: the plain ones count alike everywhere.
        environment = dict(os.environ,
                           GLIBC_TUNABLES="glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-ERMS,-FSRM")
        run = subprocess.run(
            [valgrind, "--tool=callgrind", f"--callgrind-out-file={out}", "--toggle-collect=*measured*",
             "--compress-strings=no", driver, case],
            capture_output=True, text=True, env=environment, check=False)
        if run.returncode != 0:
            sys.exit(f"check.py: {case} failed under callgrind:\n{run.stderr}")
        with open(out, encoding="utf-8", errors="replace") as file:
            text = file.read()
    total = int(re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE).group(1))
    names = {re.sub(r"[@(].*", "", name) for name in re.findall(r"^c?fn=(.*)$", text, re.MULTILINE)}
    return total, names


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--flavour", required=True, help="what kind of build the driver is")
    parser.add_argument("--valgrind", default="valgrind")
    parser.add_argument("--record", action="store_true", help="write expected.json anew")
    arguments = parser.parse_args()

    if not os.access(arguments.valgrind, os.X_OK):
        print("skipped: valgrind is not here")
        return SKIPPED
    with open(EXPECTED, encoding="utf-8") as file:
        expected = json.load(file)
    if not arguments.record and arguments.flavour != expected["flavour"]:
        print(f"skipped: this build is {arguments.flavour}, recorded is {expected['flavour']}")
        return SKIPPED

    counts, failed = {}, []
    for case in CASES:
        counts[case], names = count(arguments.valgrind, arguments.driver, case)
        forbidden = sorted(filter(FORBIDDEN.match, names))
        if forbidden:
            failed.append(f"{case} calls {', '.join(forbidden)}")
        if arguments.record:
            print(f"{case:10} {counts[case]:10}")
            continue
        change = counts[case] / expected["instructions"][case] - 1
        print(f"{case:10} {counts[case]:10} instructions, {change:+.1%}")
        if abs(change) > MARGIN:
            failed.append(f"{case}: {expected['instructions'][case]} instructions recorded, now "
                          f"{counts[case]}; when that is meant, build growpage_record_instructions")
    for line in failed:
        print(f"FAILED: {line}")
    if failed:
        return 1
    if arguments.record:
        with open(EXPECTED, "w", encoding="utf-8") as file:
            json.dump({"flavour": arguments.flavour, "instructions": counts}, file, indent=2)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
